import { systemClock, type Clock } from '@skein/base'
import { streamExists, streamLimit } from './stream-error.ts'

/** One line of a stream's log. Numbers start at 1 and have no gaps; the last line is `end` or `failure`. */
export interface LogEntry {
  readonly number: number
  readonly kind: 'event' | 'end' | 'failure'
  /** JSON text: the event with bytes as base64, the failure, or `null`. */
  readonly data: string
}

export interface LogPage {
  readonly entries: readonly LogEntry[]
  /** Number of the newest entry; 0 when there is none. */
  readonly last: number
  /** True when `end` or `failure` has been written. */
  readonly isOver: boolean
}

/** Where streams are kept. With one that several processes share, any of them can serve a reader. */
export interface EventLog {
  /** Makes an empty log. Throws STREAM_EXISTS, or STREAM_LIMIT when there is no room. */
  create(id: string): void | Promise<void>
  /** An ended log is to be kept for `ttlMs` and then forgotten. */
  append(id: string, entry: LogEntry, ttlMs: number): void | Promise<void>
  /** Entries after that number; undefined for a log that is unknown or forgotten. */
  read(id: string, after: number): LogPage | undefined | Promise<LogPage | undefined>
  /** Settles when there may be entries after that number, or when the signal aborts. Never rejects. */
  changed(id: string, after: number, signal: AbortSignal): Promise<void>
}

export interface MemoryEventLogOptions {
  /** Streams kept at once, running or ended. Default 10,000. */
  readonly maxStreams?: number
  readonly clock?: Clock
}

interface Log {
  readonly entries: LogEntry[]
  readonly waiting: Set<() => void>
  expiresAt: number
}

/** Streams in the memory of this process. */
export class MemoryEventLog implements EventLog {
  readonly #maxStreams: number
  readonly #clock: Clock
  readonly #logs = new Map<string, Log>()

  constructor({ maxStreams = 10_000, clock = systemClock }: MemoryEventLogOptions = {}) {
    this.#maxStreams = maxStreams
    this.#clock = clock
  }

  /** Streams kept at this moment. */
  get size(): number {
    this.#forgetOld()
    return this.#logs.size
  }

  create(id: string): void {
    this.#forgetOld()
    if (this.#logs.has(id)) throw streamExists(id)
    if (this.#logs.size >= this.#maxStreams) throw streamLimit(this.#maxStreams)
    this.#logs.set(id, { entries: [], waiting: new Set(), expiresAt: Infinity })
  }

  append(id: string, entry: LogEntry, ttlMs: number): void {
    const log = this.#logs.get(id)
    if (!log) return
    log.entries.push(entry)
    if (entry.kind !== 'event') log.expiresAt = this.#clock.now() + ttlMs
    for (const wake of log.waiting) wake()
  }

  read(id: string, after: number): LogPage | undefined {
    this.#forgetOld()
    const entries = this.#logs.get(id)?.entries
    if (!entries) return undefined
    const newest = entries.at(-1)
    return {
      entries: entries.slice(after),
      last: entries.length,
      isOver: newest !== undefined && newest.kind !== 'event',
    }
  }

  changed(id: string, after: number, signal: AbortSignal): Promise<void> {
    const log = this.#logs.get(id)
    if (!log || log.entries.length > after || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = (): void => {
        log.waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      log.waiting.add(wake)
      signal.addEventListener('abort', wake)
    })
  }

  #forgetOld(): void {
    const now = this.#clock.now()
    for (const [id, { expiresAt }] of this.#logs) if (expiresAt <= now) this.#logs.delete(id)
  }
}
