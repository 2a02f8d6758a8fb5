import type { JsonValue } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { isNamedCall } from '../journal/reduce.ts'
import type { Run } from '../contract/run.ts'

/** The part of a run that adapters use. */
export type CallingRun = Pick<Run, 'call'>

/**
 * Calls a tool for a framework. The framework's id of the call is used as the call id in the journal.
 * When the framework repeats a step, on resume or retry, the recorded result is found under this id and
 * the call is not made twice.
 */
export async function callThrough(
  run: CallingRun,
  tool: GovernedTool,
  args: unknown,
  id: string | undefined,
): Promise<JsonValue> {
  const options = id !== undefined && id !== '' && isNamedCall(id) ? { id } : {}
  // The arguments come from a model and are not checked here; the tool's own `run` checks them.
  const { result } = await run.call(tool, args as never, options)
  return result as JsonValue
}
