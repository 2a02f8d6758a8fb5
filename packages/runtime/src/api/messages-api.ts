import type { Message } from '@skein/ai'
import { load, type ApiContext } from './api-context.ts'
import { bufferOf, editWith } from './edit-thread.ts'
import { redacted } from './redacted-changes.ts'
import { unsendMessage } from './unsend-message.ts'
import { withState } from './with-state.ts'
import type { Threads } from '../contract/threads.ts'
import type { HookName } from '../definitions/hooks.ts'
import type { HookDefinition } from '../definitions/hook-definition.ts'
import { runHook, type HookPlace } from '../hooks/run-hook.ts'
import { registryOf } from '../state/kernel-state.ts'
import { facadeMessages, selectMessages, storedMessage, storedMessages, type FacadeMessages } from '../thread/messages.ts'
import { facadeFiles } from '../thread/facade-files.ts'
import type { FacadeBuffer } from '../thread/facade-buffer.ts'

/** Creates the message functions of the API. They make the same checks as the message functions of tools. */
export function messagesApi(
  context: ApiContext,
): Pick<Threads, 'messages' | 'updateMessage' | 'deleteMessage'> {
  return {
    async messages(threadId, query) {
      const { state } = await load(context, threadId)
      const { order, offset = 0, limit = Infinity } = query ?? {}
      const last = order === 'desc' && offset >= 0 && limit >= 0 ? offset + limit : Infinity
      return selectMessages(storedMessages(state, last), query)
    },
    async updateMessage(threadId, messageId, content) {
      const { state } = await load(context, threadId)
      const scratch = facadeOf(bufferOf(context, state))
      scratch.updateMessage(messageId, content)
      let { message } = scratch.getMessage(messageId)! // the message was found above
      // Hooks run once, before the edit: the edit may be tried several times, and hooks may write to the
      // thread.
      for (const hook of await hooksOf(context, threadId, 'before_update_message')) {
        const result = await runApiHook(context, threadId, hook, [messageId, message])
        if (result) message = result.answer as Message // an answer of this kind of hook is a message
      }
      const target = { threadId, point: 'update_message' }
      await editWith(context, target, (buffer) =>
        facadeOf(buffer).updateMessage(messageId, message),
      )
      for (const hook of await hooksOf(context, threadId, 'after_update_message')) {
        const after = storedMessage((await load(context, threadId)).state, messageId)
        if (after) await runApiHook(context, threadId, hook, [after])
      }
    },
    async deleteMessage(threadId, messageId) {
      // A message that is still in the queue is withdrawn.
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

async function hooksOf(
  context: ApiContext,
  threadId: string,
  name: HookName,
): Promise<readonly HookDefinition[]> {
  const { state } = await load(context, threadId)
  const agent = registryOf(context.registry, state).agents.get(state.agent)
  return agent?.a.hooks.filter(({ hook }) => hook === name) ?? []
}

/** Runs a hook for a call of the API, in the same way as in the work on a thread. */
async function runApiHook(
  context: ApiContext,
  threadId: string,
  hook: HookDefinition,
  args: readonly unknown[],
): Promise<{ readonly answer: unknown } | undefined> {
  const { state } = await load(context, threadId)
  const { limits, watchdog } = context
  const place: HookPlace = {
    state,
    timeoutMs: limits.hookTimeoutMs,
    withState: (_, work) => withState(context, threadId, work, { isRepeatable: false }),
    runUserCode: (code, work) => (watchdog ? watchdog.run({ ...code, threadId }, work) : work()),
    at: () => context.at(),
    async raise(event) {
      const { state: current } = await load(context, threadId)
      const threads = redacted(context, current, [{ id: threadId, append: [event] }])
      await context.commit({ point: 'hook_failed', threads })
    },
    report: (error) => context.report(error, threadId),
  }
  return runHook(place, hook, args)
}
