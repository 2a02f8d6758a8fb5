import {
  type Message,
  type SettledOutcome,
  type ToolCall,
  type ToolResult,
  ToolResultMessage,
} from '@skein/ai'
import { canonicalJson, type JsonObject, type JsonValue } from '@skein/base'
import type { ChildReport, RuntimeEvent } from '../contract/event.ts'
import {
  type CallState,
  type Entry,
  findLateEffect,
  type KernelState,
  type OpenInterrupt,
} from './kernel-state.ts'
import type { LateResult, LoggedOutcome } from '@skein/threads'

type CallEvent = Extract<
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
      const made = toolCalls.find(({ toolCallId }) => toolCallId === event.changedTo)
      if (!call || !entry || !made || state.callPlaces.has(event.changedTo)) return
      state.callPlaces.set(event.changedTo, state.callPlaces.get(event.toolCallId)!)
      const changed = { ...newCall(made), parsed: event.parsed }
      entry.calls = entry.calls.toSpliced(entry.calls.indexOf(call) + 1, 0, changed)
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

/**
 * Applies a result that came when the outcome of its call was not known any more. It answers every question about the
 * call or the effect. If the call has no outcome, the next work on the thread ends it with this result; otherwise the
 * model gets a message, because the outcome that it has seen stays as it is.
 */
function foldLate(
  state: KernelState,
  { at, toolCallId, outcome, result, effectId }: Extract<CallEvent, { type: 'late_result' }>,
): void {
  const found = effectId === undefined ? findCall(state, toolCallId) : undefined
  const subject = effectId === undefined ? found?.call : findLateEffect(state, effectId, toolCallId)
  if (!subject || !isNewsOf(subject, outcome)) return
  subject.late = { outcome, result }
  const open = state.interrupts.get(subject.interruptId ?? '')
  if (open && !open.answer) {
    open.answer = { type: 'result', value: outcome === 'success' ? 'applied' : 'unknown' }
    open.answeredAt = at
  }
  if (!found?.call.outcome) return
  closeDetached(state, found.call)
  addLateNews(state, found, at)
}

/**
 * Whether a late result says more than the log: the log has no other late result of the call, unless that one failed,
 * and no outcome that the tool itself has reported. A call that ran twice may report twice.
 */
export function isNewsOf(
  { late, ...subject }: Pick<CallState, 'late'> | CallState,
  outcome: LateResult['outcome'],
): boolean {
  if (late && (late.outcome === 'success' || outcome !== 'success')) return false
  return !('outcome' in subject) || subject.outcome?.type !== 'done' || subject.isFound
}

/** Tells the model how a call really ended whose outcome it has seen otherwise. */
function addLateNews(state: KernelState, found: FoundCall, at: string): void {
  const { outcome, result } = found.call.late!
  const words = typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
  const ended =
    outcome === 'success' ? `It took effect. Its result: ${words}` : `It failed: ${words}`
  addNews(state, found, { at, news: `${WAS_UNKNOWN} has ended after all. ${ended}` })
}

/** Queues a message for the model whose write was undone, because its results say that the write happened. */
function foldUndone(
  state: KernelState,
  { at, call: callId, status, error }: Extract<CallEvent, { type: 'write_undone' }>,
): void {
  const found = callOfId(state, callId)
  const because = error === undefined ? '' : `: ${error}`
  const news = {
    done: ' was undone, because the session failed.',
    failed: ` had to be undone, because the session failed, and that failed${because}.`,
    unknown: ` had to be undone, because the session failed, and may be undone or not${because}.`,
    skipped: undefined,
    manual: undefined,
    impossible: undefined,
    in_doubt: undefined,
  }[status]
  if (found && news !== undefined) addNews(state, found, { at, news, kind: 'undone' })
}

/** Applies what a person has found out about a call that has ended with an unknown outcome. */
function foldFound(state: KernelState, { interrupt, answer }: OpenInterrupt, at: string): void {
  const found = findCall(state, interrupt.toolCallId)
  if (!found || found.call.interruptId !== interrupt.id) return
  closeDetached(state, found.call)
  const value = answer?.type === 'result' ? answer.value : undefined
  if (value !== 'applied' && value !== 'absent') return
  found.call.found = value
  const effect = value === 'applied' ? 'took effect' : 'had no effect'
  addNews(state, found, { at, news: `${WAS_UNKNOWN} ${effect}. A person has found that out.` })
}

const WAS_UNKNOWN = ', whose outcome was unknown,'

function closeDetached({ interrupts }: KernelState, call: CallState): void {
  if (call.interruptId !== undefined) interrupts.delete(call.interruptId)
  call.interruptId = undefined
}

/** How many characters of a call's arguments a message about the call repeats. */
const MAX_SHOWN = 500

/** Queues a message about a call for the model that made it. The result that the model got before stays as it is. */
function addNews(
  state: KernelState,
  { call, entry }: FoundCall,
  { at, news, kind = 'news' }: { at: string; news: string; kind?: 'news' | 'undone' },
): void {
  const { toolName } = call.call
  const args = JSON.stringify(argumentsToRun(call))
  const shown = args.length > MAX_SHOWN ? `${args.slice(0, MAX_SHOWN)}…` : args
  const text = `[News of an earlier call] "${toolName}" with ${shown}${news}`
  // A person's finding and a late result may both come, and a failed attempt may be followed by another one.
  const queueId = `${entry.message.id}.${call.call.toolCallId}.${kind}.${state.seq}`
  state.news.push({
    type: 'message_queued',
    at,
    queueId,
    role: entry.side === 'a' ? 'user' : 'assistant',
    message: { id: queueId, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    isSilent: true,
    metadata: { kind: 'late_result', for: entry.side },
  })
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
    parsed: undefined,
    startedEpoch: undefined,
    mayHaveRun: false,
    outcome: undefined,
    isUnknown: false,
    interruptId: undefined,
    isHidden: false,
    isFound: false,
    late: undefined,
    found: undefined,
  }
}

/** Returns the arguments with which a call runs: the parsed ones or, if the log has none, those that the model sent. */
export function argumentsToRun({ call, parsed }: Pick<CallState, 'call' | 'parsed'>): JsonObject {
  return parsed?.arguments ?? call.arguments
}

/** Returns what the model sent if the tool has made other arguments of it; otherwise undefined. */
export function sentArguments<T extends JsonValue>(sent: T, made: JsonValue): T | undefined {
  if (sent === made || JSON.stringify(sent) === JSON.stringify(made)) return undefined
  return canonicalJson(sent) === canonicalJson(made) ? undefined : sent
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
    addLateNews(state, found, event.at)
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

/** A call and the entry of its message. */
interface FoundCall {
  readonly call: CallState
  readonly entry: Entry
}

/** Returns the latest call with this id, and the entry of its message. */
export function findCall(
  { entries, callPlaces }: KernelState,
  toolCallId: string,
): FoundCall | undefined {
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
  return outcome.type === 'denied' ? outcome.reason : outcome.message
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
    case 'unknown':
      return { outcome: 'unknown', result: outcome.message }
  }
}

/** Converts an outcome of the log back to a `SettledOutcome`. */
function fromLogged(word: LoggedOutcome, result: unknown): SettledOutcome {
  switch (word) {
    case 'success':
      return { type: 'done', result }
    case 'denied':
      return { type: 'denied', reason: String(result) }
    case 'unknown':
      return { type: 'unknown', message: toWords(result) }
    default:
      return {
        type: 'error',
        message: toWords(result),
      }
  }
}

function toWords(result: unknown): string {
  return typeof result === 'string' ? result : JSON.stringify(result)
}

/**
 * Returns the id of a call for the governor, which judges calls. It is unique in a session, even when a vendor
 * uses a call id twice.
 */
export function callIdOf(state: KernelState, toolCallId: string): string {
  const entry = findCall(state, toolCallId)?.entry
  return entry ? `${entry.message.id}:${toolCallId}` : toolCallId
}

/** Returns the call with the id that `callIdOf` makes. */
function callOfId(state: KernelState, callId: string): ReturnType<typeof findCall> {
  for (let end = callId.indexOf(':'); end >= 0; end = callId.indexOf(':', end + 1)) {
    const found = findCall(state, callId.slice(end + 1))
    if (found?.entry.message.id === callId.slice(0, end)) return found
  }
  return undefined
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
