import type { JsonSchema, JsonValue } from '@skein/base'
import { type Risk, RISKS, type RollbackAction } from './envelope.ts'
import {
  type Check,
  type Evidence,
  EVIDENCE_TYPES,
  type EvidenceType,
  type Need,
  type VerificationReport,
} from './evidence.ts'
import { GovernanceError, invalidDefinition, reason } from './reason.ts'
import type { Policy } from './policy.ts'

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

/** What must hold before a kind of task may deliver, and what it may do on the way. */
export interface TaskClass {
  readonly name: string
  readonly tools: readonly GovernedTool[]
  readonly needs: readonly Need[]
  readonly verifiers: readonly Verifier[]
  /** Combined with the governor's: deny > review > allow. */
  readonly policy?: Policy
  readonly repair?: RepairPolicy
  readonly limits?: TaskLimits
  /** Accept verifiers that are graded by a model; the log says that they are not mechanical. */
  readonly acceptModelGraded?: boolean
  /** Accept `manual` rollbacks of high-risk writes. */
  readonly allowManualRollback?: boolean
  /** Deliver although the effect of a write is in doubt; the log says so. */
  readonly acceptInDoubt?: boolean
}

/** How often a failed run may try again (UAICP §4.1). */
export interface RepairPolicy {
  readonly max: number
  /** Where to go back to, `plan` by default. */
  readonly to?: 'plan' | 'execute'
  /** Invert the writes of the failed attempt first; true by default. */
  readonly undoFirst?: boolean
}

/** Bounds of a run. A child run gets the narrower of its own and its parent's. */
export interface TaskLimits {
  readonly deadlineMs?: number
  readonly toolCalls?: number
  /** Levels of children; 3 by default. */
  readonly depth?: number
  /** No tool above this tier; `write_high_risk` by default. */
  readonly ceiling?: Risk
}

/** Declares a task class. Throws one error that names all mistakes. */
export function defineTaskClass(task: TaskClass): TaskClass {
  const { name, tools, needs, verifiers, repair, limits = {} } = task
  const problems: string[] = []
  if (typeof name !== 'string' || name === '') problems.push('it has no name')
  const ids = verifiers.map(({ id }) => id)
  if (new Set(ids).size < ids.length) problems.push('two verifiers have the same id')

  const toolNames = tools.map((tool) => tool.name)
  for (const tool of tools) {
    if (toolCore(tool)) continue
    problems.push(`the tool "${tool.name}" declares no risk; wrap it with governed()`)
  }
  if (new Set(toolNames).size < toolNames.length) problems.push('two tools have the same name')
  for (const { type, source, min = 1 } of needs) {
    if (!EVIDENCE_TYPES.includes(type)) problems.push(`"${type}" is not a type of evidence`)
    if (source !== undefined && !toolNames.includes(source)) {
      problems.push(`it needs evidence from "${source}", which is none of its tools`)
    }
    if (!Number.isInteger(min) || min < 1) problems.push('a need has a min below 1')
  }

  const { deadlineMs, toolCalls, depth, ceiling } = limits
  if (repair && !isCount(repair.max)) problems.push('repair.max must be a number of repairs')
  if (deadlineMs !== undefined && !(deadlineMs > 0)) problems.push('deadlineMs is not positive')
  if (toolCalls !== undefined && !isCount(toolCalls)) problems.push('toolCalls is not a count')
  if (depth !== undefined && !isCount(depth)) problems.push('depth is not a count')
  if (ceiling !== undefined && !RISKS.includes(ceiling)) problems.push('ceiling is not a risk tier')

  if (problems.length > 0) throw invalidDefinition('task class', name, problems)
  return Object.freeze({
    ...task,
    tools: Object.freeze([...tools]),
    needs: Object.freeze(needs.map((need) => Object.freeze({ ...need }))),
    verifiers: Object.freeze([...verifiers]),
  })
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0
}

/** A mechanical check of evidence against an invariant (UAICP §2). */
export interface Verifier {
  readonly id: string
  readonly timeoutMs: number
  /** False for checks graded by a model; they count only where the task class accepts them. */
  readonly mechanical?: boolean
  readonly check: (
    evidence: readonly Evidence[],
    context: VerifierContext,
  ) => VerifierAnswer | Promise<VerifierAnswer>
}

/** Checks, or a whole report from a verifier that runs elsewhere. Any other answer fails. */
export type VerifierAnswer = readonly Check[] | VerificationReport

/** What a verifier is given beside the evidence. */
export interface VerifierContext {
  readonly request_id: string
  readonly candidate: JsonValue
  readonly signal: AbortSignal
}

/**
 * Declares a verifier: it looks at the evidence of a run and says, check by check, what holds.
 *
 *     const balanced = defineVerifier({
 *       id: 'ledger-balanced',
 *       timeoutMs: 500,
 *       check: ([ledger]) => [{ check_id: 'sum', result: sum(ledger) === 0 ? 'pass' : 'fail' }],
 *     })
 */
export function defineVerifier(verifier: Verifier): Verifier {
  const problems: string[] = []
  if (typeof verifier.id !== 'string' || verifier.id === '') problems.push('it has no id')
  if (typeof verifier.check !== 'function') problems.push('it has no check function')
  if (!(verifier.timeoutMs > 0)) problems.push('timeoutMs is not positive')
  if (problems.length > 0) throw invalidDefinition('verifier', verifier.id, problems)
  return Object.freeze({ ...verifier })
}
