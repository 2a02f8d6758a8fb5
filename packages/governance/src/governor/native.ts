import { hashText } from '../digest.ts'
import { judge, toAction } from './decide.ts'
import { reason, refusal, toLogText } from '../reason.ts'
import { conflict, type GovernedRequest } from './request.ts'

/**
 * A tool that runs at the model's vendor cannot be wrapped: nothing here sees its arguments or its
 * effect. It is refused unless a policy allows it by name; even then it is logged as ungoverned and
 * never yields evidence.
 */
export async function admitNative(request: GovernedRequest, tool: string): Promise<void> {
  const { state } = request
  if (state.state === 'plan') await request.move('execute')
  if (state.state !== 'execute') throw conflict(request, `it is in ${state.state}`)
  const action = toAction(request, {
    call: `native:${tool}`,
    tool,
    risk: 'write_high_risk',
    args: null,
    args_hash: hashText('null'),
    native: true,
  })
  const { decision } = await judge(request, action)
  const allowed = decision.effect === 'allow'
  const detail = 'it runs at the model’s vendor; a policy that looks at action.native can allow it'
  const reasons = [reason('TOOL_UNGOVERNED', tool, detail), ...(decision.reasons ?? [])]
  const data = { tool: toLogText(tool), allowed, reasons: allowed ? undefined : reasons }
  const outcome = allowed ? 'uncertain' : 'failure'
  await request.submit({ type: 'native_tool', data }, { outcome, actor: request.agent })
  if (!allowed) throw refusal(tool, reasons)
}
