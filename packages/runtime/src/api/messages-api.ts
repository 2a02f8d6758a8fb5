import type { Threads } from '../runtime-api.ts'
import { facadeFiles } from '../thread/files.ts'
import {
  facadeMessages,
  type FacadeMessages,
  selectMessages,
  storedMessages,
} from '../thread/messages.ts'
import { type ApiContext, load } from './api-context.ts'
import { bufferOf, editWith } from './facade-edit.ts'
import { unsendMessage } from './send-message.ts'
import { afterUpdate, beforeUpdate } from './update-hooks.ts'
import type { FacadeBuffer } from '../thread/values.ts'

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
      const { state } = await load(context, threadId)
      const scratch = facadeOf(bufferOf(context, state))
      scratch.updateMessage(messageId, content)
      const { message } = scratch.getMessage(messageId)! // it was found just now
      // Once, whatever others write meanwhile: hooks may write themselves.
      const kept = await beforeUpdate(context, threadId, message)
      const target = { threadId, point: 'update_message' }
      await editWith(context, target, (buffer) => facadeOf(buffer).updateMessage(messageId, kept))
      await afterUpdate(context, threadId, messageId)
    },
    async deleteMessage(threadId, messageId) {
      // One that still waits is taken back.
      if (await unsendMessage(context, threadId, messageId)) return
      const target = { threadId, point: 'delete_message' }
      await editWith(context, target, (buffer) => {
        facadeOf(buffer).deleteMessage(messageId)
      })
    },
  }
}

function facadeOf(buffer: FacadeBuffer): FacadeMessages {
  return facadeMessages(buffer, facadeFiles(buffer))
}
