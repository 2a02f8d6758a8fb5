import type { Claim, Commit, CommitResult, Store } from '../../store/store.ts'
import { NotNowError, type Lane } from './seeded-scheduler.ts'

/** When the process dies: before the commit, or when it is durable and nobody has heard of it. */
export type CrashMoment = 'before' | 'after'

export interface CrashStoreOptions {
  /** Of the runtime that uses the store; every write waits for its turn there. */
  readonly lane: Lane
  /** Asked once per commit. */
  readonly crashAt?: (commit: Commit) => CrashMoment | undefined
  /** Ends the runtime: kills or freezes its lane. */
  readonly onCrash?: (moment: CrashMoment, commit: Commit) => void
  /** Told of what was written, or why it was refused. */
  readonly onCommit?: (commit: Commit, outcome: CommitOutcome) => void
  readonly onClaim?: (threadId: string, claim: Claim | undefined) => void
}

export type CommitOutcome =
  | { readonly type: 'written'; readonly seqs: ReadonlyMap<string, number> }
  | { readonly type: 'refused'; readonly error: unknown }

/**
 * The store as one runtime sees it, whose process may die at any commit. Closing it leaves the store
 * open for the next runtime.
 */
export function crashStore(store: Store, options: CrashStoreOptions): Store {
  const { lane, crashAt, onCrash, onCommit, onClaim } = options
  const asked = new Set<Commit>()

  async function commit(it: Commit): Promise<CommitResult> {
    const isFirst = !asked.has(it)
    asked.add(it)
    const moment = isFirst ? crashAt?.(it) : undefined
    if (moment === 'before') {
      onCrash?.(moment, it)
      throw new NotNowError()
    }
    try {
      const result = await store.commit(it)
      onCommit?.(it, { type: 'written', seqs: result.seqs })
      if (moment === 'after') onCrash?.(moment, it)
      return result
    } catch (error) {
      if (error instanceof NotNowError) throw error
      onCommit?.(it, { type: 'refused', error })
      throw error
    }
  }

  async function claim(threadId: string): Promise<Claim | undefined> {
    const claimed = await store.claim(threadId)
    onClaim?.(threadId, claimed)
    return claimed
  }

  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      if (name === 'commit')
        return (it: Commit) => lane.perform(`commit ${it.point}`, () => commit(it))
      if (name === 'claim') return (id: string) => lane.perform(`claim ${id}`, () => claim(id))
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
