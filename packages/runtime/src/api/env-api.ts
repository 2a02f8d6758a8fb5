import type { ThreadEnv } from '../runtime-api.ts'
import { createEnvReader } from '../services/env-reader.ts'
import { envSet } from '../services/facade-env.ts'
import type { ThreadChange, ThreadHead } from '../store/store.ts'
import { editThread, load, type ApiContext } from './api-context.ts'
import { descendantsOf } from './descendants.ts'
import type { LoadedThread } from './fold-cache.ts'

/** The variables of threads. What is set reaches the live descendants in the same commit. */
export function envApi(context: ApiContext): ThreadEnv {
  return {
    async list(threadId) {
      const { state } = await load(context, threadId)
      return [...state.env]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { type, value }]) => ({ name, type, ...(type === 'text' && { value }) }))
    },
    async set(threadId, name, value, { type } = {}) {
      await editThread(context, { threadId, point: 'set_env' }, async (thread) => {
        const { state } = thread
        if (value === null && !state.env.has(name)) return { result: undefined }
        const valueType = isSecret(context, thread, name) ? 'secret' : (type ?? 'text')
        const isScoped = state.env.get(name)?.isScoped ?? false
        const setting = { name, value, valueType }
        const others = isScoped ? [] : await inherited(context, thread.head, setting)
        const event = { ...setting, threadId, vault: context.vault, at: context.at(), isScoped }
        return { result: undefined, change: { append: [envSet(event)] }, others }
      })
    },
  }
}

/** What is a secret stays one, whatever the caller says. */
function isSecret(
  { registry, vault, instanceEnv }: ApiContext,
  thread: LoadedThread,
  name: string,
) {
  const { head, state } = thread
  const agent = registry.agents.get(state.agent)
  if (!agent) return state.env.get(name)?.type === 'secret'
  const options = { kernel: state, agent, instanceEnv, vault, threadId: head.id }
  return createEnvReader({ ...options, side: 'a' }).isSecret(name)
}

interface Setting {
  readonly name: string
  readonly value: string | null
  readonly valueType: 'text' | 'secret'
}

/** The same for every live descendant, down to those that were given a value of their own. */
async function inherited(
  context: ApiContext,
  head: ThreadHead,
  setting: Setting,
): Promise<readonly ThreadChange[]> {
  const changes: ThreadChange[] = []
  const reached = new Set([head.id])
  for (const { id, parentId } of await descendantsOf(context, head)) {
    if (parentId === null || !reached.has(parentId)) continue
    const child = await context.folds.load(id)
    if (!child || child.state.env.get(setting.name)?.isScoped) continue
    reached.add(id)
    if (child.head.lifecycle === 'terminated' || child.head.lifecycle === 'erased') continue
    const valueType = isSecret(context, child, setting.name) ? 'secret' : setting.valueType
    const event = { ...setting, valueType, threadId: id, vault: context.vault, at: context.at() }
    changes.push({ id, append: [envSet(event)] })
  }
  return changes
}
