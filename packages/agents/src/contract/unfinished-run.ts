import { ErrorCode, UPPError } from '@skein/ai'
import { AGENT_ORIGIN } from './agent-error.ts'
import type { AgentStopReason } from './event.ts'

/** For each reason with which an agent has not finished its work: what happened, and the code of the error. */
const failures: Readonly<
  Record<AgentStopReason, readonly [what: string, code: ErrorCode] | undefined>
> = {
  complete: undefined,
  interrupted: undefined,
  max_iterations: ['was stopped by a limit (max_iterations)', ErrorCode.QuotaExceeded],
  max_steps: ['was stopped by a limit (max_steps)', ErrorCode.QuotaExceeded],
  stop_condition: ['was stopped by a limit (stop_condition)', ErrorCode.QuotaExceeded],
  max_tokens: ['reached the limit of its answer (max_tokens)', ErrorCode.InvalidResponse],
  context_window: ['has filled its context (context_window)', ErrorCode.ContextLengthExceeded],
  refusal: ['was refused by its model (refusal)', ErrorCode.ContentFiltered],
  content_filter: ['was stopped by a filter (content_filter)', ErrorCode.ContentFiltered],
  other: ['got an answer that cannot be used (other)', ErrorCode.InvalidResponse],
}

/**
 * Creates the error that tells a caller that an agent did not finish its work; undefined if it did. `agent` is the
 * subject of the sentence, e.g. `The sub-agent "explore"`.
 */
export function unfinishedRun(
  agent: string,
  reason: AgentStopReason | undefined,
  text: string,
): UPPError | undefined {
  const [what, code] = (reason && failures[reason]) ?? []
  if (!what || !code) return undefined
  const answer = text === '' ? 'It has given no answer.' : `Its last words: ${text}`
  return new UPPError(`${agent} ${what} before it had finished. ${answer}`, {
    code,
    ...AGENT_ORIGIN,
  })
}
