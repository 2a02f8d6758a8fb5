import type { Message } from '@skein/ai'
import type { HookName } from '../definitions/hooks.ts'
import type { HookDefinition } from '../definitions/types.ts'
import { messageOf } from '../error.ts'
import { within } from '../hooks/run.ts'
import { storedMessage } from '../thread/messages.ts'
import { load, type ApiContext } from './api-context.ts'
import { withState } from './with-state.ts'

/** Lets the hooks of the thread's agent see and change what a message is about to become. */
export async function beforeUpdate(
  context: ApiContext,
  threadId: string,
  message: Message,
): Promise<Message> {
  let kept = message
  for (const hook of await hooksOf(context, threadId, 'before_update_message')) {
    const answer = await runHook(context, { threadId, hook, args: [message.id, kept] })
    if (answer) kept = answer as Message // what the hook's signature says
  }
  return kept
}

export async function afterUpdate(
  context: ApiContext,
  threadId: string,
  messageId: string,
): Promise<void> {
  for (const hook of await hooksOf(context, threadId, 'after_update_message')) {
    const stored = storedMessage((await load(context, threadId)).state, messageId)
    if (stored) await runHook(context, { threadId, hook, args: [stored] })
  }
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

/** One that throws or takes too long is noted in the log and passed over. */
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
