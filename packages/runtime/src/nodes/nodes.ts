import { sha256, sha256Hex } from '@skein/base'
import type { EditListeners } from '../commit/publish.ts'
import type { FoldCache } from '../state/fold-cache.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import type {
  Dispatcher,
  NodeLink,
  NodeNotice,
  TimerHandle,
  Timers,
} from '../dispatch/dispatcher.ts'
import type { Channel } from '../live/channel.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { ShownEvent } from '../live/live-draft.ts'
import type { Commit, CommitResult } from '../store/commit.ts'
import { isStoreError } from '../store/store-error.ts'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import { isParked } from '../store/head.ts'
import { Relay } from './relay.ts'

/** Options that make a runtime one of several nodes (processes) that share a store. */
export interface NodesOptions {
  /** How the nodes tell one another what they have committed. */
  readonly link: NodeLink
  /**
   * The address at which other nodes reach the HTTP server of this node, with its prefix, e.g. `http://10.0.0.4:3000`.
   * Without it, clients of other nodes get what this node writes to the log, but no deltas of running answers.
   */
  readonly address?: string
  /** A text of at least 32 characters, the same on all nodes, with which the nodes authenticate to one another. */
  readonly secret: string
  /** The name of this node in metrics. Default: the name of the process in leases (`owner`). */
  readonly name?: string
  /**
   * Starts even if earlier nodes had other keys; from then on, all nodes must have the keys of this
   * node. Stop all other nodes first.
   */
  readonly replacesKeys?: boolean
  /** Default: the one of the platform. */
  readonly fetch?: typeof fetch
}

/** The parts of a runtime that its node uses. */
export interface NodeParts {
  readonly options: NodesOptions
  readonly owner: string
  readonly leaseMs: number
  readonly store: Store
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
  readonly edits: EditListeners
  readonly folds: FoldCache
  readonly timers: Timers
  /** Returns 0 to 1, to vary delays, so that nodes do not ask the store all at once. Default: `Math.random`. */
  readonly random?: () => number
  readonly report: (error: unknown, threadId?: string) => void
}

/** Work that exactly one node at a time does for all nodes. */
export interface LedWork {
  /** Begins the work. The work is ended by `stop` of the result or, if there is no result, by the `stop` below. */
  start(): Promise<{ stop(): Promise<void> }> | void
  stop?(): Promise<void>
}

/** The average time between two searches of the store (sweeps) for changes whose notices between nodes were lost. */
export const SWEEP_MS = 1_500
/** How many threads one search looks up at most: threads that this node works on or somebody reads here. */
const MAX_LOOKED_UP = 200
const AT_ONCE = 16 // of them at the same time
/** How long a node waits before it works on a thread that another node made due, so that the other can take it. */
const HEAD_START_MS = 100
/** For how many threads this node remembers the last event it was told of; a search does not report it again. */
const REMEMBERED = 5_000
/** How far back a search of the store looks for changes of other nodes, because their clocks may be behind. */
const SKEW_MS = 60_000

/**
 * One of several nodes. After each commit this node sends a notice to the others, and it acts on their notices:
 * readers here get the events, work on due threads begins, and work that must end is interrupted. A lost notice
 * costs only time: every second or two, a search of the store (sweep) finds the changes that it was about.
 */
export class RuntimeNode {
  readonly name: string
  /** The settings and counters that the nodes share. */
  readonly store: Pick<Store, 'setting' | 'setSetting' | 'commit' | 'counters'>
  readonly #parts: NodeParts
  readonly #relay: Relay
  readonly #secretHash: Uint8Array
  readonly #due = new Set<string>()
  readonly #noticed = new Map<string, number>()
  readonly #leaders = new Set<Leader>()
  #dueTimer: TimerHandle | undefined
  #sweepTimer: TimerHandle | undefined
  #lookingUp: Promise<void> | undefined
  #looksAgain = false
  /** The last thread that a search of the store looked up; if it could not do all, the next one goes on after it. */
  #lastLookedUp = ''
  #state: 'new' | 'started' | 'stopped' = 'new'

  constructor(parts: NodeParts) {
    const { options, owner, store, live, timers, report } = parts
    const { secret } = options
    this.name = options.name ?? owner
    this.store = store
    this.#parts = parts
    this.#secretHash = sha256(secret)
    this.#relay = new Relay({
      owner,
      secret,
      fetch: options.fetch ?? fetch,
      store,
      live,
      timers,
      report,
      told: (threadId, events) => this.#told(threadId, events),
    })
  }

  async start(): Promise<void> {
    const { link, live } = { ...this.#parts, ...this.#parts.options }
    live.remote = this.#relay
    this.#state = 'started'
    await link.start({
      notice: (notice) => this.#receive(notice),
      gap: () => void this.#lookUpAll(),
    })
    this.#armSweep()
  }

  async stop(): Promise<void> {
    const { timers, options } = this.#parts
    this.#state = 'stopped'
    for (const timer of [this.#sweepTimer, this.#dueTimer])
      if (timer !== undefined) timers.clear(timer)
    await Promise.all([...this.#leaders].map((leader) => leader.stop()))
    this.#relay.stop()
    await options.link.stop()
  }

  /** Tells the other nodes about a commit of this one. */
  committed({ threads }: Commit, { seqs }: CommitResult): void {
    const { owner, timers } = this.#parts
    const { link } = this.#parts.options
    const now = timers.now()
    for (const [threadId, seq] of seqs) {
      const changes = threads.filter(({ id }) => id === threadId)
      const isDue = changes.some(({ wake }) => {
        const at = wake && ('by' in wake ? wake.by : wake.exactly)
        return at !== undefined && at !== null && at <= now
      })
      const isDrain = changes.some(({ fence }) => fence !== undefined)
      const notice = { type: 'committed', threadId, seq, isDue } as const
      this.#remember(threadId, seq)
      link.send(isDrain ? { ...notice, drainedBy: owner } : notice)
      const reason = changes.flatMap(({ append = [] }) => append).find(endsDrain)?.type
      if (reason) link.send({ type: 'interrupt', threadId, reason })
    }
  }

  /** Tells the other nodes that a thread was removed or erased here. */
  removed(head: ThreadHead): void {
    const bare = { ...head, title: null, tags: [], clientId: null }
    this.#parts.options.link.send({ type: 'removed', threadId: head.id, head: bare })
  }

  /** Resolves when no node works on the thread any more and the thread is not due. */
  async settled(threadId: string): Promise<void> {
    const { dispatcher, store, timers, live } = this.#parts
    if (this.#state !== 'started') return dispatcher.settled?.(threadId)
    const controller = new AbortController()
    const isFree = async (): Promise<boolean> => {
      const head = await store.head(threadId)
      return !head || (head.lease === null && isParked(head, timers.now()))
    }
    // The regular search of the store makes `watch` yield again, even if a notice was lost or a lease has expired.
    for await (const _ of live.watch([threadId], { signal: controller.signal }))
      if ((await isFree()) || this.#state !== 'started') return controller.abort()
  }

  /** Whether a request comes from another node. */
  isFromNode(request: Request): boolean {
    const [, given = ''] = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '') ?? []
    const hash = sha256(given)
    let difference = 0
    for (const [place, byte] of this.#secretHash.entries()) difference |= byte ^ hash[place]!
    return difference === 0
  }

  /** Yields the live state of a thread, as server-sent events, to another node that has readers of the thread. */
  frames(threadId: string, signal: AbortSignal): AsyncIterable<string> {
    return this.#relay.frames(threadId, signal)
  }

  /** Shows readers the events that another node has sent here, because this node works on their thread. */
  show(threadId: string, events: readonly ShownEvent[]): void {
    this.#parts.live.show(threadId, events)
  }

  /** Lets one node at a time do some work for all nodes. */
  lead(name: string, work: LedWork): { stop(): Promise<void> } {
    const leader = new Leader({ ...this.#parts, name, work })
    this.#leaders.add(leader)
    leader.start()
    return {
      stop: async () => {
        this.#leaders.delete(leader)
        await leader.stop()
      },
    }
  }

  #receive(notice: NodeNotice): void {
    if (this.#state !== 'started') return
    const { live, folds } = this.#parts
    const { threadId } = notice
    switch (notice.type) {
      case 'committed': {
        const { seq, isDue, drainedBy } = notice
        this.#remember(threadId, seq)
        live.note(threadId)
        this.#relay.noticed(threadId, seq, drainedBy)
        // If all nodes share one engine that wakes threads (e.g. Restate), that engine already knows of this wake-up.
        if (isDue && !this.#parts.dispatcher.isShared) this.#checkSoon(threadId)
        return
      }
      case 'removed':
        folds.forget(threadId)
        return notice.head ? live.removed(notice.head) : live.end(threadId)
      case 'interrupt':
        void this.#interrupt(threadId)
    }
  }

  /** Acts on events of other nodes: work on the thread here may have to end, or its model request be outdated. */
  #told(threadId: string, stored: readonly StoredEvent[]): void {
    const events = stored.map(({ event }) => event)
    if (events.some(endsDrain)) void this.#interrupt(threadId)
    this.#parts.edits.tell(threadId, events)
  }

  /**
   * Interrupts the work on a thread if this node does it and the log says that it must end. The notice of another
   * node alone is not enough, because a late notice would interrupt the next work on the thread.
   */
  async #interrupt(threadId: string): Promise<void> {
    const { store, dispatcher, owner, folds, report } = this.#parts
    try {
      const head = await store.head(threadId)
      if (head?.lease?.owner !== owner) return
      if (head.lifecycle === 'terminated') return dispatcher.interrupt(threadId, 'terminate')
      const thread = await folds.load(threadId)
      if (thread?.state.stop === 'requested') dispatcher.interrupt(threadId, 'stop')
    } catch (error) {
      if (this.#state === 'started') report(error, threadId)
    }
  }

  /** Starts work on a due thread a little later, unless the node that made it due works on it by then. */
  #checkSoon(threadId: string): void {
    const { timers } = this.#parts
    this.#due.add(threadId)
    const ms = HEAD_START_MS * (0.5 + this.#random())
    this.#dueTimer ??= timers.set(ms, () => {
      this.#dueTimer = undefined
      const ids = [...this.#due]
      this.#due.clear()
      void this.#forEach(ids, (id) => this.#wakeIfFree(id))
    })
  }

  async #wakeIfFree(threadId: string): Promise<void> {
    const { store, dispatcher, timers } = this.#parts
    const head = await store.head(threadId)
    const now = timers.now()
    if (head?.wakeAt == null || head.wakeAt > now) return
    if (head.lease === null || head.lease.until <= now) dispatcher.wake(threadId)
  }

  #armSweep(): void {
    const { timers } = this.#parts
    if (this.#state !== 'started') return
    this.#sweepTimer = timers.set(SWEEP_MS * (0.67 + 0.66 * this.#random()), () => {
      void this.#lookUp(MAX_LOOKED_UP).finally(() => this.#armSweep())
    })
  }

  #random(): number {
    return (this.#parts.random ?? Math.random)()
  }

  /** Looks up all threads, because notices of other nodes were lost. A call during a lookup makes it run again. */
  #lookUpAll(): Promise<void> {
    this.#looksAgain = true
    this.#lookingUp ??= (async () => {
      while (this.#looksAgain && this.#state === 'started') {
        this.#looksAgain = false
        await this.#lookUp(Infinity)
      }
      this.#lookingUp = undefined
    })()
    return this.#lookingUp
  }

  /** Looks up threads that are read or worked on here, and threads that have changed lately. */
  async #lookUp(max: number): Promise<void> {
    const { live } = this.#parts
    const ids = [...live.entries()].map(([id]) => id)
    const start = ids.indexOf(this.#lastLookedUp) + 1
    const turn = [...ids.slice(start), ...ids.slice(0, start)].slice(0, max)
    this.#lastLookedUp = turn.at(-1) ?? ''
    await this.#forEach(turn, (id) => this.#lookUpOne(id))
    if (live.changeReaders > 0) await this.#noteChanged().catch((error) => this.#report(error))
  }

  async #lookUpOne(threadId: string): Promise<void> {
    const { store, live, dispatcher, owner, timers } = this.#parts
    const head = await store.head(threadId)
    const channel = live.channel(threadId)
    if (!channel) return
    if (!head || (channel.seen && channel.seen.logId !== head.logId)) return live.end(threadId)
    // A node may have died after it claimed a thread that has nothing to do. No node looks for such a thread, so its
    // lease would stay for ever; claiming the thread once its lease has ended gives it back.
    const isLeft = head.lease !== null && head.lease.owner !== owner
    if (isLeft && isParked(head, timers.now())) dispatcher.wake(threadId)
    if (hasNews(channel, head)) this.#relay.noticed(threadId, head.seq, head.lease?.owner)
    else if (channel.deltaReaders > 0 && head.lease?.address)
      this.#relay.check(threadId, head.lease)
  }

  async #noteChanged(): Promise<void> {
    const { store, live, timers } = this.#parts
    const isFirst = this.#noticed.size === 0
    for (const { id, seq, updatedAt } of await store.list({ sort: 'activity', limit: 200 })) {
      if (updatedAt < timers.now() - SKEW_MS) break
      if ((this.#noticed.get(id) ?? 0) >= seq) continue
      this.#remember(id, seq)
      if (!isFirst) live.note(id)
    }
  }

  #remember(threadId: string, seq: number): void {
    if (this.#noticed.size >= REMEMBERED) this.#noticed.clear()
    this.#noticed.set(threadId, Math.max(seq, this.#noticed.get(threadId) ?? 0))
  }

  async #forEach(ids: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
    for (let from = 0; from < ids.length && this.#state === 'started'; from += AT_ONCE)
      await Promise.all(
        ids.slice(from, from + AT_ONCE).map((id) => work(id).catch((error) => this.#report(error))),
      )
  }

  #report(error: unknown): void {
    if (this.#state === 'started') this.#parts.report(error)
  }
}

/** Whether an event says that the running work on its thread must end. */
function endsDrain(event: RuntimeEvent): boolean {
  return event.type === 'thread_terminated' || (event.type === 'stop_requested' && !event.afterStep)
}

/** Whether the thread has changed since it was last looked up; also remembers its present state. */
function hasNews(channel: Channel, { logId, seq, lifecycle, wakeAt, lease }: ThreadHead): boolean {
  const state = JSON.stringify([lifecycle, wakeAt, lease?.owner ?? null])
  const isNew = channel.seen?.state !== state
  channel.seen = { logId, state }
  return isNew || seq > channel.seq
}

interface LeaderParts extends Pick<NodeParts, 'store' | 'timers' | 'leaseMs' | 'report'> {
  readonly name: string
  readonly work: LedWork
}

/**
 * Keeps exactly one node in charge of some work. A counter in the store has the number of the present term:
 * only one node can raise it, and that node is in charge. It raises a second counter again and again while it
 * lives. Nodes never compare the times of two clocks: the node in charge stops a third of a lease after it last
 * raised the counter, and the others take over only after half a lease, by their own clocks, without a change.
 */
class Leader {
  readonly #parts: LeaderParts
  readonly #names: { readonly term: string; readonly beat: string; readonly free: string }
  /** The number of the term in which this node is in charge; undefined if it is not. */
  #term: number | undefined
  #running: { stop(): Promise<void> } | undefined
  #seen = { term: -1, beat: -1, at: 0 }
  #timer: TimerHandle | undefined
  #deadline: TimerHandle | undefined
  #isStopped = false
  #ticking: Promise<void> = Promise.resolve()

  constructor(parts: LeaderParts) {
    this.#parts = parts
    const prefix = `limit lead ${parts.name}`
    this.#names = { term: `${prefix} term`, beat: `${prefix} beat`, free: `${prefix} free` }
  }

  start(): void {
    this.#ticking = this.#tick()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== undefined) this.#parts.timers.clear(this.#timer)
    await this.#ticking
    const term = this.#term
    await this.#resign()
    if (term === undefined) return
    const { term: name, free } = this.#names
    // Records that this node is no longer in charge, so that the next node need not wait for half a lease.
    await this.#commit([
      { name, add: 0, below: term + 1 },
      { name: free, add: 1, below: term },
    ]).catch(() => undefined)
  }

  async #tick(): Promise<void> {
    const { timers, leaseMs, report } = this.#parts
    try {
      await (this.#term === undefined ? this.#follow() : this.#beat(this.#term))
    } catch (error) {
      if (!this.#isStopped) report(error)
    }
    if (this.#isStopped) return
    this.#timer = timers.set(leaseMs / 6, () => {
      this.#ticking = this.#tick()
    })
  }

  async #follow(): Promise<void> {
    const { store, timers, leaseMs } = this.#parts
    const names = this.#names
    const counters = await store.counters(`limit lead ${this.#parts.name} `)
    const [term, beat, free] = [names.term, names.beat, names.free].map(
      (name) => counters.get(name) ?? 0,
    ) as [number, number, number]
    if (term !== this.#seen.term || beat !== this.#seen.beat)
      this.#seen = { term, beat, at: timers.now() }
    const isFree = free >= term || timers.now() - this.#seen.at >= leaseMs / 2
    if (!isFree || this.#isStopped) return
    const isTaken = await this.#within([
      { name: names.term, add: 1, below: term + 1 },
      { name: names.free, add: term - free },
    ])
    if (!isTaken) return // another node was faster
    this.#term = term + 1
    const { work } = this.#parts
    this.#running = (await work.start()) ?? { stop: async () => work.stop?.() }
    if (this.#term === undefined) await this.#resign() // its deadline has passed meanwhile
  }

  async #beat(term: number): Promise<void> {
    const { term: name, beat } = this.#names
    const isInCharge = await this.#within([
      { name, add: 0, below: term + 1 },
      { name: beat, add: 1 },
    ])
    if (!isInCharge) await this.#resign()
  }

  /**
   * Commits and, if that succeeds, moves the time at which this node resigns. The new time is counted from
   * before the commit, so that it is never too late. Returns false if another node is in charge.
   */
  async #within(counters: NonNullable<Commit['counters']>): Promise<boolean> {
    const { timers, leaseMs } = this.#parts
    const next = timers.set(leaseMs / 3, () => void this.#resign())
    try {
      await this.#commit(counters)
    } catch (error) {
      timers.clear(next)
      if (isStoreError(error, 'LIMIT_REACHED')) return false
      throw error
    }
    if (this.#deadline !== undefined) timers.clear(this.#deadline)
    this.#deadline = next
    return true
  }

  async #resign(): Promise<void> {
    this.#term = undefined
    if (this.#deadline !== undefined) this.#parts.timers.clear(this.#deadline)
    this.#deadline = undefined
    const running = this.#running
    this.#running = undefined
    await running?.stop().catch((error: unknown) => this.#parts.report(error))
  }

  async #commit(counters: NonNullable<Commit['counters']>): Promise<void> {
    await this.#parts.store.commit({ point: 'lead', isLazy: true, threads: [], counters })
  }
}

/** What must be the same on all nodes: ids of keys. An id reveals nothing about its key. */
export interface NodeKeys {
  /** The id of the key that encrypts secrets, then the ids of older keys that only decrypt them. */
  readonly secretKeys: readonly string[]
  readonly approvals: string
  readonly log: string
}

const SETTING = 'nodes'
/** The name of a counter in the store. The node that raises it from 0 is the store's first node. */
const FIRST = 'limit nodes first'
/** How long other nodes wait for the first node to write the ids of its keys. */
const FIRST_MS = 10_000
const ASK_MS = 100

/**
 * Opens the keys of a node and compares their ids with those of the other nodes. The first node of a store does
 * so while the others wait, because it creates the keys that are kept in the store. Throws `NODE_KEYS_DIFFER`.
 */
export async function openSharedKeys<T>(
  { store, timers, options }: Pick<NodeParts, 'store' | 'timers' | 'options'>,
  open: () => Promise<T>,
  idsOf: (keys: T) => NodeKeys,
): Promise<T> {
  if (options.secret.length < 32)
    throw new RuntimeError('The secret of the nodes is shorter than 32 characters.', {
      code: 'INPUT_INVALID',
      hint: 'Make one with `openssl rand -hex 32`, and give it to all nodes as `nodes.secret`.',
    })
  if (!(await store.setting(SETTING)) && !(await isFirst(store)))
    for (let waited = 0; waited < FIRST_MS && !(await store.setting(SETTING)); waited += ASK_MS)
      await new Promise<void>((resolve) => timers.set(ASK_MS, resolve))
  const keys = await open()
  const { secretKeys, approvals, log } = idsOf(keys)
  const own = {
    secretKey: secretKeys[0]!,
    approvals,
    log,
    secret: sha256Hex(`skein node ${options.secret}`).slice(0, 16),
  }
  const known = options.replacesKeys ? undefined : await store.setting(SETTING)
  const differ = known ? differing(own, known, secretKeys) : []
  if (differ.length > 0)
    throw new RuntimeError(
      `This node does not have the same keys as the nodes before it: ${differ.join(', ')}.`,
      {
        code: 'NODE_KEYS_DIFFER',
        hint: 'Give all nodes the same `secretKey`, `keys` and `nodes.secret`. The page "Several nodes" of the docs says how to replace the secret key while nodes run; to replace others, stop all nodes and start the first with `nodes.replacesKeys`.',
      },
    )
  if (known?.['secretKey'] !== own.secretKey || options.replacesKeys)
    await store.setSetting(SETTING, own)
  return keys
}

async function isFirst(store: Store): Promise<boolean> {
  const counters = [{ name: FIRST, add: 1, below: 1 }]
  try {
    await store.commit({ point: 'first_node', threads: [], counters })
    return true
  } catch (error) {
    if (isStoreError(error, 'LIMIT_REACHED')) return false
    throw error
  }
}

/** Names the keys that differ. Another secret key is allowed if this node can decrypt what others encrypted. */
function differing(
  own: Readonly<Record<string, string>>,
  known: Readonly<Record<string, unknown>>,
  secretKeys: readonly string[],
): string[] {
  const names: Readonly<Record<string, string>> = {
    approvals: 'the key that signs approvals (`keys.approvals`)',
    log: 'the key that signs audit logs (`keys.log`)',
    secret: 'the secret of the nodes (`nodes.secret`)',
  }
  const differ = Object.keys(names).filter((name) => own[name] !== known[name])
  const isSealed = !secretKeys.includes(String(known['secretKey']))
  return [
    ...(isSealed ? ['the secret key (`secretKey`)'] : []),
    ...differ.map((name) => names[name]!),
  ]
}
