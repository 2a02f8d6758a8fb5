import type { JsonSchema, JsonValue } from '@skein/base'
import { RISKS, type Risk, type RollbackAction } from './envelope.ts'
import type { EvidenceType } from './evidence.ts'
import { GovernanceError, reason } from './reason.ts'

/** A tool in the shape of UPP, from anywhere. */
export interface PlainTool<Args, Result> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (args: Args, context: never) => Result | Promise<Result>
}

/** What governance adds to a tool. `risk` has no default: leaving it out is an error (UAICP §5.3). */
export interface Governance<Args, Result> {
  readonly risk: Risk
  /** May raise the tier for these arguments; it never lowers it. */
  readonly raise?: (args: Args) => Risk
  /** Computed and logged before the tool runs. Mandatory for `write_high_risk`. */
  readonly rollback?: (
    args: Args,
    context: GovernedContext,
  ) => RollbackAction | Promise<RollbackAction>
  /** Finds out whether an effect in doubt is there. It must change nothing. */
  readonly probe?: (
    args: Args,
    context: GovernedContext,
  ) => Probed | boolean | Promise<Probed | boolean>
  /** True: running twice with the same idempotency key has one effect. */
  readonly idempotent?: boolean
  readonly timeoutMs?: number
  /** What the call proves; by default a `tool_result` whose payload is the result. */
  readonly evidence?: (result: Result, args: Args) => EvidenceClaim
}

/** What a probe found out about an effect. */
export type Probed = 'applied' | 'absent' | 'unknown'

/** What a tool declares a result to prove. */
export interface EvidenceClaim {
  readonly type: EvidenceType
  readonly payload: JsonValue
  /** For `custom`: a namespaced kind such as `com.example:invoice`. */
  readonly subtype?: string
}

/** What a governed tool is given beside its arguments. */
export interface GovernedContext {
  readonly signal: AbortSignal
  /** The same for every try of one call, also after a crash. */
  readonly idempotencyKey: string
  readonly requestId: string
  readonly traceId: string
  readonly callId: string
  /** Streams text to the user, marked unverified. Refused in a tool that writes (UAICP §4.2). */
  readonly chunk: (text: string) => void
}

/** A tool that runs only inside a governed run. The function it wraps cannot be reached through it. */
export interface GovernedTool<Args = never, Result = unknown> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly risk: Risk
  /** Refuses: only a run can call the tool (`run.call`, or the tools an adapter made for a run). */
  readonly run: (args: Args, context?: unknown) => Promise<Result>
}

/** The bare tool behind a governed one, and what was declared about it. */
export interface ToolCore {
  readonly tool: PlainTool<unknown, unknown>
  readonly governance: Governance<unknown, unknown>
}

// Kept apart from the object that frameworks get: no member of it leads to the bare function.
const cores = new WeakMap<object, ToolCore>()

/**
 * Puts a tool under governance: one changed line and a risk tier.
 *
 *     const refund = governed(refundTool, {
 *       risk: 'write_high_risk',
 *       rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }),
 *     })
 *
 * The result is tool-shaped and can be listed anywhere, but only a governed run can call it.
 */
export function governed<Args, Result>(
  tool: PlainTool<Args, Result> & Typed<Args, Result>,
  governance: Governance<NoInfer<Args>, NoInfer<Result>>,
): GovernedTool<Args, Result> {
  const { name, description, parameters } = tool
  const { risk, timeoutMs } = governance ?? {}
  const problems: string[] = []
  if (typeof name !== 'string' || name === '') problems.push('it has no name')
  if (typeof tool.run !== 'function') problems.push('it has no run function')
  if (!RISKS.includes(risk)) problems.push(`its risk is not one of ${RISKS.join(', ')}`)
  if (timeoutMs !== undefined && !(timeoutMs > 0)) problems.push('timeoutMs is not positive')
  if (problems.length > 0) {
    throw new GovernanceError(
      `The tool "${name}" cannot be governed: ${problems.join('; ')}.`,
      [reason('RISK_UNDECLARED', name)],
      { hint: 'governed(tool, { risk: "read_only" | "write_low_risk" | "write_high_risk" })' },
    )
  }
  const handle: GovernedTool<Args, Result> = Object.freeze({
    name,
    description,
    parameters,
    risk,
    run: async () => {
      throw new GovernanceError(
        `The governed tool "${name}" was called outside a governed run.`,
        [reason('POLICY_BLOCKED', name, 'no open run')],
        { hint: 'Use run.call(tool, args), or the tools an adapter makes for a run.' },
      )
    },
  })
  // Inside, arguments are JSON of unknown shape: the tool's own `run` checks them.
  cores.set(handle, { tool, governance: { ...governance } } as unknown as ToolCore)
  return handle
}

/** Types that some tools declare for inference; there is no such member at run time. */
interface Typed<Args, Result> {
  readonly '~types'?: { readonly args: Args; readonly result: Result }
}

/** The inside of a governed tool; undefined for any other object. */
export function toolCore(tool: object): ToolCore | undefined {
  return cores.get(tool)
}
