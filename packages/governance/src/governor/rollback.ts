import { canonicalJson, deepFreeze } from '@skein/base'
import type { RollbackAction } from '../envelope.ts'
import { messageOf, reason, type Reason } from '../reason.ts'
import { findRollbackIssues } from '../validate-gate.ts'
import type { GovernedRequest } from './request.ts'
import { findTool, toAdmitted, type Candidate } from './snapshot.ts'
import { contextOf } from './tool-context.ts'

/** The declared inverse, or why there is none that serves. */
export async function declareRollback(
  request: GovernedRequest,
  made: Candidate,
): Promise<RollbackAction | undefined | Reason[]> {
  const recorded = request.state.reviews.get(made.id)?.rollback
  if (recorded) return recorded
  const { rollback } = made.core.governance
  const isNeeded = made.risk === 'write_high_risk'
  if (!rollback)
    return isNeeded ? [reason('ROLLBACK_REQUIRED', made.tool, 'none declared')] : undefined
  try {
    const declared = await rollback(made.args, contextOf(request, toAdmitted(request, made)))
    const action = deepFreeze(JSON.parse(canonicalJson(declared)) as RollbackAction)
    const problem = findRollbackProblem(request, action)
    return problem ? [reason('ROLLBACK_REQUIRED', made.tool, problem)] : action
  } catch (error) {
    return [reason('ROLLBACK_REQUIRED', made.tool, messageOf(error))]
  }
}

function findRollbackProblem(request: GovernedRequest, action: RollbackAction): string | undefined {
  let problem: string | undefined
  findRollbackIssues(action, (_rule, path, message) => {
    problem ??= `${path} ${message}`
  })
  if (problem) return problem
  if (action.type === 'manual') {
    return request.task.allowManualRollback ? undefined : 'the task allows no manual rollback'
  }
  if (action.type === 'tool_call') {
    return findTool(request, action.target) ? undefined : `there is no tool "${action.target}"`
  }
  return Object.hasOwn(request.core.undoers, action.type)
    ? undefined
    : `nothing inverts actions of type "${action.type}"`
}
