import type { Clock } from '@skein/base'
import type { StoredEvent } from '../contract/event.ts'
import type { NumberedEvent, SubscribeOptions } from '../contract/runtime-api.ts'
import type { Store, ThreadHead } from '../store/store.ts'
import { AbortGate, beginsToShow, Bell, Channel } from './channel.ts'
import type { ShownEvent } from './live-draft.ts'
import { readThread } from './read-thread.ts'

/**
 * Delivers events of threads to readers as they happen. The bus only saves time, because all stored events
 * can also be read from the log.
 */
export interface LiveBus {
  /** Publishes the events of a commit. The list is empty when the commit changed only the head. */
  publish(threadId: string, events: readonly StoredEvent[]): void
  /** Sends events that are not stored, such as deltas of the running step. */
  show(threadId: string, events: readonly ShownEvent[]): void
  /** Ends all readers of a thread that was removed or whose log was replaced. */
  removed(head: ThreadHead): void
  subscribe(threadId: string, options?: SubscribeOptions): AsyncIterable<NumberedEvent>
  changes(options?: { readonly signal?: AbortSignal }): AsyncIterable<ThreadHead>
  /** Yields once immediately, and then whenever any thread has changed or was removed since the last time. */
  rings(options?: { readonly signal?: AbortSignal }): AsyncIterable<void>
  /**
   * Yields once immediately, and then after each commit to these threads that could end a caller's wait;
   * commits from the middle of a running session are skipped. Ends when the first thread is removed.
   */
  watch(
    threadIds: readonly [string, ...string[]],
    options?: { readonly signal?: AbortSignal },
  ): AsyncIterable<void>
  /** Number of readers, for tests and measurements. */
  readonly readers: number
  /** Number of threads with live state in memory. */
  readonly channels: number
}

interface LiveBusOptions {
  readonly store: Store
  readonly clock: Clock
  /** Events read from the store at once. Default 500. */
  readonly pageSize?: number
  /** How many characters of a running step are kept for late readers. Default 4 Mi. */
  readonly maxDraftSize?: number
}

/**
 * Creates the bus. Readers pull: each remembers the number of its last event and fetches the events after it,
 * from memory or from the store. So a slow reader needs no queue and misses no stored event. Deltas that it
 * has missed arrive merged into one delta.
 */
export function createLiveBus(options: LiveBusOptions): LiveBus {
  return new Bus(options)
}

class Bus implements LiveBus {
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
    for (const reader of this.#headReaders) reader.note(threadId)
    // The channel is created with the event that begins a step, because it must know that event before the
    // first delta.
    const isSource = events.some(({ event }) => beginsToShow(event))
    const channel = isSource ? this.#channel(threadId) : this.#channels.get(threadId)
    channel?.publish(events)
    this.#forget(threadId, channel)
  }

  show(threadId: string, events: readonly ShownEvent[]): void {
    const channel = this.#channel(threadId)
    channel.show(events)
    this.#forget(threadId, channel)
  }

  removed(head: ThreadHead): void {
    for (const reader of this.#headReaders) reader.note(head.id, head)
    const channel = this.#channels.get(head.id)
    if (!channel) return
    channel.isRemoved = true
    this.#channels.delete(head.id)
    channel.ring()
  }

  subscribe(threadId: string, options: SubscribeOptions = {}): AsyncIterable<NumberedEvent> {
    const { store, clock, pageSize = 500 } = this.#options
    return closable(options.signal, (gate) =>
      this.#reading([threadId], gate, ([channel], bell, join) =>
        readThread({ threadId, store, clock, pageSize, channel, bell, gate, join }, options),
      ),
    )
  }

  watch(
    threadIds: readonly [string, ...string[]],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): AsyncIterable<void> {
    return closable(signal, (gate) =>
      this.#reading(threadIds, gate, (channels, bell) => readTurns(channels, bell, gate)),
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
      bell: Bell,
      join: (threadId: string) => Channel,
    ) => AsyncIterable<T>,
  ): AsyncGenerator<T, void> {
    const bell = new Bell()
    const joined: { readonly id: string; readonly channel: Channel }[] = []
    const join = (id: string): Channel => {
      const channel = this.#channel(id)
      channel.join(bell.ring)
      joined.push({ id, channel })
      return channel
    }
    const [first, ...others] = threadIds
    const channels = [join(first), ...others.map(join)] as const
    try {
      yield* read(channels, bell, join)
    } finally {
      gate.close()
      for (const { id, channel } of joined) {
        channel.leave(bell.ring)
        this.#forget(id, channel)
      }
    }
  }

  #channel(threadId: string): Channel {
    const known = this.#channels.get(threadId)
    if (known) return known
    const channel = new Channel(this.#options.maxDraftSize ?? 4 * 1024 * 1024)
    this.#channels.set(threadId, channel)
    return channel
  }

  #forget(threadId: string, channel: Channel | undefined): void {
    if (channel?.isIdle && this.#channels.get(threadId) === channel) this.#channels.delete(threadId)
  }
}

async function* readTurns(
  channels: readonly [Channel, ...Channel[]],
  bell: Bell,
  gate: AbortGate,
): AsyncGenerator<void, void> {
  let seen = -1
  while (!gate.isClosed && !channels[0].isRemoved) {
    bell.mute()
    const count = channels.reduce((sum, { turns }) => sum + turns, 0)
    if (seen !== count) {
      seen = count
      yield
    } else await gate.through(bell.rung())
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

/** A reader of changes. A thread that changes several times before it is read is yielded once. */
interface HeadReader {
  note(threadId: string, removed?: ThreadHead): void
}

async function* readRings(readers: Set<HeadReader>, gate: AbortGate): AsyncGenerator<void, void> {
  const bell = new Bell()
  const reader: HeadReader = { note: bell.ring }
  readers.add(reader)
  try {
    while (!gate.isClosed) {
      bell.mute()
      yield
      await gate.through(bell.rung())
    }
  } finally {
    readers.delete(reader)
    gate.close()
  }
}

/** Yields the heads of threads that change, until the gate closes. */
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
