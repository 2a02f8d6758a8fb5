import { retryWhenLogMoved } from '../commit/log-moved.ts'
import { RuntimeError } from '../contract/error.ts'
import type { LoadedThread } from '../state/fold-cache.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Commit, ThreadChange } from '../store/commit.ts'
import { isStoreError } from '../store/store-error.ts'
import { type ApiContext, load } from './api-context.ts'
import { redacted } from './redacted-changes.ts'
import type { FacadeBuffer } from '../thread/facade-buffer.ts'

/** A decision about a thread: the change to write (none when absent), and the result for the caller. */
export interface Edit<T> {
  readonly result: T
  readonly change?: Omit<ThreadChange, 'id' | 'expectSeq'>
  /** Changes of other threads, written in the same commit. */
  readonly others?: readonly ThreadChange[]
  readonly blobs?: Commit['blobs']
  readonly audit?: Commit['audit']
}

interface EditTarget {
  readonly threadId: string
  /** The name of the commit in traces, tests and the simulation of crashes. */
  readonly point: string
  /** Whether a terminated thread may be changed. Default false: the change is refused. */
  readonly allowsOver?: boolean
}

/** The maximum number of times that an edit is decided while other writers keep committing first. */
const MAX_TRIES = 1000

/**
 * Loads a thread, lets `decide` choose the change, and commits it. If another writer commits in between,
 * `decide` is called again with the new log, so that no decision is based on an outdated log.
 */
export async function editThread<T>(
  context: ApiContext,
  { threadId, point, allowsOver = false }: EditTarget,
  decide: (thread: LoadedThread) => Edit<T> | Promise<Edit<T>>,
): Promise<{ readonly result: T; readonly seq: number }> {
  const editOnce = async (): Promise<{ readonly result: T; readonly seq: number }> => {
    const thread = await load(context, threadId)
    const expectSeq = thread.state.seq
    if (!allowsOver && isOver(thread)) throw threadIsOver(thread)
    const { result, change, others = [], blobs, audit } = await decide(thread)
    if (!change) return { result, seq: expectSeq }
    const own = { ...change, id: threadId, expectSeq, mustBeLive: !allowsOver || undefined }
    const threads = redacted(context, thread.state, [own, ...others])
    const { seqs } = await context.commit({ point, threads, blobs, audit }).catch(rethrow)
    return { result, seq: seqs.get(threadId) ?? expectSeq }
  }
  // If another writer commits first, the edit is decided again from the current log.
  return retryWhenLogMoved(editOnce, { maxTries: MAX_TRIES })
}

/** Throws a store error in the form that callers of the API get. */
function rethrow(error: unknown): never {
  throw toRuntimeError(error)
}

/** Converts store errors that a caller can act on into runtime errors; returns all other errors unchanged. */
export function toRuntimeError(error: unknown): unknown {
  if (!isStoreError(error)) return error
  const { message, hint, code } = error
  switch (code) {
    case 'THREAD_NOT_FOUND':
    case 'THREAD_TERMINATED':
    case 'CLIENT_ID_TAKEN':
      return new RuntimeError(message, { code, cause: error, hint })
    case 'VALUE_LIMIT':
      return new RuntimeError(message, { code: 'VALUE_INVALID', cause: error, hint })
    case 'VALUE_MOVED':
      return new RuntimeError(message, { code: 'STATE_CONFLICT', cause: error, hint })
    case 'NOT_JSON':
      return new RuntimeError(message, { code: 'INPUT_INVALID', cause: error })
    default:
      return error
  }
}

/**
 * Whether the thread has ended for good. The state is shared, so by now it may have an end that the head lacks.
 */
export function isOver({ head, state }: LoadedThread): boolean {
  const isLast = head.lifecycle === 'terminated' || head.lifecycle === 'erased'
  return isLast || state.terminated !== undefined || state.isErased
}

/** Creates the error for a change to a thread that has ended. */
export function threadIsOver({ head, state }: LoadedThread): RuntimeError {
  const isErased = state.isErased || head.lifecycle === 'erased'
  return new RuntimeError(`Thread ${head.id} is ${isErased ? 'erased' : 'terminated'}.`, {
    code: 'THREAD_TERMINATED',
    hint: 'It cannot be changed any more. Create another thread, or fork this one.',
  })
}

interface FacadeTarget extends EditTarget {
  /** Whether the thread is woken after the commit, so that it acts on the change. */
  readonly wakes?: boolean
}

/**
 * Changes a thread through the same functions that tools use, so that callers from outside follow the same
 * rules. All events are written in one commit; without events there is no commit.
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
      blobs: blobs.size > 0 ? [...blobs.values()] : undefined,
    }
  })
  return result
}

/**
 * Creates a buffer over the state of a thread, for reading, or for collecting events that the caller commits.
 */
export function bufferOf(context: ApiContext, kernel: KernelState): FacadeBuffer {
  return { kernel, environment: context, events: [], blobs: new Map(), at: context.at }
}
