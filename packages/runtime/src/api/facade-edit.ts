import type { KernelState } from '../state.ts'
import { editThread, type ApiContext, type EditTarget } from './api-context.ts'
import type { LoadedThread } from './fold-cache.ts'
import type { FacadeBuffer } from '../thread/values.ts'

export interface FacadeTarget extends EditTarget {
  /** Whether the thread has to look at what was written. */
  readonly wakes?: boolean
}

/**
 * Changes a thread by the same parts that tools use, so the same rules hold from outside. What they
 * wrote is one commit; when nothing was written there is none.
 */
export async function editWith<T>(
  context: ApiContext,
  target: FacadeTarget,
  work: (buffer: FacadeBuffer, thread: LoadedThread) => T | Promise<T>,
): Promise<T> {
  const { result } = await editThread(context, target, async (thread) => {
    const buffer = bufferOf(context, thread.state)
    const value = await work(buffer, thread)
    const { events, blobs } = buffer
    if (events.length === 0) return { result: value }
    const wake = target.wakes && { wake: { by: context.clock.now() } }
    return {
      result: value,
      change: { append: events, ...wake },
      ...(blobs.size > 0 && { blobs: [...blobs.values()] }),
    }
  })
  return result
}

/** For reading, or for writing what the caller commits. */
export function bufferOf(context: ApiContext, kernel: KernelState): FacadeBuffer {
  return { kernel, environment: context, events: [], blobs: new Map(), at: context.at }
}
