import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { RuntimeError } from '../contract/error.ts'
import type { KernelEnvironment } from '../contract/context.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { AuditExport } from '../contract/runtime-api.ts'
import {
  type Commit,
  type CommitResult,
  isStoreError,
  type Store,
  type ThreadChange,
  type ThreadHead,
} from '../store/store.ts'
import { type FacadeBuffer, jsonCopy } from '../thread/values.ts'
import type { KernelState } from '../contract/state.ts'
import type { JsonObject } from '@skein/base'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import { KernelFold } from '../fold/fold.ts'
import type { FoldMemory } from '../drain.ts'

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

/** What the API functions share, made from the parts of a runtime. */
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

function threadNotFound(threadId: string): RuntimeError {
  return new RuntimeError(`There is no thread ${threadId}.`, {
    code: 'THREAD_NOT_FOUND',
    hint: 'It may have been removed. Threads are listed with `threads.list`.',
  })
}

/** Whether the thread has ended for good. */
export function isOver({ head }: LoadedThread): boolean {
  return head.lifecycle === 'terminated' || head.lifecycle === 'erased'
}

/** What is to be written, and what the caller gets once it is written. Without a change nothing is written. */
export interface Edit<T> {
  readonly result: T
  readonly change?: Omit<ThreadChange, 'id' | 'expectSeq'>
  /** Other threads that change with it. */
  readonly others?: readonly ThreadChange[]
  readonly blobs?: Commit['blobs']
}

interface EditTarget {
  readonly threadId: string
  /** Names the point in the code. */
  readonly point: string
  /** Whether a terminated thread may be changed. Default false: it is refused. */
  readonly allowsOver?: boolean
}

/** How often an edit is decided again because somebody else wrote first. */
const MAX_TRIES = 1000

/**
 * Changes a thread according to its log. `decide` is called again when another writer commits in
 * between, so a decision is always based on the log it is appended to.
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
    const own = { ...change, id: threadId, expectSeq, mustBeLive: !allowsOver || undefined }
    const commit = { point, threads: [own, ...others], blobs }
    try {
      const { seqs } = await context.commit(commit)
      return { result, seq: seqs.get(threadId) ?? expectSeq }
    } catch (error) {
      // Another writer came first: decide again, from what the log says now.
      if (!isStoreError(error, 'LOG_MOVED') || tries >= MAX_TRIES) throw toRuntimeError(error)
    }
  }
}

/** Errors of the store that a caller can act on, as errors of the runtime; all others stay as they are. */
export function toRuntimeError(error: unknown): unknown {
  if (!isStoreError(error)) return error
  const { message, hint, code } = error
  switch (code) {
    case 'THREAD_NOT_FOUND':
    case 'THREAD_TERMINATED':
    case 'CLIENT_ID_TAKEN':
      return new RuntimeError(message, { code, cause: error, hint })
    case 'NOT_JSON':
      return new RuntimeError(message, { code: 'INPUT_INVALID', cause: error })
    default:
      return error
  }
}

/** The error of a change to a thread that has ended. */
export function threadIsOver({ head }: LoadedThread): RuntimeError {
  return new RuntimeError(`Thread ${head.id} is ${head.lifecycle}.`, {
    code: 'THREAD_TERMINATED',
    hint: 'It cannot be changed any more. Create another thread, or fork this one.',
  })
}

interface FacadeTarget extends EditTarget {
  /** Whether the thread has to look at what was written. */
  readonly wakes?: boolean
}

/**
 * Changes a thread through the same code that tools use, so that the same rules hold for callers from
 * outside. Everything it wrote is one commit; when it wrote nothing, there is no commit.
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

/** A buffer over the state of a thread, for reading, or for collecting what the caller then commits. */
export function bufferOf(context: ApiContext, kernel: KernelState): FacadeBuffer {
  return { kernel, environment: context, events: [], blobs: new Map(), at: context.at }
}

const MAX_LABEL = 256
const MAX_TAGS = 64
const MAX_METADATA_BYTES = 64 * 1024

/** Throws unless the value can be shown, searched or used as a key: a text, and short. */
export function checkLabel(text: string, what: string): void {
  if (typeof text === 'string' && text !== '' && text.length <= MAX_LABEL) return
  throw new RuntimeError(`${what} must be a text of 1 to ${MAX_LABEL} characters.`, {
    code: 'INPUT_INVALID',
  })
}

/** Throws unless the tags are a short list of short texts. */
export function checkTags(tags: readonly string[]): void {
  if (!Array.isArray(tags) || tags.length > MAX_TAGS)
    throw new RuntimeError(`The tags of a thread must be a list of at most ${MAX_TAGS}.`, {
      code: 'INPUT_INVALID',
    })
  for (const tag of tags) checkLabel(tag, 'A tag of the thread')
}

/** A copy of metadata that can be kept. */
export function checkedMetadata(metadata: JsonObject, what: string): JsonObject {
  return jsonCopy(metadata, {
    subject: `The metadata of ${what}`,
    code: 'INPUT_INVALID',
    maxBytes: MAX_METADATA_BYTES,
  }) as JsonObject // a copy of an object is one
}

/** What a commit goes through. */
interface CommitParts {
  readonly store: Store
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
}

/**
 * Commits, then publishes the events to readers, then interrupts and wakes threads. Nothing is published
 * that the store could still refuse.
 */
export function createCommit({
  store,
  live,
  dispatcher,
}: CommitParts): (commit: Commit) => Promise<CommitResult> {
  return async (commit) => {
    const result = await store.commit(commit)
    for (const [id, events] of appended(commit.threads, result)) live.publish(id, events)
    for (const { id, append = [], wake } of commit.threads) {
      // First the drain whose work is in vain is interrupted, then the thread is woken for the next one.
      if (append.some(({ type }) => type === 'thread_terminated'))
        dispatcher.interrupt(id, 'terminate')
      else if (append.some((event) => event.type === 'stop_requested' && !event.afterStep))
        dispatcher.interrupt(id, 'stop')
      const at = wake && ('by' in wake ? wake.by : wake.exactly)
      if (at !== undefined && at !== null) dispatcher.wake(id, at)
    }
    return result
  }
}

/** The events of each thread with their numbers. One thread may have several changes. */
function appended(
  changes: readonly ThreadChange[],
  { seqs }: CommitResult,
): ReadonlyMap<string, readonly StoredEvent[]> {
  const events = new Map<string, RuntimeEvent[]>()
  for (const { id, append = [] } of changes) {
    const own = events.get(id)
    if (own) own.push(...append)
    else events.set(id, [...append])
  }
  const numbered = new Map<string, readonly StoredEvent[]>()
  for (const [id, own] of events) {
    const first = (seqs.get(id) ?? own.length) - own.length + 1
    numbered.set(
      id,
      own.map((event, index) => ({ seq: first + index, event })),
    )
  }
  return numbered
}

/**
 * A thread as it was when it was read. The state is shared and moves on with the next read by anybody:
 * use it before the next `await`, or copy what is needed.
 */
export interface LoadedThread {
  readonly head: ThreadHead
  readonly state: KernelState
}

/** Folds of threads that were read lately, so that reading a growing thread folds each event once. */
export interface FoldCache {
  /** Undefined when there is no such thread. */
  load(threadId: string): Promise<LoadedThread | undefined>
  forget(threadId: string): void
  /** How many folds are kept. */
  readonly size: number
}

/** How much a cache keeps. */
interface FoldCacheOptions {
  /** Threads kept. Default 64. */
  readonly max?: number
  /** Events read at once. Default 1000. */
  readonly pageSize?: number
}

/** A cache of folds over a store; the ones used least recently are dropped. */
export function createFoldCache(
  store: Pick<Store, 'head' | 'events'>,
  { max = 64, pageSize = 1000 }: FoldCacheOptions = {},
): FoldCache {
  const folds = new Map<string, KernelFold>()

  /** The fold, now the one used last. */
  function use(threadId: string, head: ThreadHead): KernelFold {
    const known = folds.get(threadId)
    // An erased thread has another log than the one that was folded.
    const isCurrent = known?.state.isErased === (head.lifecycle === 'erased')
    const fold = isCurrent ? known : new KernelFold()
    folds.delete(threadId)
    folds.set(threadId, fold)
    if (folds.size > max) folds.delete(folds.keys().next().value!)
    return fold
  }

  return {
    async load(threadId) {
      const head = await store.head(threadId)
      if (!head) {
        folds.delete(threadId)
        return undefined
      }
      const fold = use(threadId, head)
      for (;;) {
        const after = fold.state.seq
        if (after >= head.seq) break
        const page = await store.events(threadId, { after, limit: pageSize })
        // Others may have folded some of these meanwhile; the fold passes over what it has.
        for (const stored of page) fold.push(stored)
        if (page.length < pageSize) break
      }
      return { head, state: fold.state }
    },
    forget: (threadId) => void folds.delete(threadId),
    get size() {
      return folds.size
    },
  }
}

/** Folds of drains: each belongs to one drain while it runs, since a drain may see no mail but its own. */
export function createFoldMemory({ max = 256 }: { readonly max?: number } = {}): FoldMemory {
  const folds = new Map<string, KernelFold>()
  return {
    take(threadId) {
      const fold = folds.get(threadId)
      folds.delete(threadId)
      return fold
    },
    put(threadId, fold) {
      folds.delete(threadId)
      folds.set(threadId, fold)
      if (folds.size > max) folds.delete(folds.keys().next().value!)
    },
  }
}
