import type { JsonValue } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { isNamedCall } from '../journal/reduce.ts'
import type { Run } from '../contract/run.ts'

/** What adapters need of a run. */
export type CallingRun = Pick<Run, 'call'>

/**
 * Calls a tool for a framework. The framework's own id of the call becomes the journal's: when it
 * runs a step again, on resume or retry, the same id finds the recorded result and nothing happens
 * twice.
 */
export async function callThrough(
  run: CallingRun,
  tool: GovernedTool,
  args: unknown,
  id: string | undefined,
): Promise<JsonValue> {
  const options = id !== undefined && id !== '' && isNamedCall(id) ? { id } : {}
  // Frameworks hand over what a model wrote; the tool's own `run` checks it.
  const { result } = await run.call(tool, args as never, options)
  return result as JsonValue
}
