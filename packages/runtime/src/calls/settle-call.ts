import type { SettledOutcome } from '@skein/ai'
import type { JsonValue } from '@skein/base'
import type { AdmittedCall } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { wordsOf } from '../state/calls.ts'
import { failedCall } from '../governance/in-doubt.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'

/**
 * Records the outcome of an admitted call with the governor: its result as evidence, or what is known about
 * its effect. A result that is not JSON is recorded as a result too, because the tool ran to its end.
 */
export async function settleCall(
  context: DrainContext,
  {
    tool,
    call,
    outcome,
  }: {
    readonly tool: ToolDefinition
    readonly call: AdmittedCall
    readonly outcome: Exclude<SettledOutcome, { readonly type: 'unknown' }>
  },
): Promise<void> {
  const { signal, state } = context
  const turnId = state.session?.turn?.id ?? ''
  const redactor = context.redactor()
  const governor = await context.governor()
  if (outcome.type === 'done' || isResultNotJson(outcome)) {
    const value = outcome.type === 'done' ? (outcome.result as JsonValue) : outcome.message
    const safe = redactor?.json(value) ?? value
    await governor.settle(call.call, { type: 'result', value: safe }, turnId)
    return
  }
  const error = outcome.type === 'error' ? outcome.cause : undefined
  const words = wordsOf(outcome)
  const message = redactor?.text(words) ?? words
  const failure = await failedCall(tool, call, { error, message, signal })
  await governor.settle(call.call, failure, turnId)
}

/** Whether a tool ran to its end and only its result could not be expressed in JSON. */
export function isResultNotJson(
  outcome: SettledOutcome,
): outcome is SettledOutcome & { type: 'error' } {
  return outcome.type === 'error' && outcome.code === 'TOOL_RESULT_NOT_JSON'
}
