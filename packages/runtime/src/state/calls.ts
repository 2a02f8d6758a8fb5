import {
  type Message,
  type SettledOutcome,
  type ToolCall,
  type ToolResult,
  ToolResultMessage,
} from '@skein/ai'
import { canonicalJson, type JsonObject, type JsonValue } from '@skein/base'
import type { CallState, Entry, KernelState } from './kernel-state.ts'
import type { LoggedOutcome } from '@skein/threads'

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

/** A call and the entry of its message. */
export interface FoundCall {
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
export function fromLogged(word: LoggedOutcome, result: unknown): SettledOutcome {
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
export function callOfId(state: KernelState, callId: string): ReturnType<typeof findCall> {
  for (let end = callId.indexOf(':'); end >= 0; end = callId.indexOf(':', end + 1)) {
    const place = findCall(state, callId.slice(end + 1))
    if (place?.entry.message.id === callId.slice(0, end)) return place
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
