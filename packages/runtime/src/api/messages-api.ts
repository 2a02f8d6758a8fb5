import type { Threads } from '../runtime-api.ts'
import { facadeFiles } from '../services/facade-files.ts'
import { facadeMessages } from '../services/facade-messages.ts'
import { selectMessages, storedMessage, storedMessages } from '../services/stored-messages.ts'
import { load, type ApiContext } from './api-context.ts'
import { editWith } from './facade-edit.ts'
import { unsendMessage } from './send-message.ts'

/** The messages of threads, by the rules that tools have. */
export function messagesApi(
  context: ApiContext,
): Pick<Threads, 'messages' | 'updateMessage' | 'deleteMessage'> {
  return {
    async messages(threadId, query) {
      const { state } = await load(context, threadId)
      return selectMessages(storedMessages(state), query)
    },
    async updateMessage(threadId, messageId, content) {
      const target = { threadId, point: 'update_message' }
      await editWith(context, target, async (buffer) => {
        const messages = facadeMessages(buffer, facadeFiles(buffer))
        messages.updateMessage(messageId, content)
        const { message } = messages.getMessage(messageId)! // it was found just now
        const kept = await context.hooks?.beforeUpdate(threadId, messageId, message)
        if (!kept || kept === message) return
        messages.updateMessage(messageId, kept)
        buffer.events.shift() // the hook's version alone is stored
      })
      const stored = storedMessage((await load(context, threadId)).state, messageId)
      if (stored) await context.hooks?.afterUpdate(threadId, stored)
    },
    async deleteMessage(threadId, messageId) {
      // One that still waits is taken back.
      if (await unsendMessage(context, threadId, messageId)) return
      const target = { threadId, point: 'delete_message' }
      await editWith(context, target, (buffer) => {
        facadeMessages(buffer, facadeFiles(buffer)).deleteMessage(messageId)
      })
    },
  }
}
