import type { ToolOutcome as Outcome, ToolResult } from '@skein/ai'
import type { LoggedOutcome } from '@skein/threads'
import type { CallState } from './state.ts'

/** What is told to a model whose call a crash cut off. */
export const UNKNOWN_OUTCOME =
  'The process stopped while this call ran. Whether it had an effect is unknown; check before you call it again.'

export type SettledOutcome = Exclude<Outcome, { type: 'deferred' }>

/** What the model is told of a call. */
export function toToolResult({ call, outcome }: Pick<CallState, 'call' | 'outcome'>): ToolResult {
  const { toolCallId, toolName } = call
  if (outcome?.type === 'done') return { toolCallId, toolName, result: outcome.result }
  return { toolCallId, toolName, result: textOf(outcome), isError: true }
}

function textOf(outcome: SettledOutcome | undefined): string {
  if (!outcome || outcome.type === 'done') return UNKNOWN_OUTCOME
  return outcome.type === 'error' ? outcome.message : outcome.reason
}

/** An outcome as the log has it. */
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

/** The same, read back. */
export function fromLogged(word: LoggedOutcome, result: unknown): SettledOutcome {
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
