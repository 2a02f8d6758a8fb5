import { KernelFold } from '../fold/fold.ts'
import type { FoldMemory } from '../drain.ts'
import type { KernelState } from '../contract/state.ts'
import type { Store, ThreadHead } from '../store/store.ts'

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
export interface FoldCacheOptions {
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
