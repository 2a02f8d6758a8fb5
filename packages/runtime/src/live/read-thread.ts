import type { Clock } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { StoredEvent } from '../contract/event.ts'
import type { NumberedEvent, SubscribeOptions } from '../contract/runtime-api.ts'
import type { Store, ThreadHead } from '../store/store.ts'
import type { AbortGate, Bell, Channel } from './channel.ts'
import { endsDraft, isWords } from './live-draft.ts'

interface Reading {
  readonly threadId: string
  readonly store: Store
  readonly clock: Clock
  readonly pageSize: number
  readonly channel: Channel
  readonly bell: Bell
  readonly gate: AbortGate
}

/**
 * Reads one thread: first the log after the reader's position, then the draft of the running step, then new
 * events of both. Stored events always come first, because deltas make sense only after the log before them.
 */
export async function* readThread(
  reading: Reading,
  options: SubscribeOptions,
): AsyncGenerator<NumberedEvent, void> {
  const { channel, bell, gate } = reading
  const reader = new Reader(reading, options)
  await reader.mustExist()
  while (!gate.isClosed && !channel.isRemoved) {
    bell.mute()
    const events = await reader.log()
    for (const stored of events) {
      const takenBack = await reader.takeBack(stored)
      if (takenBack) yield takenBack
      reader.pass(stored)
      yield { id: reader.cursor.id, event: stored.event }
      if (gate.isClosed || channel.isRemoved) return
    }
    if (events.length > 0) continue
    const shown = reader.shown()
    if (shown) yield shown
    else if (await reader.isDone()) return
    else await gate.through(bell.rung())
  }
}

class Reader {
  readonly cursor: Cursor
  readonly #reading: Reading
  readonly #includesDeltas: boolean
  readonly #untilParked: boolean
  /** The value of the draft's `order` when this reader connected. */
  readonly #since: number
  /** Whether the store may contain events that were not published here, such as those of another process. */
  #isBehind = true
  #checked = -1
  /** Whether this reader may have received deltas of the running step, possibly before it reconnected. */
  #hasWords: boolean
  #stepId: string | undefined

  constructor(reading: Reading, options: SubscribeOptions) {
    const { after, includesDeltas = true, untilParked = false } = options
    this.cursor = new Cursor(after)
    this.#reading = reading
    this.#includesDeltas = includesDeltas
    this.#untilParked = untilParked
    this.#since = reading.channel.draft.order
    if (!includesDeltas) this.cursor.count = 0
    this.#hasWords = this.cursor.count > 0
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
    const { event } = stored
    this.cursor.pass(stored)
    if (endsDraft(event)) this.#hasWords = false
    if (event.type === 'step_start') this.#stepId = event.stepId
  }

  /**
   * Returns a `step_reset` for a turn that ended before its last message was stored, so that the reader drops
   * its deltas.
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
   * Finds the step that runs at the reader's position, because a reader that reconnected has not received its
   * `step_start`.
   */
  async #lastStep(): Promise<string | undefined> {
    const { gate, store, threadId } = this.#reading
    const { seq } = this.cursor
    for (let width = 64; ; width *= 4) {
      const after = Math.max(seq - width, 0)
      const page = await gate.through(store.events(threadId, { after, limit: seq - after }))
      const found = page?.findLast(({ event }) => event.type === 'step_start')?.event
      if (found?.type === 'step_start') return found.stepId
      if (!page || after === 0) return undefined
    }
  }

  /**
   * Returns the next piece of the draft; none if the reader has already read the end of the draft from the
   * store.
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

  /** Whether the thread is parked and all its events were sent. Checked once per commit. */
  async isDone(): Promise<boolean> {
    const { channel, gate, store, threadId, clock } = this.#reading
    if (!this.#untilParked || this.#checked === channel.version) return false
    const { version } = channel
    const head = await gate.through(store.head(threadId))
    if (!head) return true
    if (head.seq > this.cursor.seq) {
      this.#isBehind = true
      this.#reading.bell.ring()
      return false
    }
    this.#checked = version
    return version === channel.version && isParked(head, clock.now())
  }
}

/** Whether a thread neither runs nor is due. */
export function isParked({ lifecycle, wakeAt }: ThreadHead, now: number): boolean {
  return lifecycle !== 'running' && (wakeAt === null || wakeAt > now)
}

/**
 * The position of a reader: the number of the last stored event, and how many pieces of the draft it has
 * received since. `id` is the id of the last event that was sent.
 */
class Cursor {
  seq: number
  /** Pieces of the draft that were sent; 0 without a draft. */
  count: number
  /** Number of the last sent event that ended a draft. */
  endedAt = 0

  constructor(after: string | undefined) {
    const found = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(after ?? '0')
    if (!found)
      throw new RuntimeError(`${JSON.stringify(after)} is not the id of an event.`, {
        code: 'INPUT_INVALID',
        hint: 'Ids look like `12` or `12.3`; without one, reading starts at the first event.',
      })
    this.seq = Number(found[1])
    this.count = Number(found[2] ?? 0)
  }

  /** Moves the position past a stored event. */
  pass({ seq, event }: StoredEvent): void {
    this.seq = seq
    if (!endsDraft(event)) return
    this.count = 0
    this.endedAt = seq
  }

  /**
   * The id: `12` or, with pieces of a draft, `12.3`. A stored event that occurs during a step keeps the
   * fraction, because otherwise a reader that resumes from it would receive the same deltas again.
   */
  get id(): string {
    return this.count > 0 ? `${this.seq}.${this.count}` : `${this.seq}`
  }
}
