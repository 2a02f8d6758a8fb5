import type { JsonValue } from '@skein/base'
import { RISKS, type GovernedContext, type Probed, type Risk } from '@skein/governance'
import type { ToolDefinition } from '../definitions/types.ts'

/** Probes that take longer have settled nothing. */
const PROBE_TIMEOUT_MS = 30_000

/** The tier of a call with these arguments. One that cannot be told is the highest. */
export function effectiveRisk({ governance }: ToolDefinition, args: JsonValue): Risk {
  const { risk } = governance
  const raise = governance.raise as ((args: JsonValue) => Risk) | undefined
  try {
    const raised = RISKS.indexOf(raise?.(args) ?? risk)
    return raised < 0 ? 'write_high_risk' : RISKS[Math.max(raised, RISKS.indexOf(risk))]!
  } catch {
    return 'write_high_risk'
  }
}

/** Asks the tool's probe whether the effect is there. Without one, or without an answer, it is in doubt. */
export async function probeTool(
  { governance }: ToolDefinition,
  args: JsonValue,
  context: Pick<GovernedContext, 'signal' | 'idempotencyKey' | 'callId'>,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  // Its own check of the arguments was done when the call was made.
  const probe = governance.probe as
    | ((args: JsonValue, context: GovernedContext) => Probed | boolean | Promise<Probed | boolean>)
    | undefined
  if (!probe) return 'in_doubt'
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)])
    const asked = probe(args, {
      ...context,
      signal,
      requestId: '',
      traceId: '',
      chunk: () => {
        throw new Error('A probe does not stream.')
      },
    })
    const found = await Promise.race([asked, aborted(signal)])
    if (found === true || found === 'applied') return 'applied'
    return found === false || found === 'absent' ? 'absent' : 'in_doubt'
  } catch {
    return 'in_doubt' // A probe that fails has settled nothing.
  }
}

function aborted(signal: AbortSignal): Promise<'unknown'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('unknown')
    else signal.addEventListener('abort', () => resolve('unknown'), { once: true })
  })
}
