import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeMessageAdded } from '../contract/event.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { beforeCreate } from '../hooks/hooks.ts'

/**
 * Returns the events that move every queued message into the history, in order, and before them the news of earlier
 * calls. The hooks of `side`, the side of the conversation that will answer, process them. Messages that these hooks
 * queue stay queued until the next step.
 */
export async function takeQueue(
  context: DrainContext,
  side: ResolvedSide,
): Promise<RuntimeMessageAdded[]> {
  const messages: RuntimeMessageAdded[] = []
  const waiting = [...context.state.news, ...context.state.queue]
  for (const queued of waiting) {
    const { queueId, role, message, attachments, subagentId, metadata, userId } = queued
    const event: RuntimeMessageAdded = {
      type: 'message_added',
      at: context.at(),
      turnId: queueId,
      message,
      side: role === 'user' ? 'b' : 'a',
      queueId,
      isSilent: queued.isSilent || undefined,
      attachments,
      subagentId,
      metadata,
      userId,
    }
    messages.push(await beforeCreate(context, side, event))
  }
  return messages
}
