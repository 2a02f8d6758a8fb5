import { SkeinError } from './error.ts'
import { LineText } from './line-text.ts'

/** One server-sent event. */
export interface SseEvent {
  /** The event type; '' when the stream named none. */
  readonly event: string
  readonly data: string
  /** The last event id the stream has set, here or earlier; '' when none. */
  readonly id: string
  /** The reconnection time in milliseconds, when the stream set one since the event before. */
  readonly retry?: number
}

/** Settings of an `SseDecoder`. */
export interface SseDecoderOptions {
  /** The most bytes one event's data, or one line, may have. Default 64 MiB. */
  readonly maxEventBytes?: number | undefined
  /** Deliver a last event that no blank line ended. Default false, as the WHATWG standard says. */
  readonly flushIncomplete?: boolean | undefined
}

const DEFAULT_MAX_EVENT_BYTES = 64 * 1024 * 1024

/**
 * Decodes one event stream by the WHATWG rules, one batch of events per network read.
 * Reads may be split anywhere. An event over the limit throws `SSE_EVENT_TOO_LARGE`; events before it
 * in the same read are returned first, and the next call throws.
 */
export class SseDecoder {
  readonly #maxBytes: number
  readonly #flushIncomplete: boolean
  readonly #lines: LineText
  #failure: SkeinError | undefined
  #event = ''
  #id = ''
  #retry: number | undefined
  /** The data lines of the open event; undefined when it has none, which is not the same as ''. */
  #data: string | undefined
  #dataBytes = 0

  constructor({ maxEventBytes, flushIncomplete }: SseDecoderOptions = {}) {
    this.#maxBytes = maxEventBytes ?? DEFAULT_MAX_EVENT_BYTES
    this.#flushIncomplete = flushIncomplete ?? false
    this.#lines = new LineText({
      crEndsLine: true,
      maxLineBytes: this.#maxBytes,
      tooLong: () => tooLarge(this.#maxBytes),
    })
  }

  /** Events that this read completes, in order. */
  push(chunk: Uint8Array): SseEvent[] {
    return this.#collect((events) => this.#parse(this.#lines.push(chunk), events))
  }

  /** Ends the stream. An unfinished event is dropped unless `flushIncomplete` is set. */
  end(): SseEvent[] {
    return this.#collect((events) => {
      const rest = this.#lines.end()
      if (this.#flushIncomplete) this.#parse(rest === '' ? '\n' : `${rest}\n\n`, events)
    })
  }

  #collect(decode: (events: SseEvent[]) => void): SseEvent[] {
    if (this.#failure) throw this.#failure
    const events: SseEvent[] = []
    try {
      decode(events)
    } catch (error) {
      this.#failure = error as SkeinError
      if (events.length === 0) throw error
    }
    return events
  }

  #parse(source: string, events: SseEvent[]): void {
    const text = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source
    let start = 0
    while (start < text.length) {
      const end = text.indexOf('\n', start)
      if (end === start) this.#dispatch(events)
      else this.#field(text, start, end)
      start = end + 1
    }
  }

  #dispatch(events: SseEvent[]): void {
    if (this.#data !== undefined) {
      const event = { event: this.#event, data: this.#data, id: this.#id }
      events.push(this.#retry === undefined ? event : { ...event, retry: this.#retry })
      this.#retry = undefined
      this.#data = undefined
      this.#dataBytes = 0
    }
    this.#event = ''
  }

  #field(text: string, start: number, end: number): void {
    const line = text.slice(start, end)
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value =
      colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1)
    if (name === 'data') this.#addData(value)
    else if (name === 'event') this.#event = value
    else if (name === 'id' && !value.includes('\0')) this.#id = value
    else if (name === 'retry' && /^[0-9]+$/.test(value)) this.#retry = Number(value)
  }

  #addData(value: string): void {
    this.#dataBytes += utf8Length(value) + (this.#data === undefined ? 0 : 1)
    if (this.#dataBytes > this.#maxBytes) throw tooLarge(this.#maxBytes)
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`
  }
}

function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    // A surrogate pair is four bytes for two units, so each half adds one.
    length += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
  }
  return length
}

function tooLarge(maxBytes: number): SkeinError {
  return new SkeinError(`A server-sent event is larger than ${maxBytes} bytes.`, {
    code: 'SSE_EVENT_TOO_LARGE',
    hint: 'Raise maxEventBytes if the sender is trusted to send events this large.',
  })
}
