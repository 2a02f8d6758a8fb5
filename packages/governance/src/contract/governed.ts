import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
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

/** A tool with the members that UPP defines, from any framework. */
export interface PlainTool<Args, Result> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (args: Args, context: never) => Result | Promise<Result>
}

/**
 * The declarations that governance needs about a tool. `risk` has no default: leaving it out is an error
 * (UAICP §5.3).
 */
export interface Governance<Args, Result> {
  readonly risk: Risk
  /** Returns the risk for these arguments. It can raise the declared risk but not lower it. */
  readonly raise?: (args: Args) => Risk
  /**
   * The action that undoes the call, or a function that returns it. It is computed and logged before the tool
   * runs; `write_high_risk` requires it. `{ tool }` names the tool that undoes: if no tool has that name, the
   * definitions are refused, whereas a name that a function returns is checked with each call. `'impossible'`
   * declares that a call cannot be undone, e.g. an e-mail: the approval says so, and if the run fails, the
   * write is reported as not undone.
   */
  readonly rollback?:
    | ((args: Args, context: GovernedContext) => RollbackAction | Promise<RollbackAction>)
    | UndoneBy<Args>
    | 'impossible'
  /**
   * Finds out whether a call had its effect, when its outcome is not known. It must not change anything.
   */
  readonly probe?: (
    args: Args,
    context: GovernedContext,
  ) => Probed | boolean | Promise<Probed | boolean>
  /** True if running the tool twice with the same idempotency key has only one effect. */
  readonly idempotent?: boolean
  readonly timeoutMs?: number
  /** Returns the evidence that the call yields; by default a `tool_result` whose payload is the result. */
  readonly evidence?: (result: Result, args: Args) => EvidenceClaim
}

/** The tool that undoes a call, and the arguments that it is called with; by default those of the call. */
interface UndoneBy<Args> {
  readonly tool: string
  readonly args?: (args: Args, context: GovernedContext) => JsonObject | Promise<JsonObject>
}

/** The answer of a probe: the effect happened, did not happen, or cannot be determined. */
export type Probed = 'applied' | 'absent' | 'unknown'

/** The evidence that a tool declares for a result. */
export interface EvidenceClaim {
  readonly type: EvidenceType
  readonly payload: JsonValue
  /** For `custom` evidence: a namespaced kind such as `com.example:invoice`. */
  readonly subtype?: string
}

/** The context that the `run` function of a governed tool gets as its second parameter. */
export interface GovernedContext {
  readonly signal: AbortSignal
  /** A key that is the same for every try of one call, also after a crash. */
  readonly idempotencyKey: string
  readonly requestId: string
  readonly traceId: string
  readonly callId: string
  /** Streams text to the user, marked as unverified. Throws in a tool that writes (UAICP §4.2). */
  readonly chunk: (text: string) => void
}

/**
 * A tool that runs only inside a governed run. The function that it wraps cannot be reached through this
 * object.
 */
export interface GovernedTool<Args = never, Result = unknown> {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly risk: Risk
  /**
   * Always throws, because only a run can call the tool (`run.call`, or the tools an adapter made for a
   * run).
   */
  readonly run: (args: Args, context?: unknown) => Promise<Result>
}

/** The tool that a governed tool wraps, and the governance declarations about it. */
export interface ToolCore {
  readonly tool: PlainTool<unknown, unknown>
  readonly governance: Governance<unknown, unknown>
}

// The wrapped tools are stored here and not in the objects that frameworks get, so that no member of such
// an object leads to the wrapped function.
const cores = new WeakMap<object, ToolCore>()

/**
 * Puts a tool under governance. Only `risk` is required and, for high-risk writes, `rollback`.
 *
 *     const refund = governed(refundTool, {
 *       risk: 'write_high_risk',
 *       rollback: { tool: 'charge', args: ({ order }) => ({ order }) },
 *     })
 *
 * The result looks like a tool and can be listed anywhere, but only a governed run can call it.
 */
export function governed<Args, Result>(
  tool: PlainTool<Args, Result> & Typed<Args, Result>,
  governance: Governance<NoInfer<Args>, NoInfer<Result>>,
): GovernedTool<Args, Result> {
  const { name, description, parameters } = tool
  const { risk, timeoutMs, rollback } = governance ?? {}
  const problems: string[] = []
  if (typeof name !== 'string' || name === '') problems.push('it has no name')
  if (typeof tool.run !== 'function') problems.push('it has no run function')
  if (!RISKS.includes(risk)) problems.push(`its risk is not one of ${RISKS.join(', ')}`)
  if (timeoutMs !== undefined && !(timeoutMs > 0)) problems.push('timeoutMs is not positive')
  if (rollback !== undefined && rollback !== 'impossible' && typeof rollback !== 'function')
    if (typeof rollback?.tool !== 'string')
      problems.push('its rollback is not a function, { tool } or impossible')
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
  // The types are dropped here: arguments are JSON of unknown shape, and the tool's own `run` checks
  // them.
  cores.set(handle, { tool, governance: { ...governance } } as unknown as ToolCore)
  return handle
}

/** Type information that some tools declare for inference. This member does not exist at run time. */
interface Typed<Args, Result> {
  readonly '~types'?: { readonly args: Args; readonly result: Result }
}

/** Returns the wrapped tool and the declarations of a governed tool; undefined for any other object. */
export function toolCore(tool: object): ToolCore | undefined {
  return cores.get(tool)
}

/**
 * One kind of task: the tools that it may use, and the evidence and verifiers that its result needs
 * before delivery.
 */
export interface TaskClass {
  readonly name: string
  readonly tools: readonly GovernedTool[]
  readonly needs: readonly Need[]
  readonly verifiers: readonly Verifier[]
  /** Combined with the governor's policies: deny overrides review, review overrides allow. */
  readonly policy?: Policy
  readonly repair?: RepairPolicy
  readonly limits?: TaskLimits
  /** Accept verifiers that use a model to judge; the log records that they are not mechanical. */
  readonly acceptModelGraded?: boolean
  /** Accept rollbacks of type `manual`, which a person has to carry out. */
  readonly allowManualRollback?: boolean
  /** Deliver even if a write is in doubt; the log records it. */
  readonly acceptInDoubt?: boolean
}

/** How often a failed run may try again (UAICP §4.1). */
export interface RepairPolicy {
  readonly max: number
  /** The state in which the next attempt starts; `plan` by default. */
  readonly to?: 'plan' | 'execute'
  /** Undo the writes of the failed attempt first; true by default. */
  readonly undoFirst?: boolean
}

/** The limits of a run. A child run gets the narrower of its own limits and its parent's. */
export interface TaskLimits {
  readonly deadlineMs?: number
  readonly toolCalls?: number
  /** How many levels of child runs are allowed; 3 by default. */
  readonly depth?: number
  /** The highest risk that a call may have; `write_high_risk` by default. */
  readonly ceiling?: Risk
}

/** Declares a task class. Throws one error that lists all mistakes. */
export function defineTaskClass(task: TaskClass): TaskClass {
  const { name, tools, needs, verifiers, repair, limits = {} } = task
  const problems: string[] = []
  if (typeof name !== 'string' || name === '') problems.push('it has no name')
  const ids = verifiers.map(({ id }) => id)
  if (new Set(ids).size < ids.length) problems.push('two verifiers have the same id')

  const toolNames = tools.map((tool) => tool.name)
  for (const tool of tools) {
    const core = toolCore(tool)
    if (!core) problems.push(`the tool "${tool.name}" declares no risk; wrap it with governed()`)
    const undo = core?.governance.rollback
    if (typeof undo === 'object' && !toolNames.includes(undo.tool))
      problems.push(`"${tool.name}" is undone by "${undo.tool}", which is none of its tools`)
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

/** A named check of a run's evidence before delivery (UAICP §2). */
export interface Verifier {
  readonly id: string
  readonly timeoutMs: number
  /** False for checks that a model makes. They are used only if the task class accepts them. */
  readonly mechanical?: boolean
  readonly check: (
    evidence: readonly Evidence[],
    context: VerifierContext,
  ) => VerifierAnswer | Promise<VerifierAnswer>
}

/**
 * The answer of a verifier: a list of checks, or a whole report from a verifier that runs elsewhere. With
 * any other answer the verification fails.
 */
export type VerifierAnswer = readonly Check[] | VerificationReport

/** The second argument of a verifier's `check` function, after the evidence. */
export interface VerifierContext {
  readonly request_id: string
  readonly candidate: JsonValue
  readonly signal: AbortSignal
}

/**
 * Declares a verifier, which checks the evidence of a run and returns the result of each check.
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
