import type { ChildReport, RuntimeEvent } from '../event.ts'
import { completeResults } from './fold-messages.ts'
import type { CallState, Entry, KernelState } from './state.ts'
import { fromLogged } from './tool-outcome.ts'

type CallEvent = Extract<
  RuntimeEvent,
  {
    type:
      | 'tool_execution_start'
      | 'tool_execution_end'
      | 'tool_call_hidden'
      | 'call_reset'
      | 'interrupt_opened'
      | 'interrupt_answered'
  }
>

/** Folds what happens to the calls of assistant messages. */
export function foldCall(state: KernelState, event: CallEvent): void {
  switch (event.type) {
    case 'tool_execution_start': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (call) call.startedEpoch = event.epoch
      return
    }
    case 'call_reset': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (call) call.startedEpoch = undefined
      return
    }
    case 'tool_execution_end':
      return endCall(state, event)
    case 'tool_call_hidden': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (call) call.isHidden = true
      return
    }
    case 'interrupt_opened': {
      const { interrupt, turnId, at, expiresAt } = event
      const { call } = findCall(state, interrupt.toolCallId) ?? {}
      if (call) {
        if (call.interruptId !== undefined) state.interrupts.delete(call.interruptId)
        call.interruptId = interrupt.id
        call.startedEpoch = undefined
      }
      state.interrupts.set(interrupt.id, {
        interrupt,
        turnId,
        openedAt: at,
        expiresAt,
        answer: undefined,
        answeredBy: undefined,
      })
      return
    }
    case 'interrupt_answered': {
      const open = state.interrupts.get(event.interruptId)
      if (!open && event.report) return queueReport(state, event, event.report)
      if (!open || open.answer) return // the first answer counts
      open.answer = event.answer
      open.answeredBy = event.answeredBy
      return
    }
  }
}

/** The call was cut off while the child worked: what came of it is not lost. */
function queueReport(
  state: KernelState,
  { at, answer }: Extract<CallEvent, { type: 'interrupt_answered' }>,
  { queueId, reference, opening, attachments }: ChildReport,
): void {
  if (state.queuedIds.has(queueId)) return
  const given = answer as { readonly value?: unknown; readonly message?: string }
  const text = `${opening}${given.message ?? String(given.value ?? '')}`
  state.queuedIds.set(queueId, state.seq)
  state.queue.push({
    type: 'message_queued',
    at,
    queueId,
    role: 'user',
    message: { id: queueId, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    isSilent: true,
    subagentId: reference,
    ...(attachments && { attachments }),
  })
}

function endCall(
  state: KernelState,
  event: Extract<CallEvent, { type: 'tool_execution_end' }>,
): void {
  const found = findCall(state, event.toolCallId)
  if (!found || found.call.outcome) return
  const { call, entry } = found
  call.outcome = fromLogged(event.outcome, event.result)
  call.isUnknown = event.outcome === 'unknown'
  if (call.interruptId !== undefined) state.interrupts.delete(call.interruptId)
  call.interruptId = undefined
  completeResults(entry, event.at)
  noteError(state, call)
}

/** The same error of the same tool again and again is a model that does not learn. */
function noteError({ session }: KernelState, { call, outcome }: CallState): void {
  if (!session) return
  const words = outcome?.type === 'error' ? outcome.message : deniedFor(outcome)
  const error = words === undefined ? undefined : `${call.toolName}: ${words.slice(0, 500)}`
  session.sameErrors =
    error !== undefined && error === session.lastError ? session.sameErrors + 1 : error ? 1 : 0
  session.lastError = error
}

function deniedFor(outcome: CallState['outcome']): string | undefined {
  return outcome?.type === 'denied' ? outcome.reason : undefined
}

/** The latest call with this id, and its message. */
export function findCall(
  { entries, callPlaces }: KernelState,
  toolCallId: string,
): { readonly call: CallState; readonly entry: Entry } | undefined {
  const entry = entries[callPlaces.get(toolCallId) ?? -1]
  const call = entry?.calls.find((one) => one.call.toolCallId === toolCallId)
  return call && entry && { call, entry }
}
