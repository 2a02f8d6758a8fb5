import { SkeinError } from './error.ts'
import { LineDecoder, utf8Length } from './line-decoder.ts'

/** One server-sent event. */
export interface SseEvent {
  /** The event type; '' when the stream sent none. */
  readonly event: string
  readonly data: string
  /** The last event id that the stream has sent, with this event or earlier; '' when none. */
  readonly id: string
  /** The reconnection time in milliseconds, if the stream sent one since the previous event. */
  readonly retry?: number
}

/** Settings of an `SseDecoder`. */
export interface SseDecoderOptions {
  /** The most bytes that one line, or the data of one event, may have. Default 64 MiB. */
  readonly maxEventBytes?: number | undefined
  /**
   * Whether to return a last event that is not ended by a blank line. Default false, as in the WHATWG
   * standard.
   */
  readonly flushIncomplete?: boolean | undefined
}

const SPACE = 32

const DEFAULT_MAX_EVENT_BYTES = 64 * 1024 * 1024

/**
 * Decodes one event stream by the WHATWG rules: `push` returns the events that a chunk completes. The stream
 * may be cut into chunks anywhere. An event over the limit throws `SSE_EVENT_TOO_LARGE`, and so does every
 * later call.
 *
 * @example
 * const decoder = new SseDecoder()
 * for await (const chunk of response.body) for (const event of decoder.push(chunk)) handle(event)
 * for (const event of decoder.end()) handle(event)
 */
export class SseDecoder extends LineDecoder<SseEvent> {
  readonly #maxBytes: number
  #event = ''
  #id = ''
  #retry: number | undefined
  /**
   * The data of the event that is being read; undefined until its first data line. An event whose data is ''
   * is returned, an event without data is not.
   */
  #data: string | undefined
  /** The size of `#data` in bytes; undefined until the data is so long that it may exceed the limit. */
  #dataBytes: number | undefined

  constructor({ maxEventBytes, flushIncomplete }: SseDecoderOptions = {}) {
    const maxBytes = maxEventBytes ?? DEFAULT_MAX_EVENT_BYTES
    super({
      crEndsLine: true,
      closing: flushIncomplete ? '\n\n' : undefined,
      maxLineBytes: maxBytes,
      tooLong: () => tooLarge(maxBytes),
    })
    this.#maxBytes = maxBytes
  }

  /**
   * Reads the text line by line and adds the completed events to `events`. A line may end with LF, CR or
   * CRLF; each line end is searched for only once.
   */
  protected override decodeLines(text: string, events: SseEvent[]): void {
    let lf = -1
    let cr = -1
    for (let start = 0; start < text.length;) {
      if (lf < start) lf = find(text, '\n', start)
      if (cr < start) cr = find(text, '\r', start)
      const end = lf < cr ? lf : cr
      const next = lf === cr + 1 ? lf + 1 : end + 1
      if (end === start) this.#dispatch(events)
      else this.#line(text, start, end)
      start = next
    }
  }

  #dispatch(events: SseEvent[]): void {
    if (this.#data !== undefined) {
      const event = { event: this.#event, data: this.#data, id: this.#id }
      events.push(this.#retry === undefined ? event : { ...event, retry: this.#retry })
      this.#retry = undefined
      this.#data = undefined
      this.#dataBytes = undefined
    }
    this.#event = ''
  }

  #line(text: string, start: number, end: number): void {
    this.checkLine(text, start, end)
    if (text.startsWith('data:', start)) this.#addData(valueAt(text, start + 5, end))
    else if (text.startsWith('event:', start)) this.#event = valueAt(text, start + 6, end)
    else this.#rareLine(text.slice(start, end))
  }

  #rareLine(line: string): void {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : valueAt(line, colon + 1, line.length)
    if (name === 'data') this.#addData(value)
    else if (name === 'event') this.#event = value
    else if (name === 'id' && !value.includes('\0')) this.#id = value
    else if (name === 'retry' && /^[0-9]+$/.test(value)) this.#retry = Number(value)
  }

  #addData(value: string): void {
    const data = this.#data === undefined ? value : `${this.#data}\n${value}`
    if (data.length * 3 > this.#maxBytes) {
      const before = this.#dataBytes ?? (this.#data === undefined ? -1 : utf8Length(this.#data))
      this.#dataBytes = before + 1 + utf8Length(value)
      if (this.#dataBytes > this.#maxBytes) throw tooLarge(this.#maxBytes)
    }
    this.#data = data
  }
}

/** Returns the position of `mark` in the text, or the length of the text when it is not found. */
function find(text: string, mark: string, start: number): number {
  const at = text.indexOf(mark, start)
  return at < 0 ? text.length : at
}

/** Returns the value of a field, without the one space that may follow the colon. */
function valueAt(text: string, start: number, end: number): string {
  return text.slice(text.charCodeAt(start) === SPACE ? start + 1 : start, end)
}

function tooLarge(maxBytes: number): SkeinError {
  return new SkeinError(`A server-sent event is larger than ${maxBytes} bytes.`, {
    code: 'SSE_EVENT_TOO_LARGE',
    hint: 'Raise maxEventBytes if the sender is trusted to send events this large.',
  })
}
