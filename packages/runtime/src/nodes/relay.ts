import { encodeSse, SseDecoder } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { StoredEvent } from '../contract/event.ts'
import type { TimerHandle, Timers } from '../dispatch/dispatcher.ts'
import type { LiveFrame } from '../live/channel.ts'
import type { LiveBus, RemoteReaders } from '../live/live-bus.ts'
import { endsDraft, type ShownEvent } from '../live/live-draft.ts'
import type { Lease } from '../store/head.ts'
import type { Store } from '../store/store.ts'

/** The parts of a node that its relay uses. */
export interface RelayParts {
  /** The name of this process in leases. */
  readonly owner: string
  readonly secret: string
  readonly fetch: typeof fetch
  readonly store: Pick<Store, 'head' | 'events'>
  readonly live: LiveBus
  readonly timers: Timers
  /**
   * Called with events of other nodes once they were read from the store, for threads that are read or worked on here.
   */
  readonly told: (threadId: string, events: readonly StoredEvent[]) => void
  readonly report: (error: unknown, threadId?: string) => void
}

/** How many events are read from the store at once. */
const PAGE = 500
/** How long the stream to another node stays open after the work on the thread has ended. */
const LINGER_MS = 5_000
/** If a node sends nothing for this long, it counts as dead: a living node sends a comment every 15 s. */
const SILENT_MS = 40_000
const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 5_000
/** The largest frame (message of a node) that is accepted: more than its text needs, 4 Mi characters of 6 bytes. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

interface Followed {
  readonly controller: AbortController
  /** The node that sends the draft (deltas of the running step); undefined until the thread's lease was read. */
  owner: string | undefined
  /** Its address while it sends. */
  address: string | undefined
  /** Whether a notice came after which another node than `owner` may be working on the thread. */
  again: boolean
  /** Ends the pause before the next try. */
  wake?: () => void
}

interface Pull {
  wanted: number
  done: Promise<void>
}

/**
 * Keeps the live state of threads that are read here and worked on by another node. Stored events are read from
 * the store, once for all readers of this node. The draft (deltas of the running step) comes from the node that
 * works on the thread, over one stream for each thread; its pieces have the same numbers as those of the draft there.
 */
export class Relay implements RemoteReaders {
  readonly #parts: RelayParts
  readonly #followed = new Map<string, Followed>()
  readonly #pulls = new Map<string, Pull>()
  #isStopped = false

  constructor(parts: RelayParts) {
    this.#parts = parts
  }

  /** The number of threads whose streamed text is being received from other nodes. */
  get size(): number {
    return this.#followed.size
  }

  stop(): void {
    this.#isStopped = true
    for (const { controller } of this.#followed.values()) controller.abort()
  }

  reading(threadId: string): void {
    const known = this.#followed.get(threadId)
    if (known) this.#again(known)
    else if (!this.#isStopped) void this.#follow(threadId)
  }

  left(threadId: string): void {
    const followed = this.#followed.get(threadId)
    if (!followed) return
    followed.address = undefined
    followed.controller.abort()
    followed.wake?.()
  }

  behind(threadId: string, seq: number): void {
    void this.pull(threadId, seq)
  }

  forward(threadId: string, events: readonly ShownEvent[]): boolean {
    const address = this.#followed.get(threadId)?.address
    if (address === undefined) return false
    const { secret, fetch: send } = this.#parts
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const body = JSON.stringify(events)
    send(liveUrl(address, threadId), { method: 'POST', headers, body, redirect: 'error' }).then(
      (response) => response.body?.cancel().catch(() => {}), // the connection may be broken already
      (error: unknown) => this.#report(error, threadId),
    )
    return true
  }

  /** Receives the streamed text from the node that holds the lease, unless it is already received from there. */
  check(threadId: string, { owner }: Lease): void {
    const known = this.#followed.get(threadId)
    if (owner !== this.#parts.owner && known?.owner !== owner) {
      if (known?.owner !== undefined) known.controller.abort()
      this.reading(threadId)
    }
  }

  /** Called when another node has changed a thread, or when the thread was looked up in the store. */
  noticed(threadId: string, seq: number, owner?: string): void {
    const channel = this.#parts.live.channel(threadId)
    if (!channel) return
    if (seq > channel.seq) void this.pull(threadId, seq)
    else channel.publish([], false) // only the head has changed
    if (channel.deltaReaders === 0) return
    const known = this.#followed.get(threadId)
    const isMoved = owner !== undefined && known?.owner !== undefined && known.owner !== owner
    if (isMoved) known.controller.abort()
    if (isMoved || (known?.owner === undefined && owner !== this.#parts.owner))
      this.reading(threadId)
  }

  #again(followed: Followed): void {
    followed.again = true
    followed.wake?.()
  }

  /** Publishes the events up to `seq` to the readers of a thread, in order. */
  pull(threadId: string, seq: number): Promise<void> {
    const running = this.#pulls.get(threadId)
    if (running) {
      running.wanted = Math.max(running.wanted, seq)
      return running.done
    }
    const pull: Pull = { wanted: seq, done: Promise.resolve() }
    this.#pulls.set(threadId, pull)
    pull.done = this.#pullAll(threadId, pull)
      .catch((error: unknown) => this.#report(error, threadId))
      .finally(() => this.#pulls.delete(threadId))
    return pull.done
  }

  async #pullAll(threadId: string, pull: Pull): Promise<void> {
    const { live, store, told } = this.#parts
    for (;;) {
      const channel = live.channel(threadId)
      if (!channel || channel.seq >= pull.wanted) return
      // No event was published here yet, so each reader reads the store from its own position.
      if (channel.seq === 0) return channel.touch(pull.wanted)
      const events = await store.events(threadId, { after: channel.seq, limit: PAGE })
      if (events.length === 0) return
      told(threadId, channel.pull(events))
    }
  }

  /** Receives the streamed text of a thread for as long as the thread is read here and another node works on it. */
  async #follow(threadId: string): Promise<void> {
    for (let failures = 0; !this.#isStopped;) {
      const followed: Followed = {
        controller: new AbortController(),
        owner: undefined,
        address: undefined,
        again: false,
      }
      this.#followed.set(threadId, followed)
      let end: 'over' | 'again' | 'failed' = 'over'
      try {
        const lease = await this.#leaseOf(threadId)
        if (lease && !followed.controller.signal.aborted) {
          followed.owner = lease.owner
          end = await this.#receive(threadId, lease, followed)
        }
      } catch (error) {
        end = 'failed'
        if (failures === 0) this.#report(error, threadId)
      }
      const isWanted = (this.#parts.live.channel(threadId)?.deltaReaders ?? 0) > 0
      const isAgain = followed.again || end !== 'over'
      if (this.#isStopped || !isWanted || !isAgain) break
      failures = end === 'failed' && !followed.again ? failures + 1 : 0
      if (failures > 0) await this.#pause(failures, followed)
    }
    this.#followed.delete(threadId)
  }

  /** Returns the lease of the node that works on the thread, if that is another node and its address is known. */
  async #leaseOf(threadId: string): Promise<(Lease & { readonly address: string }) | undefined> {
    const lease = (await this.#parts.store.head(threadId))?.lease
    if (!lease || lease.owner === this.#parts.owner || lease.address === undefined) return undefined
    return { ...lease, address: lease.address }
  }

  async #receive(
    threadId: string,
    { address }: { readonly address: string },
    followed: Followed,
  ): Promise<'over' | 'again' | 'failed'> {
    const { controller } = followed
    const { secret, owner, timers } = this.#parts
    let isSilent = false
    let watch: TimerHandle | undefined
    const heard = (): void => {
      if (watch !== undefined) timers.clear(watch)
      watch = timers.set(SILENT_MS, () => {
        isSilent = true
        controller.abort()
      })
    }
    try {
      heard()
      const headers = { authorization: `Bearer ${secret}`, 'x-skein-node': owner }
      const { signal } = controller
      const request = { headers, signal, redirect: 'error' } as const
      const response = await this.#parts.fetch(liveUrl(address, threadId), request)
      if (!response.ok || !response.body) throw refused(address, response)
      followed.address = signal.aborted ? undefined : address
      const decoder = new SseDecoder({ maxEventBytes: MAX_FRAME_BYTES })
      let version: number | undefined
      for await (const chunk of response.body) {
        heard()
        for (const { event, data } of decoder.push(chunk)) {
          if (event !== 'frame') continue
          const frame = JSON.parse(data) as LiveFrame // sent by a node that has the secret
          if (!(await this.#apply(threadId, frame, version))) return 'again'
          version = frame.version
        }
        if (signal.aborted) break
      }
      return isSilent ? 'failed' : 'over'
    } catch (error) {
      if (controller.signal.aborted) return isSilent ? 'failed' : 'over'
      throw error
    } finally {
      if (watch !== undefined) timers.clear(watch)
      followed.address = undefined
      controller.abort() // closes the connection
    }
  }

  /** Adds a frame of another node to the copy of its streamed text. Returns false if it must send all text again. */
  async #apply(threadId: string, frame: LiveFrame, version?: number): Promise<boolean> {
    const { live, store } = this.#parts
    const { seq } = frame
    if (seq > (live.channel(threadId)?.seq ?? Infinity)) await this.pull(threadId, seq)
    const channel = live.channel(threadId)
    if (!channel) return true
    if (version !== undefined && version !== frame.version) channel.publish([], false)
    // The channel knows only events from its first one on, so the store is asked whether an earlier one
    // ended the text.
    const last = Math.min(channel.firstSeq - 1, channel.seq)
    if (seq < last)
      for (const { event } of await store.events(threadId, { after: seq, limit: last - seq }))
        if (endsDraft(event)) return true
    return channel.replicate(frame)
  }

  #pause(failures: number, followed: Followed): Promise<void> {
    const { timers } = this.#parts
    const ms = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS)
    return new Promise((resolve) => {
      const handle = timers.set(ms, resolve)
      followed.wake = () => {
        timers.clear(handle)
        resolve()
      }
    })
  }

  #report(error: unknown, threadId: string): void {
    if (!this.#isStopped) this.#parts.report(error, threadId)
  }

  /** Yields the live state of a thread for another node, as server-sent events. */
  async *frames(threadId: string, signal: AbortSignal): AsyncGenerator<string, void> {
    const { live, timers } = this.#parts
    for await (const frame of live.frames(threadId, { signal, lingerMs: LINGER_MS, timers }))
      yield encodeSse({ event: 'frame', data: JSON.stringify(frame) })
  }
}

function liveUrl(address: string, threadId: string): string {
  return `${address}/nodes/live/${encodeURIComponent(threadId)}`
}

function refused(address: string, { status }: Response): RuntimeError {
  return new RuntimeError(`The node at ${address} answered ${status} instead of its live events.`, {
    code: 'NODE_UNREACHABLE',
    hint: 'Stored events still arrive. Check that `nodes.address` is the address of its HTTP server with the prefix, and that all nodes have the same `nodes.secret`.',
  })
}
