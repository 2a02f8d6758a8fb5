import { type Turn, UserMessage } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { costOf } from '../contract/usage.ts'
import { generateForRuntime } from './runtime-request.ts'
import { logAnswer, logRequest, logLoss, withLoss, type LogWrites } from './log.ts'

/**
 * Asks a model, the first one of this side of the conversation, for a text that the runtime needs, e.g. the first
 * instruction for a subagent, without tools and history. The caller commits `log`: the request and what came of it.
 */
export async function askLogged(
  context: DrainContext,
  side: ResolvedSide,
  { system, input }: { readonly system: string; readonly input: string },
): Promise<{ readonly turn?: Turn; readonly error?: unknown; readonly log: LogWrites }> {
  const { clock, ids } = context.environment
  const model = side.prompt.models[0]!
  const safe = context.redactor()?.text(input) ?? input
  const messages = [new UserMessage(safe, { clock, ids })]
  const params = model.definition?.providerOptions ?? {}
  const facts = { side, model, system, tools: [], params, messages, structure: undefined }
  const log = logRequest(context, facts)
  try {
    const turn = await generateForRuntime(context, side, messages, { system })
    const costUsd = costOf(model, turn.usage)
    const writes = logAnswer(context, log, { turn, costUsd })
    return { turn, log: withLoss(context, { log, model }, writes, turn.usage) }
  } catch (error) {
    return { error, log: logLoss(context, { log, model }, error) }
  }
}
