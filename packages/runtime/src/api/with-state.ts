import type { DrainContext } from '../kernel/drain-context.ts'
import { writeOf } from '../kernel/facade-changes.ts'
import { createEnvReader } from '../services/env-reader.ts'
import { createThreadFacade } from '../services/thread-facade.ts'
import type { ThreadState } from '../thread-state.ts'
import { isOver, load, threadIsOver, toRuntimeError, type ApiContext } from './api-context.ts'
import type { LoadedThread } from './fold-cache.ts'

/** Gives code the state of a thread. What it changed is one commit when it returns. */
export async function withState<T>(
  context: ApiContext,
  threadId: string,
  work: (state: ThreadState) => T | Promise<T>,
  { allowsOver = false }: { readonly allowsOver?: boolean } = {},
): Promise<T> {
  const thread = await load(context, threadId)
  const { head, state: kernel } = thread
  if (!allowsOver && isOver(thread)) throw threadIsOver(thread)
  const agent = context.registry.agent(kernel.agent)
  const { instanceEnv, vault } = context
  const facade = createThreadFacade({
    kernel,
    head,
    environment: context,
    env: createEnvReader({ kernel, agent, side: 'a', instanceEnv, vault, threadId }),
    signal: new AbortController().signal,
    allowedTools: [],
    immediate: async (events) => {
      const append = events.filter((event) => !(event.type === 'custom_event' && event.isTransient))
      const shown = events.filter((event) => !append.includes(event))
      if (shown.length > 0) context.show(threadId, shown)
      if (append.length > 0)
        await context.commit({ point: 'tell', threads: [{ id: threadId, append }] })
    },
  })
  const result = await work(facade.state)
  const changes = facade.takeChanges()
  const { events, others, blobs, head: patch } = await writeOf(asDrain(context, thread), changes)
  if (events.length + others.length === 0) return result
  const change = {
    id: threadId,
    append: events,
    ...(!allowsOver && { mustBeLive: true }),
    ...(patch && { head: patch }),
    // Whoever works on it at this moment must not go on.
    ...(changes.terminates && { raisesEpoch: true }),
    wake: { by: context.clock.now() },
  }
  try {
    await context.commit({ point: 'with_state', threads: [change, ...others], blobs })
  } catch (error) {
    throw toRuntimeError(error)
  }
  return result
}

/** There is no drain here; what becomes of changes needs only to know which thread they are of. */
function asDrain(context: ApiContext, { head, state }: LoadedThread): DrainContext {
  const known: Pick<DrainContext, 'environment' | 'state' | 'head' | 'at'> = {
    environment: context,
    state,
    head,
    at: context.at,
  }
  return known as DrainContext
}
