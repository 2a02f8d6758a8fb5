import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { RuntimeError } from '../error.ts'
import type { KernelEnvironment } from '../context.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { AuditExport } from '../runtime-api.ts'
import {
  isStoreError,
  type Commit,
  type CommitResult,
  type ThreadChange,
  type ThreadHead,
} from '../store/store.ts'
import { createFoldCache, type FoldCache, type LoadedThread } from './fold-cache.ts'

/** What the API is built from. */
export interface ApiEnvironment extends KernelEnvironment {
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
  /** Default: a cache of its own. */
  readonly folds?: FoldCache
  /** The audit log of a root thread, with a signed checkpoint. */
  readonly audit?: (rootId: string) => Promise<AuditExport>
}

/** What the functions of the API share. */
export interface ApiContext extends ApiEnvironment {
  readonly folds: FoldCache
  /** The time, as events have it. */
  at(): string
}

export function createApiContext(environment: ApiEnvironment): ApiContext {
  const { clock, store, folds = createFoldCache(store) } = environment
  return { ...environment, folds, at: () => new Date(clock.now()).toISOString() }
}

/** The head alone, where the log is not needed. Rejects with `THREAD_NOT_FOUND`. */
export async function headOf({ store }: ApiContext, threadId: string): Promise<ThreadHead> {
  const head = await store.head(threadId)
  if (!head) throw threadNotFound(threadId)
  return head
}

/** Rejects with `THREAD_NOT_FOUND`. */
export async function load(context: ApiContext, threadId: string): Promise<LoadedThread> {
  const thread = await context.folds.load(threadId)
  if (!thread) throw threadNotFound(threadId)
  return thread
}

export function threadNotFound(threadId: string): RuntimeError {
  return new RuntimeError(`There is no thread ${threadId}.`, {
    code: 'THREAD_NOT_FOUND',
    hint: 'It may have been removed. Threads are listed with `threads.list`.',
  })
}

export function isOver({ head }: LoadedThread): boolean {
  return head.lifecycle === 'terminated' || head.lifecycle === 'erased'
}

/** What is to be written, and what the caller gets once it is. Without a change nothing is written. */
export interface Edit<T> {
  readonly result: T
  readonly change?: Omit<ThreadChange, 'id' | 'expectSeq'>
  /** Other threads that change with it. */
  readonly others?: readonly ThreadChange[]
  readonly blobs?: Commit['blobs']
}

export interface EditTarget {
  readonly threadId: string
  /** Names the point in the code. */
  readonly point: string
  /** Whether a terminated thread may be changed. Default false: it is refused. */
  readonly allowsOver?: boolean
}

/** More than this many writers at once on one thread are a mistake. */
const MAX_TRIES = 1000

/**
 * Changes a thread by what its log says. Another writer that comes between makes it decide again, so
 * what was decided is true when it is written.
 */
export async function editThread<T>(
  context: ApiContext,
  { threadId, point, allowsOver = false }: EditTarget,
  decide: (thread: LoadedThread) => Edit<T> | Promise<Edit<T>>,
): Promise<{ readonly result: T; readonly seq: number }> {
  for (let tries = 1; ; tries++) {
    const thread = await load(context, threadId)
    const expectSeq = thread.state.seq
    if (!allowsOver && isOver(thread)) throw threadIsOver(thread)
    const { result, change, others = [], blobs } = await decide(thread)
    if (!change) return { result, seq: expectSeq }
    const own = { ...change, id: threadId, expectSeq, ...(!allowsOver && { mustBeLive: true }) }
    const commit = { point, threads: [own, ...others], ...(blobs && { blobs }) }
    const done = await tryCommit(context, commit, tries)
    if (done) return { result, seq: done.seqs.get(threadId) ?? expectSeq }
  }
}

/** Undefined when the log has moved. */
async function tryCommit(
  context: ApiContext,
  commit: Commit,
  tries: number,
): Promise<CommitResult | undefined> {
  try {
    return await context.commit(commit)
  } catch (error) {
    if (isStoreError(error, 'LOG_MOVED') && tries < MAX_TRIES) return undefined
    throw toRuntimeError(error)
  }
}

/** Refusals of the store that a caller can do something about, in the words of the runtime. */
export function toRuntimeError(error: unknown): unknown {
  if (!isStoreError(error)) return error
  const { message, hint, code } = error
  switch (code) {
    case 'THREAD_NOT_FOUND':
    case 'THREAD_TERMINATED':
    case 'CLIENT_ID_TAKEN':
      return new RuntimeError(message, { code, cause: error, ...(hint !== undefined && { hint }) })
    case 'NOT_JSON':
      return new RuntimeError(message, { code: 'INPUT_INVALID', cause: error })
    default:
      return error
  }
}

export function threadIsOver({ head }: LoadedThread): RuntimeError {
  return new RuntimeError(`Thread ${head.id} is ${head.lifecycle}.`, {
    code: 'THREAD_TERMINATED',
    hint: 'It takes nothing any more. Create another thread, or fork this one.',
  })
}
