import { RuntimeError } from '../contract/error.ts'
import type { LimitsReport, RetentionRule } from '../contract/operator-limits.ts'
import type { TimerHandle, Timers } from '../dispatch/dispatcher.ts'
import type { Commit, CounterChange, ThreadChange } from '../store/commit.ts'
import { isStoreError } from '../store/store-error.ts'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import type { ThreadQuery } from '../store/thread-query.ts'
import { descendantsOf } from '../store/descendants.ts'
import { placeOf } from '../store/select-threads.ts'

/** How many threads are checked at a time, and the pause (ms) between two such groups. */
const SLICE = 100
const PAUSE_MS = 50
/**
 * How many trees of threads are removed together. The store rewrites its file only once for erasures asked for together.
 */
const TOGETHER = 20
const DEFAULT_EVERY_MS = 3_600_000

/** What retention needs of a runtime. */
export interface RetentionParts {
  readonly rules: readonly RetentionRule[]
  readonly everyMs: number | undefined
  readonly store: Store
  readonly timers: Timers
  /** Writes the commit, and starts work on the threads that it terminates, so that they close. */
  readonly commit: (commit: Commit) => Promise<unknown>
  /** Erases, or removes, a terminated thread together with its descendants. */
  readonly erase: (threadId: string) => Promise<void>
  readonly remove: (threadId: string) => Promise<void>
  /** Called before each check of all threads. */
  readonly before?: (() => Promise<void>) | undefined
  readonly report: (error: unknown, threadId?: string) => void
}

/**
 * Erases or removes old threads in the background. First, one commit terminates a thread and its
 * descendants; it is refused if anybody has written to one of them since they were read. Only then are
 * they erased. So a thread that gets a message at the last moment is kept.
 */
export class Retention {
  readonly #parts: RetentionParts
  #timer: TimerHandle | undefined
  #isStopped = true
  #running: Promise<void> | undefined

  constructor(parts: RetentionParts) {
    this.#parts = parts
    for (const rule of parts.rules) checkRule(rule)
    const { everyMs } = parts
    if (everyMs !== undefined && !(everyMs >= 1_000))
      throw new RuntimeError(`Retention cannot run every ${everyMs} ms.`, {
        code: 'INPUT_INVALID',
        hint: 'Give everyMs of at least 1000, or leave it out: then it runs every hour.',
      })
  }

  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.#next(PAUSE_MS)
  }

  /** Resolves when the removals that are under way have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#parts.timers.clear(this.#timer)
    await this.#running
  }

  #next(ms: number): void {
    const { timers, everyMs = DEFAULT_EVERY_MS, report } = this.#parts
    if (this.#isStopped) return
    this.#timer = timers.set(ms, () => {
      this.#running = this.sweep({ mayStop: true })
        .catch((error: unknown) => report(error))
        .then(() => this.#next(everyMs))
    })
  }

  /** Checks all threads once, tenant by tenant, the most recently active first, `SLICE` at a time. */
  async sweep({ mayStop = false }: { readonly mayStop?: boolean } = {}): Promise<void> {
    const { store, rules, before } = this.#parts
    await before?.()
    if (rules.length === 0) return
    for (const tenant of await store.tenants()) {
      if (mayStop && this.#isStopped) return
      if (rules.every(({ tenants }) => tenants && !tenants.includes(tenant))) continue
      await this.#sweepTenant(tenant, mayStop)
    }
  }

  async #sweepTenant(tenant: string, mayStop: boolean): Promise<void> {
    const { store, rules } = this.#parts
    const counts = rules.map(() => ({ count: 0 }))
    // A thread that becomes active during this loop moves to places that were read before. It is then counted once
    // or missed, never twice, so the loop may keep a thread too many but never removes one too many.
    for (let after: ThreadQuery['after']; ;) {
      const query = { tenant, parentId: null, sort: 'activity', limit: SLICE, after } as const
      const page = await store.list(query)
      const due: { readonly head: ThreadHead; readonly rule: RetentionRule }[] = []
      for (const head of page) {
        const rule = rules.find((one, place) => this.#isDue(head, one, counts[place]!))
        if (rule) due.push({ head, rule })
      }
      while (due.length > 0) {
        if (mayStop && this.#isStopped) return
        await Promise.all(due.splice(0, TOGETHER).map((one) => this.#apply(one.head, one.rule)))
        await this.#pause()
      }
      const last = page.at(-1)
      if (!last || page.length < SLICE || (mayStop && this.#isStopped)) return
      after = placeOf(last)
      await this.#pause()
    }
  }

  #pause(): Promise<void> {
    const { timers } = this.#parts
    return new Promise((resolve) => void timers.set(PAUSE_MS, resolve))
  }

  /** Whether a rule applies to this thread, and the thread is too old or exceeds the number of threads to keep. */
  #isDue(head: ThreadHead, rule: RetentionRule, kept: { count: number }): boolean {
    const { tenants, agents, maxAgeMs = Infinity, maxThreads = Infinity, action } = rule
    if (tenants && !tenants.includes(head.tenant)) return false
    if (agents && !agents.includes(head.agent)) return false
    const isErased = head.lifecycle === 'erased'
    if (isErased && action !== 'remove') return false
    if (!isErased) kept.count++
    return kept.count > maxThreads || this.#parts.timers.now() - head.updatedAt > maxAgeMs
  }

  /** Erases or removes a thread that is due, unless it is in use. */
  async #apply(head: ThreadHead, rule: RetentionRule): Promise<void> {
    const { store, erase, remove, commit, report } = this.#parts
    const { action = 'erase' } = rule
    try {
      const tree = [head, ...(await descendantsOf({ store }, head))]
      if (!tree.every((one) => isAtRest(one, rule))) {
        return await this.#count(head.tenant, 'kept')
      }
      const now = this.#parts.timers.now()
      const threads = tree.flatMap((one) => closing(one, now))
      if (threads.length > 0) await commit({ point: 'retention', threads })
      await (action === 'erase' ? erase(head.id) : remove(head.id))
      await this.#count(head.tenant, action === 'erase' ? 'erased' : 'removed')
    } catch (error) {
      // The store refused the commit because there are new events: the thread is in use.
      const isAtWork = isStoreError(error, 'LOG_MOVED') || isStoreError(error, 'FENCED')
      const isGone = isStoreError(error, 'THREAD_NOT_FOUND')
      if (isAtWork) await this.#count(head.tenant, 'kept')
      else if (!isGone) {
        report(error, head.id)
        await this.#count(head.tenant, 'failed').catch(() => undefined)
      }
    }
  }

  async #count(tenant: string, what: Removal): Promise<void> {
    const names = [`${PREFIX}${JSON.stringify(tenant)} ${what}`, `limit total ${what}`]
    const counters = names.map((name): CounterChange => ({ name, add: 1 }))
    await this.#parts.store.commit({ point: 'limit_count', isLazy: true, threads: [], counters })
  }
}

const PREFIX = 'limit retention '
const REMOVALS = ['erased', 'removed', 'kept', 'failed'] as const
type Removal = (typeof REMOVALS)[number]

/** Returns how many threads retention has erased, removed or kept so far, per tenant: of one tenant, or of all. */
export async function retentionReport(
  store: Store,
  tenant?: string,
): Promise<LimitsReport['retention']> {
  const byTenant = new Map<string, Record<Removal, number>>()
  for (const [name, value] of await store.counters(PREFIX)) {
    const place = name.lastIndexOf(' ')
    const of = JSON.parse(name.slice(PREFIX.length, place)) as string // `#count` wrote a text
    if (tenant !== undefined && of !== tenant) continue
    const sums = byTenant.get(of) ?? { erased: 0, removed: 0, kept: 0, failed: 0 }
    byTenant.set(of, { ...sums, [name.slice(place + 1)]: value })
  }
  return [...byTenant].map(([of, sums]) => ({ tenant: of, ...sums }))
}

/**
 * Whether a thread has nothing to do, now or later: no process works on it, no person is asked, no
 * message is queued and no work (effect) is scheduled. With `includes`, threads that wait or have
 * scheduled work count as at rest too; threads that work now never do.
 */
function isAtRest(head: ThreadHead, { includes = [] }: RetentionRule): boolean {
  const { lifecycle, waiting, wakeAt, lease } = head
  if (lease || lifecycle === 'running' || lifecycle === 'queued') return false
  if (lifecycle === 'erased' || lifecycle === 'terminated') return wakeAt === null
  const isWaiting = lifecycle === 'waiting' || waiting > 0
  if (isWaiting && !includes.includes('waiting')) return false
  return wakeAt === null || isWaiting || includes.includes('scheduled')
}

/** Returns the change that terminates a thread, unless it has changed since `head` was read. */
function closing(head: ThreadHead, now: number): readonly ThreadChange[] {
  if (head.lifecycle === 'terminated' || head.lifecycle === 'erased') return []
  const at = new Date(now).toISOString()
  return [
    {
      id: head.id,
      expectSeq: head.seq,
      fence: head.epoch,
      append: [{ type: 'thread_terminated', at, by: 'retention' }],
      head: { lifecycle: 'terminated', waiting: 0 },
      wake: { by: now },
    },
  ]
}

function checkRule(rule: RetentionRule): void {
  const { maxAgeMs, maxThreads, action = 'erase', includes = [] } = rule
  const limits = [maxAgeMs, maxThreads].filter((limit) => limit !== undefined)
  const isKnown = action === 'erase' || action === 'remove'
  const areKnown = includes.every((what) => what === 'waiting' || what === 'scheduled')
  if (limits.length > 0 && limits.every((limit) => limit >= 0) && isKnown && areKnown) return
  throw new RuntimeError(`The retention rule ${JSON.stringify(rule)} cannot be used.`, {
    code: 'INPUT_INVALID',
    hint: 'It needs maxAgeMs or maxThreads; action is erase or remove; includes lists waiting and scheduled.',
  })
}
