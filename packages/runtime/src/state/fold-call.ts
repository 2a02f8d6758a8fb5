import type { JsonObject } from '@skein/base'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Entry, KernelState } from './kernel-state.ts'
import { newCall, resultsOf, findCall, wordsOf, fromLogged } from './calls.ts'
import { foldLate, addLateNews, foldUndone, foldFound, queueReport } from './news.ts'

export type CallEvent = Extract<
  RuntimeEvent,
  {
    type:
      | 'tool_execution_start'
      | 'tool_execution_end'
      | 'late_result'
      | 'tool_call_hidden'
      | 'call_reset'
      | 'call_changed'
      | 'interrupt_opened'
      | 'interrupt_answered'
      | 'write_undone'
      | 'undo_decided'
  }
>

/** Applies an event about a call of an assistant message to the state. */
export function foldCall(state: KernelState, event: CallEvent): void {
  switch (event.type) {
    case 'tool_execution_start': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (!call) return
      Object.assign(call, { startedEpoch: event.epoch, mayHaveRun: true })
      const { arguments: args, schema } = event
      if (schema !== undefined) call.parsed = { arguments: args as JsonObject, schema } // of a call, so an object
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
      const replacement = toolCalls.find(({ toolCallId }) => toolCallId === event.changedTo)
      if (!call || !entry || !replacement || state.callPlaces.has(event.changedTo)) return
      state.callPlaces.set(event.changedTo, state.callPlaces.get(event.toolCallId)!)
      const newState = { ...newCall(replacement), parsed: event.parsed }
      entry.calls = entry.calls.toSpliced(entry.calls.indexOf(call) + 1, 0, newState)
      state.shownSeq = state.seq
      return
    }
    case 'tool_execution_end':
      return endCall(state, event)
    case 'late_result':
      return foldLate(state, event)
    case 'tool_call_hidden': {
      const { call } = findCall(state, event.toolCallId) ?? {}
      if (!call) return
      call.isHidden = true
      state.shownSeq = state.seq
      return
    }
    case 'interrupt_opened': {
      const { interrupt, turnId, at, expiresAt, effectId, write } = event
      const effect = effectId === undefined ? undefined : state.effects.get(effectId)
      if (effectId !== undefined && !effect) return // it was removed meanwhile
      const { call } = effect || write ? {} : (findCall(state, interrupt.toolCallId) ?? {})
      const waiting = effect ?? call
      if (waiting) {
        if (waiting.interruptId !== undefined) state.interrupts.delete(waiting.interruptId)
        waiting.interruptId = interrupt.id
      }
      if (call) {
        call.startedEpoch = undefined
        call.parsed = event.parsed ?? call.parsed
      }
      if (effect) effect.runningEpoch = undefined
      state.interrupts.set(interrupt.id, {
        interrupt,
        turnId,
        openedAt: at,
        expiresAt,
        effectId,
        isDetached: write !== undefined || call?.outcome !== undefined,
        isDropped: false,
        write,
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
      if (open.isDetached && !open.write) foldFound(state, open, event.at)
      return
    }
    case 'undo_decided':
      state.interrupts.delete(event.interruptId)
      return
    case 'write_undone':
      return foldUndone(state, event)
    default:
      return event satisfies never
  }
}

function endCall(
  state: KernelState,
  event: Extract<CallEvent, { type: 'tool_execution_end' }>,
): void {
  const place = findCall(state, event.toolCallId)
  if (!place || place.call.outcome) return
  const { call, entry } = place
  call.outcome = fromLogged(event.outcome, event.result)
  call.isUnknown = event.outcome === 'unknown'
  call.isFound = event.settledBy !== undefined
  if (call.interruptId !== undefined) state.interrupts.delete(call.interruptId)
  call.interruptId = undefined
  // When every call has an outcome, the message with the results is created.
  if (!entry.results && entry.calls.every(({ outcome }) => outcome !== undefined))
    entry.results = resultsOf(entry.message.id, entry.calls, new Date(event.at))
  if (entry.results) countErrors(state, entry)
  // The late result of an earlier attempt, or of this one, came before the log got this outcome.
  const { late } = call
  if (late && late.outcome !== event.outcome && event.outcome !== 'success')
    addLateNews(state, place, event.at)
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
