import { type Risk, RISKS } from './envelope.ts'
import {
  type Check,
  type Evidence,
  EVIDENCE_TYPES,
  type Need,
  type VerificationReport,
} from './evidence.ts'
import { type GovernedTool, toolCore } from './governed.ts'
import { invalidDefinition } from './reason.ts'
import type { Policy } from './policy.ts'
import type { JsonValue } from '@skein/base'

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
  /** Accept verifiers that are not mechanical; the choice is logged. */
  readonly acceptModelGraded?: boolean
  /** Accept `manual` rollbacks of high-risk writes. */
  readonly allowManualRollback?: boolean
  /** Deliver although nobody knows what became of a write; the log says that it is in doubt. */
  readonly acceptInDoubt?: boolean
}

/** UAICP §4.1: how often a failed run may try again. */
export interface RepairPolicy {
  readonly max: number
  /** Where to go back to, `plan` by default. */
  readonly to?: 'plan' | 'execute'
  /** Invert the writes of the failed attempt first; true by default. */
  readonly undoFirst?: boolean
}

export interface TaskLimits {
  readonly deadlineMs?: number
  readonly toolCalls?: number
  /** Levels of children; 3 by default. */
  readonly depth?: number
  /** No tool above this tier; `write_high_risk` by default. */
  readonly ceiling?: Risk
}

/** Declares a task class. All mistakes are named at once. */
export function defineTaskClass(task: TaskClass): TaskClass {
  const problems = [
    ...findNameProblems(task),
    ...findToolProblems(task),
    ...findLimitProblems(task),
  ]
  if (problems.length > 0) throw invalidDefinition('task class', task.name, problems)
  return Object.freeze({
    ...task,
    tools: Object.freeze([...task.tools]),
    needs: Object.freeze(task.needs.map((need) => Object.freeze({ ...need }))),
    verifiers: Object.freeze([...task.verifiers]),
  })
}

function findNameProblems({ name, verifiers }: TaskClass): string[] {
  const problems: string[] = []
  if (typeof name !== 'string' || name === '') problems.push('it has no name')
  const ids = verifiers.map(({ id }) => id)
  if (new Set(ids).size < ids.length) problems.push('two verifiers have the same id')
  return problems
}

function findToolProblems({ tools, needs }: TaskClass): string[] {
  const names = tools.map((tool) => tool.name)
  const problems = tools
    .filter((tool) => !toolCore(tool))
    .map((tool) => `the tool "${tool.name}" declares no risk; wrap it with governed()`)
  if (new Set(names).size < names.length) problems.push('two tools have the same name')
  for (const { type, source, min = 1 } of needs) {
    if (!EVIDENCE_TYPES.includes(type)) problems.push(`"${type}" is not a type of evidence`)
    if (source !== undefined && !names.includes(source)) {
      problems.push(`it needs evidence from "${source}", which is none of its tools`)
    }
    if (!Number.isInteger(min) || min < 1) problems.push('a need has a min below 1')
  }
  return problems
}

function findLimitProblems({ repair, limits = {} }: TaskClass): string[] {
  const problems: string[] = []
  if (repair && !isCount(repair.max)) problems.push('repair.max must be a number of repairs')
  const { deadlineMs, toolCalls, depth, ceiling } = limits
  if (deadlineMs !== undefined && !(deadlineMs > 0)) problems.push('deadlineMs is not positive')
  if (toolCalls !== undefined && !isCount(toolCalls)) problems.push('toolCalls is not a count')
  if (depth !== undefined && !isCount(depth)) problems.push('depth is not a count')
  if (ceiling !== undefined && !RISKS.includes(ceiling)) problems.push('ceiling is not a risk tier')
  return problems
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

/** Checks, or a whole report from a verifier that lives elsewhere. Anything else fails. */
export type VerifierAnswer = readonly Check[] | VerificationReport

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
