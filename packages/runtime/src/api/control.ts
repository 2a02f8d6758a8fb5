import type { RuntimeEvent } from '../event.ts'
import type { Threads } from '../runtime-api.ts'
import type { ThreadChange } from '../store/store.ts'
import { editThread, headOf, isOver, type ApiContext, type Edit } from './api-context.ts'
import { descendantsOf } from '../store/thread-head.ts'
import type { LoadedThread } from './fold-cache.ts'

type Options<Name extends 'stop' | 'resume' | 'terminate'> = NonNullable<
  Parameters<Threads[Name]>[1]
>

/** The stop button. A thread that does nothing is left as it is. */
export async function stopThread(
  context: ApiContext,
  threadId: string,
  { by, afterStep = false }: Options<'stop'> = {},
): Promise<void> {
  const target = { threadId, point: 'stop_thread', allowsOver: true }
  await editThread(context, target, (thread): Edit<void> => {
    const { session, stop, queue } = thread.state
    const isAsked = stop === 'requested' || (stop === 'after_step' && afterStep)
    // A message that no session has taken yet is work too.
    const hasWork = session !== undefined || (queue.length > 0 && stop !== 'stopped')
    if (isOver(thread) || !hasWork || isAsked) return { result: undefined }
    const event: RuntimeEvent = {
      type: 'stop_requested',
      at: context.at(),
      ...(by !== undefined && { by }),
      ...(afterStep && { afterStep }),
    }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append: [event], wake } }
  })
}

/** Goes on after a stop, a failure or a limit. A thread that is at work already is left as it is. */
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
      ...(by !== undefined && { by }),
      ...(side && { side }),
    }
    return {
      result: undefined,
      change: { append: [event], head: { attempts: 0 }, wake: { by: context.clock.now() } },
    }
  })
}

/**
 * Ends a thread for good. Whoever works on it is fenced off by the same commit; its own last drain closes
 * the session and takes the children with it. Resolves when that is done.
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
      ...(by !== undefined && { by }),
      ...(detach && { isDetached: true }),
    }
    const change = {
      append: [event],
      raisesEpoch: true,
      head: { lifecycle: 'terminated', waiting: 0 },
      wake: { by: context.clock.now() },
    } as const
    return { result: undefined, change, others: await toldParent(context, thread) }
  })
  await settledTree(context, threadId, detach)
}

/** The parent's registry says it at once. Calls that wait for a running session hear of its end. */
async function toldParent(
  context: ApiContext,
  { head, state }: LoadedThread,
): Promise<readonly ThreadChange[]> {
  const waiters = state.queue.flatMap(({ parentInterruptId: id }) => (id === undefined ? [] : [id]))
  const parent = head.parentId === null ? undefined : await context.folds.load(head.parentId)
  if (!parent || parent.head.lifecycle === 'erased') return []
  const at = context.at()
  const message = `Subagent (reference: ${head.id}) was terminated before it began.`
  const answers = waiters
    .filter((id) => parent.state.interrupts.has(id))
    .map((interruptId) => {
      const answer = { type: 'error', message } as const
      return { type: 'interrupt_answered', at, interruptId, answer } as const
    })
  const ended = { type: 'subagent_ended', at, reference: head.id, outcome: 'terminated' } as const
  const append = [ended, ...answers]
  return [{ id: parent.head.id, append, wake: { by: context.clock.now() } }]
}

/** Parents before their children, which are only told by the last drain of their parent. */
async function settledTree(context: ApiContext, threadId: string, detach: boolean): Promise<void> {
  await context.dispatcher.settled(threadId)
  if (detach) return
  const head = await headOf(context, threadId)
  const seen = new Set<string>()
  for (;;) {
    const found = (await descendantsOf(context, head)).filter(({ id }) => !seen.has(id))
    if (found.length === 0) return
    for (const { id } of found) {
      seen.add(id)
      const now = await context.store.head(id)
      if (now?.lifecycle === 'terminated') await context.dispatcher.settled(id)
    }
  }
}
