import type { JsonSchema, JsonValue } from '@skein/base'
import type { Risk, RollbackAction } from './envelope.ts'
import type { EvidenceType } from './evidence.ts'

/** A tool as UPP shapes it, of any origin. */
export interface PlainTool<Args, Result> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (args: Args, context: never) => Result | Promise<Result>
}

/** What governance adds to a tool. `risk` has no default: leaving it out is an error (§5.3). */
export interface Governance<Args, Result> {
  readonly risk: Risk
  /** May raise the tier for these arguments; it never lowers it. */
  readonly raise?: (args: Args) => Risk
  /** Computed and logged before the tool runs. Mandatory for `write_high_risk`. */
  readonly rollback?: (
    args: Args,
    context: GovernedContext,
  ) => RollbackAction | Promise<RollbackAction>
  /** Settles an effect in doubt by looking at the world. It must change nothing. */
  readonly probe?: (
    args: Args,
    context: GovernedContext,
  ) => Probed | boolean | Promise<Probed | boolean>
  /** Running twice with one idempotency key has one effect. */
  readonly idempotent?: boolean
  readonly timeoutMs?: number
  /** What the call proves; by default a `tool_result` whose payload is the result. */
  readonly evidence?: (result: Result, args: Args) => EvidenceClaim
}

export type Probed = 'applied' | 'absent' | 'unknown'

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
  /** Streams text to the user, marked unverified. Refused in a tool that writes (§4.2). */
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
