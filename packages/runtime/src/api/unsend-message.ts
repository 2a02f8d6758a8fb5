import type { ApiContext } from './api-context.ts'
import { editThread } from './edit-thread.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'

/**
 * Withdraws a message that is still in the queue. Returns false when it was already read or never sent. A message of
 * the parent stays, because the parent may wait for its answer.
 */
export async function unsendMessage(
  context: ApiContext,
  threadId: string,
  queueId: string,
): Promise<boolean> {
  const target = { threadId, point: 'unsend_message' }
  const { result } = await editThread(context, target, ({ state }) => {
    const queuedMessage = state.queue.find((one) => one.queueId === queueId)
    if (!queuedMessage) return { result: false }
    if (queuedMessage.metadata?.['from'] === 'parent')
      throw new RuntimeError(`The message ${queueId} of the parent cannot be withdrawn.`, {
        code: 'INPUT_INVALID',
        hint: 'Stop the thread instead: its parent then gets an answer.',
      })
    return { result: true, change: { append: [unqueued(context, queueId)] } }
  })
  return result
}

/** Creates the event that takes a message out of the queue. */
export function unqueued(context: ApiContext, queueId: string): RuntimeEvent {
  return { type: 'message_unqueued', at: context.at(), queueId }
}
