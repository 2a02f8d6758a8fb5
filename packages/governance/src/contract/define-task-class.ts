import type { JsonValue } from '@skein/base'
import { RISKS, type Risk } from './envelope.ts'
import { EVIDENCE_TYPES } from './evidence.ts'
import type { Check, Evidence, Need, VerificationReport } from './evidence.ts'
import { toolCore, type GovernedTool } from './governed.ts'
import type { Policy } from './policy.ts'
import { invalidDefinition } from './reason.ts'

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
