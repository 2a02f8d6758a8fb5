import { ErrorCode, UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import { sleep as sleepFor } from '../transport/time-limits.ts'
import {
  eventFromText,
  type EventLog,
  eventToText,
  failureFromText,
  failureToText,
  type LogEntry,
  type LogPage,
  memoryEvents,
  streamCut,
  StreamError,
  StreamErrorCode,
  streamLimit,
  streamNotFound,
  streamPosition,
  streamTooLarge,
} from './event-log.ts'
import { type SseOptions, sseResponse } from './sse.ts'

/** Settings of `ResumableStreams`. */
export interface ResumableStreamOptions {
  /** Where streams are stored. Default: the memory of this process. */
  readonly log?: EventLog
  /** How long a stream can be read after its end. Default five minutes. */
  readonly ttlMs?: number
  /** The largest number of streams that run at the same time in this process. Default 1000. */
  readonly maxRunning?: number
  /** The largest number of events of one stream. Default 100,000. */
  readonly maxEvents?: number
  /** The largest number of characters of one stream, as JSON. Default 32 million. */
  readonly maxCharacters?: number
  /**
   * Stops the model when the last reader left this many milliseconds ago and none has come back. Default:
   * never.
   */
  readonly cancelUnreadAfterMs?: number
  /** Waits `ms` milliseconds, and rejects when the signal aborts; replaced in tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** A source of events, e.g. a `StreamResult`. */
export interface ResumableSource extends AsyncIterable<StreamEvent> {
  abort?(reason?: unknown): void
}

/** A stream that has been started. */
export interface RunningStream {
  readonly id: string
  /**
   * Settles when the stream has ended and all its entries are in the log. Rejects only if writing to the log
   * fails.
   */
  readonly done: Promise<void>
  /** Stops the model; readers get CANCELLED. */
  cancel(reason?: unknown): void
}

/** Where to resume reading a stream, and a signal that stops the reading. */
export interface ResumeOptions {
  /** Number of the last event that the reader already has. Default 0: from the beginning. */
  readonly after?: number
  /** Stops the reading, not the stream. */
  readonly signal?: AbortSignal
}

/** An event and its position in the stream. */
export interface StreamedEvent {
  readonly number: number
  readonly event: StreamEvent
}

/**
 * Streams that continue when the connection of their reader ends. A stream is written to a log while it runs;
 * readers can reconnect with the number of the last event they received, even after the stream has ended.
 *
 *     const streams = new ResumableStreams()
 *     await streams.start(id, model.stream('Tell me a story.'))
 *     return streams.respond(id, request) // server-sent events, honours Last-Event-ID
 */
export class ResumableStreams {
  readonly #settings: Settings
  readonly #cancelUnreadAfterMs: number | undefined
  readonly #running = new Map<string, Run>()

  constructor(options: ResumableStreamOptions = {}) {
    this.#settings = {
      log: memoryEvents(),
      ttlMs: 5 * 60_000,
      maxRunning: 1000,
      maxEvents: 100_000,
      maxCharacters: 32_000_000,
      sleep: sleepFor,
      ...options,
    }
    this.#cancelUnreadAfterMs = options.cancelUnreadAfterMs
  }

  /** Starts to read the source, whether or not there are readers. Settles when the stream can be read. */
  async start(id: string, source: ResumableSource): Promise<RunningStream> {
    const { log, maxRunning } = this.#settings
    if (this.#running.size >= maxRunning) throw streamLimit(maxRunning)
    await log.create(id)
    const run = new Run(id, source, this.#settings)
    this.#running.set(id, run)
    const forget = (): void => void this.#running.delete(id)
    run.done.then(forget, forget) // also handles a rejection of `done` that nothing else handles
    return run
  }

  /** True while this process writes the stream. */
  isRunning(id: string): boolean {
    return this.#running.has(id)
  }

  /** Yields all events after number `options.after` until the stream ends; throws the stream's failure. */
  async *read(
    id: string,
    options: ResumeOptions = {},
  ): AsyncGenerator<StreamedEvent, void, undefined> {
    for await (const entries of this.#follow(id, await this.#open(id, options), options)) {
      for (const { number, kind, data } of entries) {
        if (kind === 'failure') throw failureFromText(data)
        if (kind === 'event') yield { number, event: eventFromText(data) }
      }
    }
  }

  /**
   * Sends the stream as server-sent events with heartbeats. A returning reader resumes after its
   * `Last-Event-ID`; one that has received everything gets status 204, so that a browser does not reconnect.
   * An unknown stream is answered with 404 and the error as JSON.
   */
  async respond(
    id: string,
    request: Pick<Request, 'headers' | 'signal'>,
    options: SseOptions = {},
  ): Promise<Response> {
    const text = request.headers.get('last-event-id') ?? '0'
    if (!/^\d{1,15}$/.test(text)) throw streamPosition(id, text)
    const after = Number(text)
    const reader = new AbortController()
    const signal = AbortSignal.any([reader.signal, request.signal])
    let page: LogPage
    try {
      page = await this.#open(id, { after })
    } catch (error) {
      if (!(error instanceof StreamError) || error.code !== StreamErrorCode.NotFound) throw error
      const { code, message } = error
      return Response.json({ error: { code, message } }, { status: 404, headers: options.headers })
    }
    if (page.isOver && page.last === after) return new Response(null, { status: 204 })
    const batches = this.#follow(id, page, { after, signal })
    // Also closes the generator between two reads, when no pending read would notice the abort.
    signal.addEventListener('abort', () => void batches.return(), { once: true })
    const { sleep } = this.#settings
    return sseResponse(batches, { sleep, ...options, onCancel: () => reader.abort() })
  }

  async #open(id: string, { after = 0 }: ResumeOptions): Promise<LogPage> {
    if (!Number.isSafeInteger(after) || after < 0) throw streamPosition(id, after)
    const page = await this.#settings.log.read(id, after)
    if (!page) throw streamNotFound(id)
    if (after > page.last) throw streamPosition(id, after)
    return page
  }

  /** Yields batches of entries as they arrive. Ends after the last entry, or when the signal aborts. */
  async *#follow(
    id: string,
    first: LogPage,
    { after: seen = 0, signal = new AbortController().signal }: ResumeOptions,
  ): AsyncGenerator<readonly LogEntry[], void, undefined> {
    const { log } = this.#settings
    const run = this.#running.get(id)
    // If the writer fails before it has written a last entry, its readers must stop waiting.
    const waking = run ? AbortSignal.any([signal, run.lost]) : signal
    run?.enter()
    try {
      let after = seen
      for (let page: LogPage | undefined = first; ; page = await log.read(id, after)) {
        if (!page) throw streamNotFound(id)
        if (page.entries.length > 0 && !signal.aborted) yield page.entries
        after = page.last
        if (page.isOver || signal.aborted) return
        if (run?.lost.aborted) throw streamCut(after)
        await log.changed(id, after, waking)
      }
    } finally {
      run?.leave(this.#cancelUnreadAfterMs)
    }
  }
}

type Settings = Required<Omit<ResumableStreamOptions, 'cancelUnreadAfterMs'>>

/** Writes one stream to the log. */
class Run implements RunningStream {
  readonly id: string
  readonly done: Promise<void>
  readonly #source: ResumableSource
  readonly #settings: Settings
  readonly #lost = new AbortController()
  #events: AsyncIterator<StreamEvent> | undefined
  #isOver = false
  #cancelled: UPPError | undefined
  #readers = 0
  #unread: AbortController | undefined
  #last = 0
  #characters = 0

  constructor(id: string, source: ResumableSource, settings: Settings) {
    this.id = id
    this.#source = source
    this.#settings = settings
    this.done = this.#write()
    this.done.catch((error: unknown) => this.#lost.abort(error))
  }

  /** Aborts when writing to the log fails. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  cancel(reason?: unknown): void {
    if (this.#isOver) return
    this.#cancelled ??= new UPPError('The stream was cancelled.', {
      code: ErrorCode.Cancelled,
      provider: 'skein',
      modality: 'llm',
      cause: reason,
    })
    if (this.#source.abort) this.#source.abort(reason)
    else this.#close()
  }

  enter(): void {
    this.#readers += 1
    this.#unread?.abort()
  }

  leave(cancelAfterMs: number | undefined): void {
    this.#readers -= 1
    if (this.#readers > 0 || this.#isOver || cancelAfterMs === undefined) return
    const unread = (this.#unread = new AbortController())
    this.#settings.sleep(cancelAfterMs, unread.signal).then(
      () => this.cancel('no reader is left'),
      () => {}, // the wait was aborted: a reader came back, or the stream has ended
    )
  }

  async #write(): Promise<void> {
    try {
      try {
        const events = (this.#events = this.#source[Symbol.asyncIterator]())
        for (;;) {
          const step = await events.next()
          if (this.#cancelled) throw this.#cancelled
          if (step.done) break
          await this.#append('event', eventToText(step.value))
        }
      } catch (error) {
        this.#close()
        await this.#append('failure', failureToText(this.#cancelled ?? error))
        return
      }
      await this.#append('end', 'null')
    } finally {
      this.#isOver = true
      this.#unread?.abort()
    }
  }

  async #append(kind: LogEntry['kind'], data: string): Promise<void> {
    const { log, ttlMs, maxEvents, maxCharacters } = this.#settings
    this.#characters += data.length
    if (kind === 'event') {
      if (this.#last >= maxEvents) throw streamTooLarge(this.id, `${maxEvents} events`)
      if (this.#characters > maxCharacters)
        throw streamTooLarge(this.id, `${maxCharacters} characters`)
    }
    await log.append(this.id, { number: ++this.#last, kind, data }, ttlMs)
  }

  /** Closes the source; its errors while closing are ignored. */
  #close(): void {
    this.#events?.return?.().catch(() => {})
  }
}
