import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { RuntimeError } from '../contract/error.ts'
import type { KernelEnvironment, ObsoletingEvent } from '../contract/context.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { ThreadInfo } from '../contract/runtime-api.ts'
import type { AuditReader } from '../governance/audit-export.ts'
import {
  type Commit,
  type CommitResult,
  isStoreError,
  isUnwritable,
  type Store,
  type ThreadChange,
  type ThreadHead,
  type TreeUsage,
} from '../store/store.ts'
import type { Redactor } from '../secrets/vault.ts'
import { threadSecrets } from '../thread/env.ts'
import { doPart, nextTurn } from '../store/next-turn.ts'
import { type FacadeBuffer, jsonCopy } from '../thread/values.ts'
import { type KernelState, registryOf } from '../state/kernel-state.ts'
import type { JsonObject } from '@skein/base'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import { type FoldSource, KernelFold, restoreFold, saveFold } from '../state/fold.ts'
import { isStorable } from '../store/thread-head.ts'
import type { FoldMemory } from '../loop/drain.ts'
import type { RuntimeNode } from '../nodes/nodes.ts'

/** The parts of a runtime that the API is built from. */
export interface ApiEnvironment extends KernelEnvironment {
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
  /** The cache of thread states (folds of logs) that the API reads. Default: a new cache. */
  readonly folds?: FoldCache
  readonly outage?: Outage
  /** The connection to the other nodes that share the store, if there are any. */
  readonly node?: RuntimeNode | undefined
  /** Reads the audit logs of root threads, with signed checkpoints. */
  readonly audit?: AuditReader
}

/** The context that every function of the API receives. */
export interface ApiContext extends ApiEnvironment {
  readonly folds: FoldCache
  readonly outage: Outage
  /** Returns the current time in the format of event timestamps (ISO 8601). */
  at(): string
}

/** Creates the context of the API functions from the parts of a runtime. */
export function createApiContext(environment: ApiEnvironment): ApiContext {
  const { clock, store, folds = createFoldCache(store), outage = new Outage() } = environment
  return { ...environment, folds, outage, at: () => new Date(clock.now()).toISOString() }
}

/**
 * Remembers that the store cannot be written (see `isUnwritable`). While that lasts, nothing can be committed that
 * would end a wait, so callers that wait for a thread get the store's error instead of waiting for ever.
 */
export class Outage {
  #error: unknown
  readonly #waiting = new Set<AbortController>()

  /** Called with every error of background work. */
  note(error: unknown): void {
    if (!isUnwritable(error)) return
    this.#error = error
    for (const controller of this.#waiting) controller.abort(error)
  }

  /** Called when a commit has succeeded. */
  end(): void {
    this.#error = undefined
  }

  /** Runs `wait` with a signal that aborts when the store cannot be written or when the caller's signal aborts. */
  async guard<T>(
    signal: AbortSignal | undefined,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.#error !== undefined) throw this.#error
    const controller = new AbortController()
    this.#waiting.add(controller)
    try {
      return await wait(signal ? AbortSignal.any([signal, controller.signal]) : controller.signal)
    } finally {
      this.#waiting.delete(controller)
    }
  }
}

/** Reads the head of a thread (its row in the store) without its log. Rejects with `THREAD_NOT_FOUND`. */
export async function headOf({ store }: ApiContext, threadId: string): Promise<ThreadHead> {
  const head = await store.head(threadId)
  if (!head) throw threadNotFound(threadId)
  return head
}

/** Reads a thread for the API. Rejects with `THREAD_NOT_FOUND`. */
export async function infoOf(context: ApiContext, threadId: string): Promise<ThreadInfo> {
  const [info] = await threadInfos(context, [await headOf(context, threadId)])
  return info!
}

/** How many threads are converted before other work of the process gets its turn. */
const PAUSE_AFTER = 50

/** Converts heads (rows of the store) to the form of the API, with tokens and costs summed over all descendants. */
export async function threadInfos(
  { store }: Pick<ApiContext, 'store'>,
  heads: readonly ThreadHead[],
): Promise<readonly ThreadInfo[]> {
  const infos: ThreadInfo[] = []
  for (let from = 0; from < heads.length; from += PAUSE_AFTER) {
    if (from > 0) await nextTurn()
    const some = heads.slice(from, from + PAUSE_AFTER)
    const usages = await store.subtreeUsage(some.map(({ id }) => id))
    infos.push(...some.map((head) => infoFrom(head, usages.get(head.id) ?? head)))
  }
  return infos
}

function infoFrom(head: ThreadHead, sum: TreeUsage): ThreadInfo {
  const { costUsd, unpriced, createdAt, updatedAt, wakeAt, ...others } = head
  const { lease: _, logId: __, change: ___, tools: ____, grantedUntil: _____, ...rest } = others
  return {
    ...rest,
    inputTokens: head.tokens - head.outputTokens,
    costUsd: unpriced > 0 ? null : costUsd,
    createdAt: timeText(createdAt),
    updatedAt: timeText(updatedAt),
    wakeAt: wakeAt === null ? null : timeText(wakeAt),
    tree: {
      tokens: sum.tokens,
      costUsd: sum.unpriced > 0 ? null : sum.costUsd,
      waiting: sum.waiting,
    },
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

/** Reads the log of a thread and computes its state. Rejects with `THREAD_NOT_FOUND`. */
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
  for (let tries = 1; ; tries++) {
    const thread = await load(context, threadId)
    const expectSeq = thread.state.seq
    if (!allowsOver && isOver(thread)) throw threadIsOver(thread)
    const { result, change, others = [], blobs, audit } = await decide(thread)
    if (!change) return { result, seq: expectSeq }
    const own = { ...change, id: threadId, expectSeq, mustBeLive: !allowsOver || undefined }
    const threads = redacted(context, thread.state, [own, ...others])
    const commit = { point, threads, blobs, audit }
    try {
      const { seqs } = await context.commit(commit)
      return { result, seq: seqs.get(threadId) ?? expectSeq }
    } catch (error) {
      // Another writer committed first, so the edit is decided again from the current log.
      if (!isStoreError(error, 'LOG_MOVED') || tries >= MAX_TRIES) throw toRuntimeError(error)
    }
  }
}

/**
 * Removes the secrets of a thread from everything that a commit contains about it, so that they are never
 * stored. Every write of the API goes through this function. `secrets` are additional secrets, e.g. those that
 * were set just now.
 */
export function redacted<T extends readonly ThreadChange[]>(
  context: ApiContext,
  state: SecretState,
  changes: T,
  secrets: readonly string[] = [],
): T {
  const redactor = redactorOf(context, state, secrets)
  if (!redactor) return changes
  return changes.map((change) => {
    const { append, create, head } = change
    return {
      ...change,
      append: append?.map((event) => (isVariable(event) ? event : redactor.json(event))),
      head: head && redactor.json(head),
      // The other columns of the new thread's row contain ids and names, not free text.
      create: create && {
        ...create,
        title: redactor.json(create.title),
        tags: redactor.json(create.tags),
      },
    }
  }) as unknown as T // one change for each change
}

/** Variables are not redacted: secrets among them are encrypted, and tools need the others as they are. */
function isVariable({ type }: RuntimeEvent): boolean {
  return type === 'env_set' || type === 'variables_provided'
}

/** The part of a thread's state that names its secrets. */
type SecretState = Pick<KernelState, 'agent' | 'env' | 'envSeq' | 'threadId'> &
  Partial<Pick<KernelState, 'session'>>

interface KnownRedactor {
  readonly agent: unknown
  readonly envSeq: number
  readonly redactor: Redactor | undefined
}

/** Caches the redactor of each state, because building a redactor takes longer than using it. */
const redactors = new WeakMap<SecretState, KnownRedactor>()

/** Returns the redactor of a thread's secrets; undefined if the thread has none. */
export function redactorOf(
  context: ApiContext,
  state: SecretState,
  more: readonly string[],
): Redactor | undefined {
  const agent = registryOf(context.registry, state).agents.get(state.agent)
  const known = redactors.get(state)
  if (known && more.length === 0 && known.agent === agent && known.envSeq === state.envSeq)
    return known.redactor
  const secrets = new Set([...threadSecrets(context, state), ...more])
  const redactor = secrets.size > 0 ? context.vault.redactor(secrets) : undefined
  if (more.length === 0) redactors.set(state, { agent, envSeq: state.envSeq, redactor })
  return redactor
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

/** Creates the error for a change to a thread that has ended. */
export function threadIsOver({ head }: LoadedThread): RuntimeError {
  return new RuntimeError(`Thread ${head.id} is ${head.lifecycle}.`, {
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

const MAX_LABEL = 256
const MAX_TAGS = 64
const MAX_METADATA_BYTES = 64 * 1024

/** Throws unless the value is a text of 1 to `MAX_LABEL` characters. `what` names the value in the error. */
export function checkLabel(text: string, what: string): void {
  if (typeof text === 'string' && text !== '' && text.length <= MAX_LABEL && isStorable(text))
    return
  throw new RuntimeError(`${what} must be a text of 1 to ${MAX_LABEL} characters.`, {
    code: 'INPUT_INVALID',
    hint: 'The character NUL and halves of surrogate pairs are not allowed.',
  })
}

/** Throws unless `tags` is a list of at most `MAX_TAGS` labels (see `checkLabel`). */
export function checkTags(tags: readonly string[]): void {
  if (!Array.isArray(tags) || tags.length > MAX_TAGS)
    throw new RuntimeError(`The tags of a thread must be a list of at most ${MAX_TAGS}.`, {
      code: 'INPUT_INVALID',
    })
  for (const tag of tags) checkLabel(tag, 'A tag of the thread')
}

/** Returns a copy of the metadata; throws when it is not JSON or is larger than `MAX_METADATA_BYTES`. */
export function checkedMetadata(metadata: JsonObject, what: string): JsonObject {
  return jsonCopy(metadata, {
    subject: `The metadata of ${what}`,
    code: 'INPUT_INVALID',
    maxBytes: MAX_METADATA_BYTES,
  }) as JsonObject // the copy of an object is an object
}

/** The parts of the runtime that `createCommit` uses. */
interface CommitParts {
  readonly store: Store
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
  readonly edits: EditListeners
  readonly outage?: Outage
  /** Tells the other nodes that share the store what was committed. */
  readonly node?: Pick<RuntimeNode, 'committed'> | undefined
}

/** Tells the running requests and calls of a thread about edits and messages that make them obsolete. */
export class EditListeners {
  readonly #listeners = new Map<string, Set<(event: ObsoletingEvent) => void>>()

  listen(threadId: string, listener: (event: ObsoletingEvent) => void): () => void {
    const own = this.#listeners.get(threadId) ?? new Set()
    this.#listeners.set(threadId, own.add(listener))
    return () => {
      own.delete(listener)
      if (own.size === 0 && this.#listeners.get(threadId) === own) this.#listeners.delete(threadId)
    }
  }

  tell(threadId: string, events: readonly RuntimeEvent[]): void {
    const listeners = this.#listeners.get(threadId)
    if (!listeners) return
    for (const event of events)
      if (
        event.type === 'message_updated' ||
        event.type === 'message_removed' ||
        (event.type === 'message_queued' && event.ifBusy)
      )
        for (const listener of listeners) listener(event)
  }
}

/**
 * Creates the function that commits changes: it writes to the store, then publishes the events to readers,
 * then interrupts and wakes threads. Nothing is published before the store has accepted it.
 */
export function createCommit({
  store,
  live,
  dispatcher,
  outage,
  edits,
  node,
}: CommitParts): (commit: Commit) => Promise<CommitResult> {
  return async (commit) => {
    const result = await store.commit(commit)
    outage?.end()
    for (const [id, events] of appended(commit.threads, result)) live.publish(id, events)
    for (const { id, append = [], wake } of commit.threads) {
      // The running work on the thread (its drain) is interrupted first, because it is no longer needed; then the
      // thread is woken.
      if (append.some(({ type }) => type === 'thread_terminated'))
        dispatcher.interrupt(id, 'terminate')
      else if (append.some((event) => event.type === 'stop_requested' && !event.afterStep))
        dispatcher.interrupt(id, 'stop')
      edits.tell(id, append)
      const at = wake && ('by' in wake ? wake.by : wake.exactly)
      if (at !== undefined && at !== null) dispatcher.wake(id, at)
    }
    node?.committed(commit, result)
    return result
  }
}

/**
 * Returns the appended events of each thread with their sequence numbers. A commit may contain several changes
 * of one thread.
 */
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
 * A thread as it was when it was read. The state is shared with all readers and changes with the next read of
 * this thread, so use it before the next `await` or copy the fields you need.
 */
export interface LoadedThread {
  readonly head: ThreadHead
  readonly state: KernelState
}

/** A cache of thread states ("folds"), so that this process applies each event of a growing thread only once. */
export interface FoldCache {
  /** Resolves to undefined when there is no such thread. */
  load(threadId: string): Promise<LoadedThread | undefined>
  forget(threadId: string): void
  /** Lends the cached folds to drains (the code that works on threads), which go on adding events to them. */
  readonly memory: FoldMemory
  /** The number of threads in the cache at the moment. */
  readonly size: number
}

/** The settings of a fold cache. */
interface FoldCacheOptions {
  /** The maximum number of threads in the cache. Default 256. */
  readonly max?: number
  /** The number of events that are read from the store at once. Default 1000. */
  readonly pageSize?: number
}

/** Creates a cache of folds (states computed from logs); the least recently used folds are dropped. */
export function createFoldCache(
  store: FoldSource & Pick<Store, 'head'>,
  { max = 256, pageSize = 1000 }: FoldCacheOptions = {},
): FoldCache {
  const folds = new FoldMap(max)
  /** Additional folds, for readers of threads whose fold in `folds` is lent to the code that works on the thread. */
  const beside = new FoldMap(max)
  /** The folds that are lent to the code that works on a thread (a drain). Nobody else may add events to them. */
  const lent = new WeakSet<KernelFold>()

  /** Returns a fold (thread state) that is not lent to the work on the thread, so the caller may add events to it. */
  function ownFold(threadId: string, logId: number): KernelFold {
    const known = folds.get(threadId, logId)
    const map = known && lent.has(known) ? beside : folds
    const fold = map.get(threadId, logId) ?? new KernelFold()
    map.set(threadId, logId, fold)
    return fold
  }

  async function load(threadId: string): Promise<LoadedThread | undefined> {
    const head = await store.head(threadId)
    if (!head) {
      forget(threadId)
      return undefined
    }
    const { logId } = head
    const known = folds.get(threadId, logId)
    // Readers may also use a fold that is lent (see `lent`), but only while it has exactly the events of the log.
    if (known?.state.seq === head.seq && known.ahead === 0) return { head, state: known.state }
    const fold = ownFold(threadId, logId)
    const log = { threadId, logId }
    await restoreFold(fold, store, log, () => !lent.has(fold))
    if (lent.has(fold)) return load(threadId)
    let isRead = false
    while (fold.state.seq < head.seq) {
      isRead = true
      const after = fold.state.seq
      // Reading and folding a page take turns with other work, because a list may need many long logs.
      const page = await doPart(() => store.events(threadId, { after, limit: pageSize }))
      const isFolded = await doPart(() => {
        if (lent.has(fold)) return false
        // Another reader may have added some of these events meanwhile; `push` ignores events that the fold already
        // has.
        for (const stored of page) fold.push(stored)
        return true
      })
      // The fold may have been lent while the page was read. Then this reader starts again with another fold.
      if (!isFolded || lent.has(fold)) return load(threadId)
      if (page.length < pageSize) break
    }
    // If the log was replaced while it was read, the fold may contain events of the old and the new log.
    if (isRead && (await store.head(threadId))?.logId !== logId) {
      forget(threadId)
      return load(threadId)
    }
    if (isRead && !lent.has(fold)) saveFold(fold, store, log)
    return { head, state: fold.state }
  }

  function forget(threadId: string): void {
    folds.delete(threadId)
    beside.delete(threadId)
  }

  const memory: FoldMemory = {
    take(threadId, logId) {
      const known = folds.get(threadId, logId)
      // Earlier work on the thread that has lost its lease may still use the known fold; then a new fold is lent.
      const fold = known && !lent.has(known) ? known : new KernelFold()
      lent.add(fold)
      folds.set(threadId, logId, fold)
      return fold
    },
    put(threadId, logId, fold) {
      lent.delete(fold)
      folds.set(threadId, logId, fold)
      beside.delete(threadId)
      saveFold(fold, store, { threadId, logId })
    },
    drop(threadId, logId, fold) {
      if (folds.get(threadId, logId) === fold) folds.delete(threadId)
    },
  }
  return {
    load,
    forget,
    memory,
    get size() {
      return folds.size
    },
  }
}

/**
 * The most recently used folds (thread states). Each is kept with the id of its log, because the log of a thread
 * can be replaced by another log (erased, or removed and made again), also by another process.
 */
class FoldMap {
  readonly #folds = new Map<string, { readonly logId: number; readonly fold: KernelFold }>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#folds.size
  }

  get(threadId: string, logId: number): KernelFold | undefined {
    const known = this.#folds.get(threadId)
    return known?.logId === logId ? known.fold : undefined
  }

  set(threadId: string, logId: number, fold: KernelFold): void {
    this.#folds.delete(threadId)
    this.#folds.set(threadId, { logId, fold })
    if (this.#folds.size > this.#max) this.#folds.delete(this.#folds.keys().next().value!)
  }

  delete(threadId: string): void {
    this.#folds.delete(threadId)
  }
}
