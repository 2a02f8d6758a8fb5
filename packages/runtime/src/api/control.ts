import { headOf, type ApiContext } from './api-context.ts'
import { editThread, isOver, type Edit } from './edit-thread.ts'
import { asTold } from '../children/tell-parent.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Threads } from '../contract/threads.ts'
import { settled } from '../dispatch/dispatcher.ts'
import type { LoadedThread } from '../state/fold-cache.ts'
import { openCalls } from '../state/kernel-state.ts'
import type { ThreadChange } from '../store/commit.ts'
import type { ThreadHead } from '../store/head.ts'
import { descendantsOf } from '../store/descendants.ts'

type Options<Name extends 'stop' | 'resume' | 'terminate'> = NonNullable<
  Parameters<Threads[Name]>[1]
>

/** Asks a thread to stop. A thread without work, or one that was already asked, is left as it is. */
export async function stopThread(
  context: ApiContext,
  threadId: string,
  { by, afterStep = false }: Options<'stop'> = {},
): Promise<void> {
  const target = { threadId, point: 'stop_thread', allowsOver: true }
  await editThread(context, target, (thread): Edit<void> => {
    const { session, stop, queue } = thread.state
    const isAsked = stop === 'requested' || (stop === 'after_step' && afterStep)
    // A message that is still in the queue counts as work, too.
    const hasWork = session !== undefined || (queue.length > 0 && stop !== 'stopped')
    if (isOver(thread) || !hasWork || isAsked) return { result: undefined }
    const event: RuntimeEvent = {
      type: 'stop_requested',
      at: context.at(),
      by,
      afterStep: afterStep || undefined,
    }
    const wake = { by: context.clock.now() }
    // A call that runs gets its signal, and may still end.
    const isRunning = openCalls(thread.state).some(({ startedEpoch }) => startedEpoch !== undefined)
    if (afterStep || !isRunning) return { result: undefined, change: { append: [event], wake } }
    const status = { type: 'status_changed', at: context.at(), status: 'stopping' } as const
    const append = [event, { ...status, ...asTold(thread.state) }]
    return { result: undefined, change: { append, wake, head: { lifecycle: 'stopping' } } }
  })
}

/**
 * Continues a thread after a stop, a failure or a limit. A thread that is already working is left as it is.
 */
export async function resumeThread(
  context: ApiContext,
  threadId: string,
  { by, side }: Options<'resume'> = {},
): Promise<void> {
  await editThread(context, { threadId, point: 'resume_thread' }, ({ state }) => {
    const isAtWork = (state.session !== undefined && state.stop === 'none') || state.resume
    if (isAtWork) return { result: undefined }
    const event: RuntimeEvent = {
      type: 'resume_requested',
      at: context.at(),
      by,
      side,
    }
    return {
      result: undefined,
      change: { append: [event], head: { attempts: 0 }, wake: { by: context.clock.now() } },
    }
  })
}

/**
 * Ends a thread for good. The work on it closes the session, as after a stop: a write that runs has a grace in which its
 * result still counts. Then it terminates the children. Resolves when that is done.
 */
export async function terminateThread(
  context: ApiContext,
  threadId: string,
  { by, detach = false }: Options<'terminate'> = {},
): Promise<void> {
  const target = { threadId, point: 'terminate_thread', allowsOver: true }
  await editThread(context, target, async (thread) => {
    if (isOver(thread)) return { result: undefined }
    const event: RuntimeEvent = {
      type: 'thread_terminated',
      at: context.at(),
      by,
      ...(detach && { isDetached: true }),
    }
    const change = {
      append: [event],
      head: { lifecycle: 'terminated', waiting: 0 },
      wake: { by: context.clock.now() },
    } as const
    return { result: undefined, change, others: await parentNotice(context, thread) }
  })
  await settledTree(context, threadId, detach)
}

/**
 * Returns the change of the parent thread, which records the end of this child. The calls that wait for the child
 * are answered when its session is closed.
 */
async function parentNotice(
  context: ApiContext,
  { head }: LoadedThread,
): Promise<readonly ThreadChange[]> {
  const parent = head.parentId === null ? undefined : await context.store.head(head.parentId)
  if (!parent || parent.lifecycle === 'erased') return []
  const at = context.at()
  const end = { type: 'subagent_ended', at, reference: head.id, outcome: 'terminated' } as const
  return [{ id: parent.id, append: [end], wake: { by: context.clock.now() } }]
}

/**
 * Waits until the thread and then its descendants are at rest. The thread comes first, because its last work
 * terminates its children.
 */
async function settledTree(context: ApiContext, threadId: string, detach: boolean): Promise<void> {
  const { node } = context
  const rest = (id: string): Promise<void> => node?.settled(id) ?? settled(context, id)
  await rest(threadId)
  if (detach) return
  const head = await context.store.head(threadId)
  if (!head) return // removed meanwhile, with its descendants
  const visitedIds = new Set<string>()
  for (;;) {
    const descendants = (await descendantsOf(context, head)).filter(({ id }) => !visitedIds.has(id))
    if (descendants.length === 0) return
    for (const { id } of descendants) {
      visitedIds.add(id)
      const now = await context.store.head(id)
      if (now?.lifecycle === 'terminated') await rest(id)
    }
  }
}

/** Terminates a thread and its descendants and returns their heads, children before parents. */
export async function terminatedTree(context: ApiContext, threadId: string): Promise<readonly ThreadHead[]> {
  await terminateThread(context, threadId)
  const head = await headOf(context, threadId)
  const below = await descendantsOf(context, head)
  // Children that were left running when their parent was terminated with `detach` are terminated, too.
  for (const { id } of below) await terminateThread(context, id)
  return [head, ...below].toReversed()
}
