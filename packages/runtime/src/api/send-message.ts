import type { SendMessage, Sent } from '../runtime-api.ts'
import { editThread, type ApiContext } from './api-context.ts'
import { checkQueued, queuedMessage } from './queued-message.ts'

/** Queues a message, once per message id, and wakes the thread. */
export async function sendMessage(
  context: ApiContext,
  threadId: string,
  sent: SendMessage | string,
): Promise<Sent> {
  const message = queuedMessage(context, sent)
  const { queueId } = message
  const { result, seq } = await editThread(
    context,
    { threadId, point: 'send_message' },
    ({ state }) => {
      const known = state.queuedIds.get(queueId)
      if (known !== undefined) return { result: known }
      checkQueued(message, state)
      const wake = { by: context.clock.now() }
      return { result: undefined, change: { append: [message], wake } }
    },
  )
  return { queueId, messageId: queueId, seq: result ?? seq }
}

/** Takes back a message that still waits; false when it was taken already, or never sent. */
export async function unsendMessage(
  context: ApiContext,
  threadId: string,
  queueId: string,
): Promise<boolean> {
  const target = { threadId, point: 'unsend_message' }
  const { result } = await editThread(context, target, ({ state }) => {
    if (!state.queue.some((queued) => queued.queueId === queueId)) return { result: false }
    const append = [{ type: 'message_unqueued', at: context.at(), queueId } as const]
    return { result: true, change: { append } }
  })
  return result
}
