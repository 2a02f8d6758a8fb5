import { doPart } from '../store/next-turn.ts'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import { type FoldSource, KernelFold, restoreFold, saveFold } from './fold.ts'
import type { KernelState } from './kernel-state.ts'

/**
 * A thread at one moment: its head, and the state after exactly the events that the head counts. The state is shared
 * with all readers and changes with the next read of this thread, so use it before the next `await` or copy the fields
 * you need.
 */
export interface LoadedThread {
  readonly head: ThreadHead
  readonly state: KernelState
}

/** Keeps the state folded (computed) from a thread's log for the next work on it, so that no event is folded twice. */
export interface FoldMemory {
  /** Returns the folded state of this log, or an empty one. Until `put`, others may read it but not add events. */
  take(threadId: string, logId: number): KernelFold
  put(threadId: string, logId: number, fold: KernelFold): void
  /** Forgets a state that was taken, because the work for which it was taken failed. */
  drop(threadId: string, logId: number, fold: KernelFold): void
}

/** A cache of thread states ("folds"), so that this process applies each event of a growing thread only once. */
export interface FoldCache {
  /** Resolves to undefined when there is no such thread. */
  load(threadId: string): Promise<LoadedThread | undefined>
  forget(threadId: string): void
  /** Lends the cached folds to drains, which continue to add events to them. */
  readonly memory: FoldMemory
  /** The number of threads in the cache at the moment. */
  readonly size: number
}

/** The settings of a fold cache. */
interface FoldCacheOptions {
  /** The maximum number of threads in the cache. Default 256. */
  readonly max?: number
  /** The number of events that are read from the store in one request. Default 1000. */
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
    const cachedFold = folds.get(threadId, logId)
    const map = cachedFold && lent.has(cachedFold) ? beside : folds
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
    const cachedFold = folds.get(threadId, logId)
    // Readers may also use a fold that is lent (see `lent`), but only while it has exactly the events of the log.
    if (cachedFold?.state.seq === head.seq && cachedFold.ahead === 0)
      return { head, state: cachedFold.state }
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
    // Another reader may have added events that are newer than this head; a head and a state of different times do
    // not describe any moment of the thread.
    if (fold.state.seq > head.seq) return load(threadId)
    return { head, state: fold.state }
  }

  function forget(threadId: string): void {
    folds.delete(threadId)
    beside.delete(threadId)
  }

  const memory: FoldMemory = {
    take(threadId, logId) {
      const cachedFold = folds.get(threadId, logId)
      // Earlier work on the thread that has lost its lease may still use the known fold; then a new fold is lent.
      const fold = cachedFold && !lent.has(cachedFold) ? cachedFold : new KernelFold()
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
    const entry = this.#folds.get(threadId)
    return entry?.logId === logId ? entry.fold : undefined
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
