import { load, type ApiContext } from './api-context.ts'
import { editThread } from './edit-thread.ts'
import type { ThreadEnv } from '../contract/thread-contents.ts'
import { inheritedEnv } from '../thread/changes.ts'
import { envSet, isSecret } from '../thread/env.ts'

/**
 * Creates the variable functions of the API. A new value is also written, in the same commit, to the
 * descendants that inherit the variable and have not ended.
 */
export function envApi(context: ApiContext): ThreadEnv {
  const parts = { ...context, load: async (id: string) => (await context.folds.load(id))?.state }
  return {
    async list(threadId) {
      const { state } = await load(context, threadId)
      return [...state.env]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { type, value }]) => ({
          name,
          type,
          value: type === 'text' ? value : undefined,
        }))
    },
    async set(threadId, name, value, { type } = {}) {
      await editThread(context, { threadId, point: 'set_env' }, async (thread) => {
        const { state } = thread
        if (value === null && !state.env.has(name)) return { result: undefined }
        const valueType = isSecret(context, state, name) ? 'secret' : (type ?? 'text')
        const isScoped = state.env.get(name)?.isScoped ?? false
        const setting = { name, value, valueType }
        const others = isScoped ? [] : await inheritedEnv(parts, thread.head, setting)
        const event = { ...setting, threadId, vault: context.vault, at: context.at(), isScoped }
        return { result: undefined, change: { append: [envSet(event)] }, others }
      })
    },
  }
}
