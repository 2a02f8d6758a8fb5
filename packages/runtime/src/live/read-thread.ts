import type { Clock } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { StoredEvent } from '../contract/event.ts'
import type { NumberedEvent, SubscribeOptions } from '../contract/subscription.ts'
import type { Store } from '../store/store.ts'
import { endsDraft, isWords } from './live-draft.ts'
import type { AbortGate } from './abort-gate.ts'
import type { Channel, NewsSignal } from './channel.ts'
import { descendantsOf } from '../store/descendants.ts'
import { isParked } from '../store/head.ts'

interface Reading {
  readonly threadId: string
  readonly store: Store
  readonly clock: Clock
  readonly pageSize: number
  readonly channel: Channel
  readonly news: NewsSignal
  readonly gate: AbortGate
  /** Returns the channel of another thread; from now on that channel notifies the signal of this reader too. */
  join(threadId: string): Channel
}

/**
 * Events that people and programs write into a log from outside. Any other event shows that the runtime
 * has worked on the thread.
 */
const FROM_OUTSIDE: ReadonlySet<NumberedEvent['event']['type']> = new Set([
  'thread_created',
  'agent_registered',
  'thread_updated',
  'message_queued',
  'message_updated',
  'message_removed',
  'interrupt_answered',
  'resume_requested',
  'stop_requested',
  'value_set',
  'env_set',
  'file_written',
  'file_removed',
  'effect_scheduled',
  'variables_provided',
] as const)

/**
 * Reads one thread: first the log after the reader's position, then the draft of the running step,
 * then new events of both. Stored events always come first, because deltas make sense only after the log before them.
 */
export async function* readThread(
  reading: Reading,
  options: SubscribeOptions,
): AsyncGenerator<NumberedEvent, void> {
  const { channel, news, gate } = reading
  const reader = new Reader(reading, options)
  await reader.mustExist()
  await reader.findDraftEnd()
  while (!gate.isClosed && !channel.isRemoved) {
    news.reset()
    const events = await reader.log()
    for (const stored of events) {
      const takenBack = await reader.takeBack(stored)
      if (takenBack) yield takenBack
      reader.pass(stored)
      yield { id: reader.cursor.id, event: stored.event }
      if (gate.isClosed || channel.isRemoved) return
    }
    if (events.length > 0) continue
    const frame = reader.shown()
    if (frame) yield frame
    else if (await reader.isDone()) return
    else await gate.through(news.notified())
  }
}

class Reader {
  readonly cursor: Cursor
  readonly #reading: Reading
  readonly #options: SubscribeOptions
  readonly #includesDeltas: boolean
  /** The value of `LiveDraft.order` when this reader connected; pieces that came before have lower numbers. */
  readonly #since: number
  /** Whether the store may contain events that were not published here, e.g. events that another process wrote. */
  #isBehind = true
  #checked = -1
  /** Whether this reader may have received deltas of the running step, possibly before it reconnected. */
  #hasWords: boolean
  #stepId: string | undefined
  /** With `untilParked`, the subscription ends only once the thread has worked after the event of this number. */
  readonly #workSince: number
  /** The events after `#workSince` up to this number were sent before this reader connected. */
  #unseenTo: number
  #hasWorked = false
  /** The channels of descendants, by thread id: a commit of a descendant may end the subscription too. */
  readonly #below = new Map<string, Channel>()

  constructor(reading: Reading, options: SubscribeOptions) {
    const { after, since = after, includesDeltas = true } = options
    this.cursor = new Cursor(after)
    this.#reading = reading
    this.#options = options
    this.#includesDeltas = includesDeltas
    this.#since = reading.channel.draft.order
    if (!includesDeltas) this.cursor.count = 0
    this.#hasWords = this.cursor.count > 0
    this.#workSince = new Cursor(since).seq
    this.#unseenTo = this.cursor.seq
  }

  async mustExist(): Promise<void> {
    const { gate, store, threadId } = this.#reading
    const head = await gate.through(store.head(threadId))
    if (head || gate.isClosed) return
    throw new RuntimeError(`There is no thread ${threadId}.`, {
      code: 'THREAD_NOT_FOUND',
      hint: 'It may have been removed.',
    })
  }

  /**
   * Finds out whether the reader's position lies after the event that ends the draft. That event
   * may be stored but not yet published; a reader that resumes after it must not receive the same text again.
   */
  async findDraftEnd(): Promise<void> {
    const { channel } = this.#reading
    if (channel.draft.isEmpty) return
    const from = Math.max(channel.endedAt, channel.firstSeq - 1)
    for await (const { seq, event } of this.#stored(from, this.cursor.seq))
      if (endsDraft(event)) this.cursor.endedAt = seq
  }

  /** Reads the stored events after `from` up to and including `to`. */
  async *#stored(from: number, to: number): AsyncGenerator<StoredEvent, void> {
    const { gate, store, threadId, pageSize } = this.#reading
    for (let after = from; after < to;) {
      const limit = Math.min(pageSize, to - after)
      const page = await gate.through(store.events(threadId, { after, limit }))
      yield* page ?? []
      if (!page || page.length < limit) return
      after = page.at(-1)!.seq
    }
  }

  /** Returns the next stored events, from memory or else from the store. */
  async log(): Promise<readonly StoredEvent[]> {
    const { channel, gate, store, threadId, pageSize } = this.#reading
    const { seq } = this.cursor
    if (!this.#isBehind && channel.seq <= seq) return []
    const recent = channel.seq > seq ? channel.after(seq) : undefined
    if (recent) return recent
    const page = await gate.through(store.events(threadId, { after: seq, limit: pageSize }))
    this.#isBehind = page !== undefined && page.length === pageSize
    return page ?? []
  }

  pass(stored: StoredEvent): void {
    const { seq, event } = stored
    this.cursor.pass(stored)
    if (seq > this.#workSince && !FROM_OUTSIDE.has(event.type)) this.#hasWorked = true
    if (endsDraft(event)) this.#hasWords = false
    if (event.type === 'step_start') this.#stepId = event.stepId
  }

  /**
   * Returns a `step_reset` for a turn that ended before its last message was stored: the reader then
   * drops the deltas of that message.
   */
  async takeBack({ event }: StoredEvent): Promise<NumberedEvent | undefined> {
    if (event.type !== 'turn_end' || event.outcome === 'completed' || !this.#hasWords)
      return undefined
    const { at, turnId } = event
    const stepId = this.#stepId ?? (await this.#lastStep()) ?? ''
    this.cursor.count++
    return { id: this.cursor.id, event: { type: 'step_reset', at, turnId, stepId } }
  }

  /**
   * Finds the step that runs at the reader's position, because a reader that has reconnected did not
   * receive the `step_start` of that step.
   */
  async #lastStep(): Promise<string | undefined> {
    const { gate, store, threadId } = this.#reading
    const { seq } = this.cursor
    for (let width = 64; ; width *= 4) {
      const after = Math.max(seq - width, 0)
      const page = await gate.through(store.events(threadId, { after, limit: seq - after }))
      const step = page?.findLast(({ event }) => event.type === 'step_start')?.event
      if (step?.type === 'step_start') return step.stepId
      if (!page || after === 0) return undefined
    }
  }

  /**
   * Returns the next piece of the draft; undefined if the reader has already received,
   * from the store, the event that ended it.
   */
  shown(): NumberedEvent | undefined {
    const { channel } = this.#reading
    const { cursor } = this
    if (!this.#includesDeltas) return undefined
    if (cursor.endedAt >= channel.firstSeq && cursor.endedAt > channel.endedAt) return undefined
    const piece = channel.draft.after(cursor.count, this.#since)
    if (!piece) return undefined
    cursor.count = piece.count
    if (isWords(piece.event)) this.#hasWords = true
    return { id: cursor.id, event: piece.event }
  }

  /** Whether the subscription ends now. Checked once per commit of the thread or of a descendant. */
  async isDone(): Promise<boolean> {
    const { gate, store, threadId, clock } = this.#reading
    const { untilParked = false, untilCaughtUp = false } = this.#options
    if (!untilParked && !untilCaughtUp) return false
    const version = this.#version()
    if (this.#checked === version) return false
    const head = await gate.through(store.head(threadId))
    if (!head) return true
    if (head.seq > this.cursor.seq) {
      this.#isBehind = true
      this.#reading.news.notify()
      return false
    }
    if (untilCaughtUp) return true
    this.#checked = version
    const now = clock.now()
    let isAtRest = isParked(head, now)
    if (isAtRest) {
      const below = (await gate.through(descendantsOf({ store }, head))) ?? []
      const unknown = below.filter(({ id }) => !this.#below.has(id))
      for (const { id } of unknown) this.#below.set(id, this.#reading.join(id))
      if (unknown.length > 0) {
        // Check again: a descendant that was not watched until now may have changed after it was read.
        this.#checked = -1
        this.#reading.news.notify()
        return false
      }
      isAtRest = below.every((one) => isParked(one, now))
    }
    if (!isAtRest) this.#hasWorked = true
    const isOver = head.lifecycle === 'terminated' || head.lifecycle === 'erased'
    return isAtRest && (isOver || (await this.#workedBefore())) && version === this.#version()
  }

  /** A number that changes with every commit of the thread or of a descendant that is watched. */
  #version(): number {
    let version = this.#reading.channel.version
    for (const channel of this.#below.values()) version += channel.version
    return version
  }

  /** Whether the thread has worked since the position `since`, perhaps before this reader reconnected. */
  async #workedBefore(): Promise<boolean> {
    if (this.#hasWorked || this.#unseenTo <= this.#workSince) return this.#hasWorked
    for await (const { event } of this.#stored(this.#workSince, this.#unseenTo))
      if (!FROM_OUTSIDE.has(event.type)) {
        this.#hasWorked = true
        break
      }
    this.#unseenTo = this.#workSince
    return this.#hasWorked
  }
}

/**
 * The position of a reader: the number of the last stored event, and how many pieces of streamed text
 * it has received since. `id` is the id of the last event that was sent.
 */
class Cursor {
  seq: number
  /** How many pieces of streamed text were sent since the last stored event; 0 if there are none. */
  count: number
  /** Number of the last sent event that replaced streamed text (a draft) by stored text. */
  endedAt = 0

  constructor(after: string | undefined) {
    const match = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(after ?? '0')
    if (!match)
      throw new RuntimeError(`${JSON.stringify(after)} is not the id of an event.`, {
        code: 'INPUT_INVALID',
        hint: 'Ids look like `12` or `12.3`; without one, reading starts at the first event.',
      })
    this.seq = Number(match[1])
    this.count = Number(match[2] ?? 0)
  }

  /** Moves the position past a stored event. */
  pass({ seq, event }: StoredEvent): void {
    this.seq = seq
    if (!endsDraft(event)) return
    this.count = 0
    this.endedAt = seq
  }

  /**
   * The id, e.g. `12`, or `12.3` after three pieces of a draft. A stored event that occurs during a step
   * keeps the fraction: without it, a reader that resumes there would receive the same deltas again.
   */
  get id(): string {
    return this.count > 0 ? `${this.seq}.${this.count}` : `${this.seq}`
  }
}
