import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { hashText, isAtLeast, type Risk, RISKS, type RollbackAction } from '../contract/envelope.ts'
import { type GovernedTool, toolCore, type ToolCore } from '../contract/governed.ts'
import type { CallRequest } from './admit.ts'
import { messageOf, reason, type Reason, toLogText } from '../contract/reason.ts'
import type { AdmittedCall, GovernedRequest } from './request.ts'
import { findRollbackIssues } from '../schema/validate.ts'
import { contextOf } from './execute.ts'

/** A call on its way through the gate. */
export interface Candidate {
  readonly id: string
  readonly core: ToolCore
  readonly tool: string
  readonly risk: Risk
  readonly args: JsonValue
  readonly text: string
  readonly args_hash: AdmittedCall['args_hash']
}

type Snapshot =
  | Candidate
  | {
      readonly call: Pick<Candidate, 'id' | 'tool' | 'risk' | 'args_hash'>
      readonly reasons: readonly Reason[]
    }

/** Clones, freezes and hashes the arguments: policy, people and tool all see this one object. */
export function snapshot(request: GovernedRequest, { id, tool, args }: CallRequest): Snapshot {
  const found = findTool(request, tool)
  const core = found && toolCore(found)
  // A name that nobody declared is whatever a model wrote.
  const base = { id, tool: found ? tool : toLogText(tool), risk: found?.risk ?? RISKS[2] }
  let text: string
  try {
    text = canonicalJson(args ?? {})
  } catch (error) {
    const reasons = [reason('SCHEMA_INVALID', tool, messageOf(error))]
    return { call: { ...base, args_hash: hashText('null') }, reasons }
  }
  const made = { ...base, text, args_hash: hashText(text) }
  if (!core) {
    return { call: made, reasons: [reason('TOOL_UNKNOWN', tool, 'it is none of the task’s tools')] }
  }
  const frozen = deepFreeze(JSON.parse(text) as JsonValue)
  const risk = core.governance.raise ? raisedRisk(core, frozen) : base.risk
  if (!risk) return { call: made, reasons: [reason('RISK_UNDECLARED', tool, 'raise() failed')] }
  return { ...made, risk, core, args: frozen }
}

/** One of the task's tools by its name. */
function findTool({ task }: GovernedRequest, name: string): GovernedTool | undefined {
  return task.tools.find((tool) => tool.name === name)
}

/** The higher of both tiers; undefined when `raise` gives none. */
function raisedRisk({ governance }: ToolCore, args: JsonValue): Risk | undefined {
  try {
    const raised = governance.raise?.(args) ?? governance.risk
    if (!RISKS.includes(raised)) return undefined
    return isAtLeast(raised, governance.risk) ? raised : governance.risk
  } catch {
    // A tier that cannot be told is none; the caller refuses.
    return undefined
  }
}

/** Why the bounds of the run, or of one around it, do not allow the call. */
export function findLimitReasons(request: GovernedRequest, { tool, risk }: Candidate): Reason[] {
  const { state, core, stopped } = request
  if (stopped) return [stopped]
  const { deadline, ceiling } = state.opened.limits
  if (deadline !== undefined && core.clock.now() >= deadline) return [reason('DEADLINE_EXCEEDED')]
  if (!isAtLeast(ceiling, risk))
    return [reason('RISK_CEILING', tool, `${risk} is above ${ceiling}`)]
  for (let at: GovernedRequest | undefined = request; at; at = at.parent) {
    const limit = at.state.opened.limits.tool_calls
    if (limit !== undefined && callsOf(at) >= limit) {
      return [reason('BUDGET_EXCEEDED', tool, `${limit} calls of ${at.task.name}`)]
    }
  }
  return []
}

/** Calls made or running, with those of children that are still open; settled ones are in the count. */
export function callsOf(request: GovernedRequest): number {
  let count = request.state.callCount
  for (const id of request.running.keys()) {
    if (request.state.calls.get(id)?.status !== 'started') count += 1
  }
  for (const [id, child] of request.children) {
    if (!request.state.children.get(id)?.settled) count += callsOf(child)
  }
  return count
}

/** The call as its tool will see it. */
export function toAdmitted({ state }: GovernedRequest, made: Candidate): AdmittedCall {
  const { id, tool, risk, args, args_hash } = made
  return {
    request_id: state.request_id,
    call: id,
    tool,
    risk,
    args,
    args_hash,
    // One key per effect: the same after a crash, another when a later attempt makes it anew.
    idempotency_key: `${state.request_id}/${id}@${state.attempt}`,
  }
}

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
