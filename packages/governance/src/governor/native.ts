import { hashJson } from '../digest.ts'
import { judge } from './decide.ts'
import { GovernanceError, reason } from '../reason.ts'
import { conflict, type GovernedRequest } from './request.ts'

/**
 * A tool that runs at the model's vendor cannot be wrapped: nothing here sees its arguments or its
 * effect. It is refused unless a policy allows it by name; even then it is logged as ungoverned and
 * never yields evidence.
 */
export async function admitNative(request: GovernedRequest, tool: string): Promise<void> {
  const { state, core, task, policyHash } = request
  if (state.state === 'plan') await request.move('execute')
  if (state.state !== 'execute') throw conflict(request, `it is in ${state.state}`)
  const action = Object.freeze({
    request_id: state.request_id,
    trace_id: state.trace_id,
    call_id: `native:${tool}`,
    task: task.name,
    tool,
    risk: 'write_high_risk' as const,
    args: null,
    args_hash: hashJson(null),
    identity: state.identity,
    depth: state.opened.depth,
    policy_hash: policyHash,
    native: true,
  })
  const limits = { timeoutMs: core.limits.policyTimeoutMs, timer: core.timer }
  const { decision } = await judge(action, request.policies, limits)
  const allowed = decision.effect === 'allow'
  const why = decision.reasons ?? []
  const reasons = allowed ? [] : [reason('TOOL_UNGOVERNED', tool), ...why]
  const data = { tool, allowed, ...(!allowed && { reasons }) }
  const outcome = allowed ? 'uncertain' : 'failure'
  await request.submit({ type: 'native_tool', data }, { outcome, actor: request.agent })
  if (allowed) return
  throw new GovernanceError(
    `The tool "${tool}" runs at the model's vendor and is not governed.`,
    [reason('TOOL_UNGOVERNED', tool), ...why],
    { hint: 'Allow it in a policy that looks at action.native, or use a tool of your own.' },
  )
}
