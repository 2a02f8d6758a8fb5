import type { Clock } from '@skein/base'
import type { StoredEvent } from '../contract/event.ts'
import type { NumberedEvent, SubscribeOptions } from '../contract/subscription.ts'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import type { Timers } from '../dispatch/dispatcher.ts'
import { beginsToShow, NewsSignal, Channel, type LiveFrame } from './channel.ts'
import { AbortGate } from './abort-gate.ts'
import { endsDraft, type ShownEvent } from './live-draft.ts'
import { readThread } from './read-thread.ts'

/**
 * Delivers events of threads to readers as they happen. Readers that miss an event lose nothing but
 * time: all stored events can also be read from the log.
 */
export interface LiveBus {
  /** Publishes the events of a commit. The list is empty if the commit changed only the thread's summary row. */
  publish(threadId: string, events: readonly StoredEvent[]): void
  /** Sends events that are not stored, such as deltas of the running step. */
  show(threadId: string, events: readonly ShownEvent[]): void
  /** Ends all readers of a thread that was removed or whose log was replaced. */
  removed(head: ThreadHead): void
  /** Ends all readers of a thread, without telling the readers of `changes`. */
  end(threadId: string): void
  subscribe(threadId: string, options?: SubscribeOptions): AsyncIterable<NumberedEvent>
  changes(options?: { readonly signal?: AbortSignal }): AsyncIterable<ThreadHead>
  /** Yields once immediately, and then whenever any thread has changed or was removed since the last time. */
  rings(options?: { readonly signal?: AbortSignal }): AsyncIterable<void>
  /**
   * Yields once immediately, and then after each commit to these threads that could end a caller's wait;
   * commits from the middle of a running session are skipped. Ends when the first of these threads is removed.
   */
  watch(
    threadIds: readonly [string, ...string[]],
    options?: { readonly signal?: AbortSignal },
  ): AsyncIterable<void>
  /** The threads with live state in memory. */
  entries(): Iterable<readonly [string, Channel]>
  /** The live state of a thread, if it has any. */
  channel(threadId: string): Channel | undefined
  /** Tells the readers of `changes` that another node has changed or removed a thread. */
  note(threadId: string, removed?: ThreadHead): void
  /** Sends the live state of a thread to another node, until the signal aborts or nothing is left to send. */
  frames(threadId: string, options: FrameOptions): AsyncIterable<LiveFrame>
  /** The connection to other nodes, if there are any. */
  remote: RemoteReaders | undefined
  /** Number of readers, for tests and measurements. */
  readonly readers: number
  /** Number of readers of changes. */
  readonly changeReaders: number
  /** Number of threads with live state in memory. */
  readonly channels: number
}

/** What the bus tells the connection to other nodes. */
export interface RemoteReaders {
  /** Somebody wants deltas of this thread here. */
  reading(threadId: string): void
  /** Nobody reads this thread here any more, or this process itself works on the thread now. */
  left(threadId: string): void
  /** Reports that this process lacks events before `seq`, because other nodes wrote them. */
  behind(threadId: string, seq: number): void
  /** Sends events to the node that works on the thread. Returns false if no other node works on it. */
  forward(threadId: string, events: readonly ShownEvent[]): boolean
}

interface FrameOptions {
  readonly signal: AbortSignal
  /** How long the stream to another node stays open after this process has stopped working on the thread. */
  readonly lingerMs: number
  readonly timers: Timers
}

interface LiveBusOptions {
  readonly store: Store
  readonly clock: Clock
  /** Events read from the store in one request. Default 500. */
  readonly pageSize?: number
  /** How many characters of a running step are kept for late readers. Default 4 Mi. */
  readonly maxDraftSize?: number
}

/**
 * Creates the bus. Readers pull: each remembers the number of its last event and fetches the events
 * after it, from memory or from the store. So a slow reader needs no queue and misses no stored event.
 * Deltas that a reader has missed arrive merged into one.
 */
export function createLiveBus(options: LiveBusOptions): LiveBus {
  return new Bus(options)
}

class Bus implements LiveBus {
  remote: RemoteReaders | undefined
  readonly #options: LiveBusOptions
  readonly #channels = new Map<string, Channel>()
  readonly #headReaders = new Set<HeadReader>()

  constructor(options: LiveBusOptions) {
    this.#options = options
  }

  get readers(): number {
    let count = this.#headReaders.size
    for (const channel of this.#channels.values()) count += channel.readers
    return count
  }

  get channels(): number {
    return this.#channels.size
  }

  publish(threadId: string, events: readonly StoredEvent[]): void {
    this.note(threadId)
    // The channel is created with the event that begins a step, because it must know that event before the
    // first delta.
    const isSource = events.some(({ event }) => beginsToShow(event))
    const channel = isSource ? this.#channel(threadId) : this.#channels.get(threadId)
    if (channel && this.remote) this.#publishAmongNodes(threadId, channel, events)
    else channel?.publish(events)
    this.#forget(threadId, channel)
  }

  /**
   * Publishes events of a thread to which other nodes write too. If this process works on the thread, they
   * are published immediately, because streamed text follows. Other events wait until the events before them
   * were read from the store, because one of those may end the streamed text of another node.
   */
  #publishAmongNodes(threadId: string, channel: Channel, events: readonly StoredEvent[]): void {
    const isDrain = events.some(({ event }) => beginsToShow(event) || endsDraft(event))
    const [first] = events
    const isBehind = first !== undefined && channel.seq > 0 && first.seq > channel.seq + 1
    if (isBehind && !isDrain) return this.remote?.behind(threadId, events.at(-1)!.seq)
    if (isDrain) this.remote?.left(threadId)
    channel.publish(channel.notPulled(events))
  }

  get changeReaders(): number {
    return this.#headReaders.size
  }

  channel(threadId: string): Channel | undefined {
    return this.#channels.get(threadId)
  }

  entries(): Iterable<readonly [string, Channel]> {
    return this.#channels.entries()
  }

  note(threadId: string, removed?: ThreadHead): void {
    for (const reader of this.#headReaders) reader.note(threadId, removed)
  }

  frames(threadId: string, { signal, lingerMs, timers }: FrameOptions): AsyncIterable<LiveFrame> {
    return closable(signal, (gate) =>
      this.#reading([threadId], gate, ([channel], news) =>
        readFrames(channel, { news, gate, lingerMs, timers }),
      ),
    )
  }

  show(threadId: string, events: readonly ShownEvent[]): void {
    // The node that works on the thread numbers the pieces of its streamed text, so these events are sent to that node.
    if (this.remote?.forward(threadId, events)) return
    const channel = this.#channel(threadId)
    channel.show(events)
    this.#forget(threadId, channel)
  }

  removed(head: ThreadHead): void {
    this.note(head.id, head)
    this.end(head.id)
  }

  end(threadId: string): void {
    const channel = this.#channels.get(threadId)
    if (!channel) return
    channel.isRemoved = true
    this.#channels.delete(threadId)
    channel.notify()
  }

  subscribe(threadId: string, options: SubscribeOptions = {}): AsyncIterable<NumberedEvent> {
    const { store, clock, pageSize = 500 } = this.#options
    const { includesDeltas = true } = options
    return closable(options.signal, (gate) =>
      this.#reading(
        [threadId],
        gate,
        ([channel], news, join) => {
          if (includesDeltas) this.remote?.reading(threadId)
          return readThread(
            { threadId, store, clock, pageSize, channel, news, gate, join },
            options,
          )
        },
        includesDeltas,
      ),
    )
  }

  watch(
    threadIds: readonly [string, ...string[]],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): AsyncIterable<void> {
    return closable(signal, (gate) =>
      this.#reading(threadIds, gate, (channels, news) => readTurns(channels, news, gate)),
    )
  }

  changes({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterable<ThreadHead> {
    return closable(signal, (gate) => readHeads(this.#options.store, this.#headReaders, gate))
  }

  rings({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterable<void> {
    return closable(signal, (gate) => readRings(this.#headReaders, gate))
  }

  /** Registers a reader with the channels, reads, and unregisters it when it ends. */
  async *#reading<T>(
    threadIds: readonly [string, ...string[]],
    gate: AbortGate,
    read: (
      channels: readonly [Channel, ...Channel[]],
      news: NewsSignal,
      join: (threadId: string) => Channel,
    ) => AsyncIterable<T>,
    wantsDeltas = false,
  ): AsyncGenerator<T, void> {
    const news = new NewsSignal()
    const subscriptions: { readonly id: string; readonly channel: Channel }[] = []
    const join = (id: string): Channel => {
      const channel = this.#channel(id)
      channel.subscribe(news.notify, wantsDeltas && subscriptions.length === 0)
      subscriptions.push({ id, channel })
      return channel
    }
    const [first, ...others] = threadIds
    const channels = [join(first), ...others.map(join)] as const
    try {
      yield* read(channels, news, join)
    } finally {
      gate.close()
      for (const [index, { id, channel }] of subscriptions.entries()) {
        channel.unsubscribe(news.notify, wantsDeltas && index === 0)
        if (channel.deltaReaders === 0) this.remote?.left(id)
        this.#forget(id, channel)
      }
    }
  }

  #channel(threadId: string): Channel {
    const open = this.#channels.get(threadId)
    if (open) return open
    const channel = new Channel(this.#options.maxDraftSize ?? 4 * 1024 * 1024)
    this.#channels.set(threadId, channel)
    return channel
  }

  #forget(threadId: string, channel: Channel | undefined): void {
    if (channel?.isIdle && this.#channels.get(threadId) === channel) this.#channels.delete(threadId)
  }
}

interface FrameReading {
  readonly news: NewsSignal
  readonly gate: AbortGate
  readonly lingerMs: number
  readonly timers: Timers
}

/** Yields the changes of a channel as frames for another node. Changes during a read are merged into one frame. */
async function* readFrames(
  channel: Channel,
  { news, gate, lingerMs, timers }: FrameReading,
): AsyncGenerator<LiveFrame, void> {
  let last: LiveFrame | undefined
  while (!gate.isClosed && !channel.isRemoved) {
    news.reset()
    const frame = channel.frame(last)
    if (frame) {
      last = frame
      yield frame
      continue
    }
    let isOver = false
    const handle = timers.set(lingerMs, () => {
      isOver = channel.isQuiet
      news.notify()
    })
    await gate.through(news.notified())
    timers.clear(handle)
    if (isOver) return
  }
}

async function* readTurns(
  channels: readonly [Channel, ...Channel[]],
  news: NewsSignal,
  gate: AbortGate,
): AsyncGenerator<void, void> {
  let version = -1
  while (!gate.isClosed && !channels[0].isRemoved) {
    news.reset()
    const count = channels.reduce((sum, { turns }) => sum + turns, 0)
    if (version !== count) {
      version = count
      yield
    } else await gate.through(news.notified())
  }
}

/**
 * Creates an iterable that ends immediately when the signal aborts or the consumer leaves, even during a
 * wait. A plain generator would end only after the promise that it currently awaits.
 */
function closable<T>(
  signal: AbortSignal | undefined,
  read: (gate: AbortGate) => AsyncGenerator<T, void>,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const gate = new AbortGate(signal)
      const generator = read(gate)
      return {
        async next() {
          const result = await generator.next()
          if (result.done) gate.close()
          return result
        },
        async return() {
          gate.close()
          return generator.return()
        },
      }
    },
  }
}

/** A reader of changes. A thread that changes several times between two reads is yielded only once. */
interface HeadReader {
  note(threadId: string, removed?: ThreadHead): void
}

async function* readRings(readers: Set<HeadReader>, gate: AbortGate): AsyncGenerator<void, void> {
  const news = new NewsSignal()
  const reader: HeadReader = { note: news.notify }
  readers.add(reader)
  try {
    while (!gate.isClosed) {
      news.reset()
      yield
      await gate.through(news.notified())
    }
  } finally {
    readers.delete(reader)
    gate.close()
  }
}

/** Yields the summary (`ThreadHead`) of each thread that changes, until the reader leaves, which closes the gate. */
async function* readHeads(
  store: Store,
  readers: Set<HeadReader>,
  gate: AbortGate,
): AsyncGenerator<ThreadHead, void> {
  const pending = new Map<string, ThreadHead | undefined>()
  let ring: (() => void) | undefined
  const reader: HeadReader = {
    note(threadId, removed) {
      pending.set(threadId, removed)
      ring?.()
    },
  }
  readers.add(reader)
  try {
    while (!gate.isClosed) {
      const next = pending.entries().next().value
      if (!next) {
        await gate.through(new Promise<void>((resolve) => (ring = resolve)))
        continue
      }
      const [threadId, removed] = next
      pending.delete(threadId)
      const head = removed ?? (await gate.through(store.head(threadId)))
      if (head) yield head
    }
  } finally {
    readers.delete(reader)
    gate.close()
  }
}
