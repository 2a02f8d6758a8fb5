import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { RuntimeError } from '../contract/error.ts'
import type { KernelEnvironment } from '../contract/context.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { AuditExport } from '../contract/runtime-api.ts'
import { type Commit, isStoreError, type ThreadChange, type ThreadHead } from '../store/store.ts'
import { createFoldCache, type FoldCache, type LoadedThread } from './fold-cache.ts'
import { type FacadeBuffer, jsonCopy } from '../thread/values.ts'
import type { KernelState } from '../contract/state.ts'
import type { JsonObject } from '@skein/base'

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
