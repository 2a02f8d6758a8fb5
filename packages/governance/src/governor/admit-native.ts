import { hashText } from '../contract/envelope.ts'
import { reason, refusal, toLogText } from '../contract/reason.ts'
import { findLimitReasons } from './candidate.ts'
import { judge, toAction } from './judge.ts'
import type { GovernedRequest } from './request.ts'

/**
 * Decides whether a tool that runs at the model's vendor may be used. Such a tool cannot be wrapped: its
 * arguments and its effect are not visible here. It is refused unless a policy allows it. The log entry
 * of an allowed tool has the outcome `uncertain`, and the tool never yields evidence.
 */
export async function admitNative(request: GovernedRequest, tool: string): Promise<void> {
  await request.execute()
  const act = {
    call: `native:${tool}`,
    tool,
    risk: 'write_high_risk',
    args: null,
    args_hash: hashText('null'),
    native: true,
  } as const
  let reasons = findLimitReasons(request, act)
  if (reasons.length === 0) {
    const { effect, reasons: said = [] } = (await judge(request, toAction(request, act))).decision
    const detail =
      'it runs at the model’s vendor; a policy that looks at action.native can allow it'
    if (effect !== 'allow') reasons = [reason('TOOL_UNGOVERNED', tool, detail), ...said]
  }
  const isAllowed = reasons.length === 0
  const data = {
    tool: toLogText(tool),
    allowed: isAllowed,
    reasons: isAllowed ? undefined : reasons,
  }
  const outcome = isAllowed ? 'uncertain' : 'failure'
  await request.submit({ type: 'native_tool', data }, { outcome, actor: request.agent })
  if (!isAllowed) throw refusal(tool, reasons)
}
