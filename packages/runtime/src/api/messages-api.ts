import type { Threads } from '../contract/runtime-api.ts'
import type { FacadeBuffer } from '../thread/values.ts'
import { facadeFiles } from '../thread/files.ts'
import {
  facadeMessages,
  type FacadeMessages,
  selectMessages,
  storedMessage,
  storedMessages,
} from '../thread/messages.ts'
import { type ApiContext, bufferOf, editWith, load } from './api-context.ts'
import { unsendMessage } from './send-message.ts'
import type { Message } from '@skein/ai'
import type { HookName } from '../definitions/hooks.ts'
import type { HookDefinition } from '../definitions/types.ts'
import { messageOf } from '../contract/error.ts'
import { within } from '../hooks/run.ts'
import { withState } from './with-state.ts'

/** The messages of threads, under the same rules as for tools. */
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
      let { message } = scratch.getMessage(messageId)! // it was found just now
      // Hooks run once, before the edit, which may be tried several times: they may write themselves.
      for (const hook of await hooksOf(context, threadId, 'before_update_message')) {
        const changed = await runHook(context, { threadId, hook, args: [messageId, message] })
        if (changed) message = changed as Message // what the hook's signature says
      }
      const target = { threadId, point: 'update_message' }
      await editWith(context, target, (buffer) =>
        facadeOf(buffer).updateMessage(messageId, message),
      )
      for (const hook of await hooksOf(context, threadId, 'after_update_message')) {
        const stored = storedMessage((await load(context, threadId)).state, messageId)
        if (stored) await runHook(context, { threadId, hook, args: [stored] })
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
  const agent = context.registry.agents.get(state.agent)
  return agent?.a.hooks.filter(({ hook }) => hook === name) ?? []
}

interface HookRun {
  readonly threadId: string
  readonly hook: HookDefinition
  readonly args: readonly unknown[]
}

/** A hook that throws or takes too long is recorded in the log and skipped. */
async function runHook(context: ApiContext, { threadId, hook, args }: HookRun): Promise<unknown> {
  const timeoutMs = hook.timeoutMs ?? context.limits.hookTimeoutMs
  const execute = hook.execute as (...all: unknown[]) => unknown // the name was compared before
  try {
    return await withState(context, threadId, (state) =>
      within(timeoutMs, async () => execute(state, ...args)),
    )
  } catch (error) {
    const message = `The hook "${hook.id}" failed: ${messageOf(error)}`
    const raised = { type: 'error_raised', at: context.at(), code: 'HOOK_FAILED', message } as const
    await context.commit({ point: 'hook_failed', threads: [{ id: threadId, append: [raised] }] })
    return undefined
  }
}
