import { writeOf } from '../thread/changes.ts'
import { createEnvReader } from '../thread/env.ts'
import { createThreadFacade } from '../thread/facade.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import { rememberRedactor } from '../telemetry/logger.ts'
import { isOver, load, threadIsOver, toRuntimeError, type ApiContext } from './api-context.ts'

/** Calls a function with the state of a thread. Its changes are written in one commit when it returns. */
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
      if (shown.length > 0) context.show(threadId, safe(shown))
      if (append.length > 0)
        await context.commit({ point: 'tell', threads: [{ id: threadId, append: safe(append) }] })
    },
  })
  /** Returns the value with all secrets of the thread redacted, including those that were just set. */
  function safe<Value>(value: Value): Value {
    return vault.redactor(facade.secrets()).json(value)
  }
  let result: T
  try {
    result = await work(facade.state)
  } catch (error) {
    const redactor = vault.redactor(facade.secrets())
    rememberRedactor(error, (text) => redactor.text(text))
    throw error
  }
  const hidden = facade.secrets()
  const changes = facade.takeChanges()
  const place = { environment: context, state: kernel, head, at: context.at }
  const { events, others, blobs, head: patch } = await writeOf(place, changes)
  if (events.length + others.length === 0) return result
  const change = {
    id: threadId,
    append: events,
    ...(!allowsOver && { mustBeLive: true }),
    head: patch,
    // Raising the epoch prevents a running drain from writing anything more.
    ...(changes.terminates && { raisesEpoch: true }),
    wake: { by: context.clock.now() },
  }
  try {
    const threads = vault.redactor(hidden).json([change, ...others])
    await context.commit({ point: 'with_state', threads, blobs })
  } catch (error) {
    throw toRuntimeError(error)
  }
  return result
}
