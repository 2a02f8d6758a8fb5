import { messageOf, type RecordedArguments } from '@skein/base'
import {
  defer,
  type DeferRequest,
  type ToolCall,
  type ToolExecution,
  type ToolOutcome,
  type ToolResult,
} from '../contract/tool.ts'
import { ToolResultError, toResultJson } from './result.ts'
import { type SettledOutcome } from './call-ports.ts'

/** One call that has an outcome. */
export interface SettledCall {
  /** The call with the arguments it ran with: parsed, if its tool parses them. */
  readonly call: ToolCall
  readonly outcome: ToolOutcome
  readonly durationMs: number
  /** The parsed arguments; undefined if the tool does not parse its arguments, or if they do not fit its schema. */
  readonly parsed?: RecordedArguments
}

/** Converts a tool's return value with `toResultJson`; if that fails, returns an error for the model. */
export function doneOutcome({ toolName }: ToolCall, result: unknown): SettledOutcome {
  try {
    return { type: 'done', result: toResultJson(result) }
  } catch (error) {
    if (!(error instanceof ToolResultError)) throw error
    const message = `The tool "${toolName}" has run, but its result cannot be passed on: ${error.message}. Calling it again would do its work a second time.`
    return { type: 'error', message, code: error.code, cause: error }
  }
}

/** Returns a deferred outcome. Its request must be JSON too, because it is stored and answered elsewhere. */
export function deferredOutcome({ toolName }: ToolCall, given: DeferRequest): ToolOutcome {
  try {
    const { kind, request } = defer(given)
    return { type: 'deferred', request: { kind, request: toResultJson(request, 'request') } }
  } catch (error) {
    const message = `The call to "${toolName}" cannot wait for an answer: ${messageOf(error)}.`
    return failed(message, error)
  }
}

export function errorOf(outcome: Extract<ToolOutcome, { type: 'error' | 'unknown' }>): Error {
  const { message } = outcome
  if (outcome.type === 'unknown') return new Error(message)
  const { cause } = outcome
  try {
    if (cause instanceof Error) return cause
  } catch {
    // A tool may throw a proxy that throws when it is read, so the proxy becomes the cause without being read.
  }
  return new Error(message, { cause })
}

export function failed(message: string, cause?: unknown): Extract<ToolOutcome, { type: 'error' }> {
  return cause === undefined ? { type: 'error', message } : { type: 'error', message, cause }
}

/** Returns the result that the model sees. Must not be used for a deferred call, which has no result yet. */
export function toToolResult(settled: SettledCall): ToolResult {
  const { toolCallId, toolName, result, isError } = toToolExecution(settled)
  const { outcome } = settled
  const hasForm = outcome.type === 'done' && outcome.modelResult !== undefined
  return { toolCallId, toolName, result: hasForm ? outcome.modelResult : result, isError }
}

/** Returns the entry for a call in the turn's `toolExecutions` (UPP §7.3). */
export function toToolExecution({ call, outcome, durationMs }: SettledCall): ToolExecution {
  const { toolCallId, toolName, arguments: args } = call
  const base = { toolName, toolCallId, arguments: args, duration: durationMs }
  switch (outcome.type) {
    case 'done':
      return { ...base, result: outcome.result, isError: false }
    case 'error':
      return { ...base, result: outcome.message, isError: true }
    case 'denied':
      return { ...base, result: outcome.reason, isError: true }
    case 'deferred':
      return { ...base, result: outcome.request, isError: false }
    case 'unknown':
      return { ...base, result: outcome.message, isError: true, isUnknown: true }
  }
}
