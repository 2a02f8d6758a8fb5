import {
  type Message,
  type SettledOutcome,
  type ToolCall,
  type ToolResult,
  ToolResultMessage,
} from '@skein/ai'
import type { ChildReport, RuntimeEvent } from '../contract/event.ts'
import type { CallState, Entry, KernelState } from '../contract/state.ts'
import type { LoggedOutcome } from '@skein/threads'

type CallEvent = Extract<
  RuntimeEvent,
  {
    type:
      | 'tool_execution_start'
      | 'tool_execution_end'
      | 'tool_call_hidden'
      | 'call_reset'
      | 'call_changed'
      | 'interrupt_opened'
      | 'interrupt_answered'
  }
>

/** Applies an event about a call of an assistant message to the state. */
export function foldCall(state: KernelState, event: CallEvent): void {
  switch (event.type) {
    case 'tool_execution_start': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (call) Object.assign(call, { startedEpoch: event.epoch, mayHaveRun: true })
      return
    }
    case 'call_reset': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (call) call.startedEpoch = undefined
      return
    }
    case 'call_changed': {
      const { call, entry } = findCall(state, event.toolCallId) ?? {}
      const { toolCalls = [] } = entry?.message.type === 'assistant' ? entry.message : {}
      const made = toolCalls.find(({ toolCallId }) => toolCallId === event.changedTo)
      if (!call || !entry || !made || state.callPlaces.has(event.changedTo)) return
      state.callPlaces.set(event.changedTo, state.callPlaces.get(event.toolCallId)!)
      entry.calls = entry.calls.toSpliced(entry.calls.indexOf(call) + 1, 0, newCall(made))
      state.shownSeq = state.seq
      return
    }
    case 'tool_execution_end':
      return endCall(state, event)
    case 'tool_call_hidden': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (!call) return
      call.isHidden = true
      state.shownSeq = state.seq
      return
    }
    case 'interrupt_opened': {
      const { interrupt, turnId, at, expiresAt, effectId } = event
      const effect = effectId === undefined ? undefined : state.effects.get(effectId)
      if (effectId !== undefined && !effect) return // it was removed meanwhile
      const { call } = effect ? {} : (findCall(state, interrupt.toolCallId) ?? {})
      const waiting = effect ?? call
      if (waiting) {
        if (waiting.interruptId !== undefined) state.interrupts.delete(waiting.interruptId)
        waiting.interruptId = interrupt.id
      }
      if (call) call.startedEpoch = undefined
      if (effect) effect.runningEpoch = undefined
      state.interrupts.set(interrupt.id, {
        interrupt,
        turnId,
        openedAt: at,
        expiresAt,
        effectId,
        answer: undefined,
        answeredAt: undefined,
        answeredBy: undefined,
        attachments: [],
      })
      return
    }
    case 'interrupt_answered': {
      const open = state.interrupts.get(event.interruptId)
      if (!open && event.report) return queueReport(state, event, event.report)
      if (!open || open.answer) return // only the first answer to an interrupt is used
      open.answer = event.answer
      open.answeredAt = event.at
      open.answeredBy = event.answeredBy
      open.attachments = event.attachments ?? []
      return
    }
  }
}

/**
 * Queues the report of a child whose waiting call has ended, because the session was stopped meanwhile.
 * Otherwise the child's result would be lost.
 */
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
    attachments,
  })
}

/** Returns the state of a new call, which has not started and has no outcome. */
export function newCall(call: ToolCall): CallState {
  return {
    call,
    startedEpoch: undefined,
    mayHaveRun: false,
    outcome: undefined,
    isUnknown: false,
    interruptId: undefined,
    isHidden: false,
  }
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
  // When every call has an outcome, the message with the results is created.
  if (!entry.results && entry.calls.every(({ outcome }) => outcome !== undefined))
    entry.results = resultsOf(entry.message.id, entry.calls, new Date(event.at))
  if (entry.results) countErrors(state, entry)
}

/**
 * Creates the message with the results of all calls of a message. Its id is derived from the id of that
 * message, so every process that reads the log computes the same id.
 */
export function resultsOf(
  messageId: string,
  calls: readonly CallState[],
  timestamp: Date,
): ToolResultMessage {
  return new ToolResultMessage(calls.map(toLoggedResult), { id: resultsId(messageId), timestamp })
}

/** Returns the id of the message with the results of the calls of a message. */
export function resultsId(messageId: string): string {
  return `${messageId}.results`
}

/**
 * Counts how many steps in a row failed with the same errors, to detect a model that repeats itself. A step
 * has failed if all its calls have. Calls of one step are not counted one by one, because the model made them
 * before it saw the first error.
 */
function countErrors({ session }: KernelState, { calls }: Entry): void {
  if (!session) return
  const errors = new Set<string>()
  for (const { call, outcome } of calls)
    if (outcome && outcome.type !== 'done')
      errors.add(`${call.toolName}: ${wordsOf(outcome).slice(0, 500)}`)
  const hasFailed = calls.every(({ outcome }) => outcome?.type !== 'done')
  const error = hasFailed ? [...errors].toSorted().join('\n') : undefined
  const isSame = error !== undefined && error === session.lastError
  session.sameErrors = error === undefined ? 0 : isSame ? session.sameErrors + 1 : 1
  session.lastError = error
}

/** Returns the latest call with this id, and the entry of its message. */
export function findCall(
  { entries, callPlaces }: KernelState,
  toolCallId: string,
): { readonly call: CallState; readonly entry: Entry } | undefined {
  const entry = entries[callPlaces.get(toolCallId) ?? -1]
  const call = entry?.calls.find((one) => one.call.toolCallId === toolCallId)
  return call && entry && { call, entry }
}

/** The result that the model gets for a call that was running when a process died. */
export const UNKNOWN_OUTCOME =
  'The process stopped while this call ran. Whether it had an effect is unknown; check before you call it again.'

/** Returns the result that the model gets for a call. */
export function toLoggedResult({ call, outcome }: Pick<CallState, 'call' | 'outcome'>): ToolResult {
  const { toolCallId, toolName } = call
  if (outcome?.type === 'done') return { toolCallId, toolName, result: outcome.result }
  const result = outcome ? wordsOf(outcome) : UNKNOWN_OUTCOME
  return { toolCallId, toolName, result, isError: true }
}

/** Returns the error message or the reason of a call that did not succeed. */
export function wordsOf(outcome: Exclude<SettledOutcome, { type: 'done' }>): string {
  return outcome.type === 'error' ? outcome.message : outcome.reason
}

/** Converts an outcome to the form that the log stores. */
export function toLogged(outcome: SettledOutcome): { outcome: LoggedOutcome; result: unknown } {
  switch (outcome.type) {
    case 'done':
      return { outcome: 'success', result: outcome.result ?? null }
    case 'error':
      return { outcome: 'failed', result: outcome.message }
    case 'denied':
      return { outcome: 'denied', result: outcome.reason }
  }
}

/** Converts an outcome of the log back to a `SettledOutcome`. */
function fromLogged(word: LoggedOutcome, result: unknown): SettledOutcome {
  switch (word) {
    case 'success':
      return { type: 'done', result }
    case 'denied':
      return { type: 'denied', reason: String(result) }
    default:
      return {
        type: 'error',
        message: typeof result === 'string' ? result : JSON.stringify(result),
      }
  }
}

/**
 * Returns the id of a call for the governor, which judges calls. It is unique in a session, even when a vendor
 * uses a call id twice.
 */
export function callIdOf(state: KernelState, toolCallId: string): string {
  const entry = findCall(state, toolCallId)?.entry
  return entry ? `${entry.message.id}:${toolCallId}` : toolCallId
}

/**
 * Whether the message has exactly one result per call, in order. It has fewer if a person changed the arguments
 * of a call, which added another call to the message later.
 */
export function isMadeOf(message: Message, calls: readonly CallState[]): boolean {
  const { results } = message as ToolResultMessage
  return (
    results.length === calls.length &&
    results.every(({ toolCallId }, place) => toolCallId === calls[place]!.call.toolCallId)
  )
}
