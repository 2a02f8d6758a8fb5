import { SkeinError } from './error.ts'

const LF = 10
const CR = 13
/** A line buffer that grew past this is dropped after use, so one huge line does not pin its memory. */
const KEEP_BYTES = 65_536

const empty = new Uint8Array(0)

/** What the caller of a line splitter decides. */
export interface LineTextOptions {
  /** Whether a lone CR ends a line (SSE) or is part of it (NDJSON). */
  readonly crEndsLine: boolean
  /** The longest unfinished line that is kept. */
  readonly maxLineBytes: number
  /** Makes the error for a line beyond `maxLineBytes`. */
  readonly tooLong: () => SkeinError
}

/**
 * Turns network reads into the text of whole lines. Bytes are decoded only up to a line end: that is
 * always a character boundary in UTF-8, so no decoder state is carried and each read is decoded once.
 */
export class LineText {
  readonly #options: LineTextOptions
  // ignoreBOM: only a mark at the very start of the stream is dropped, and `#decode` does that.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #atStart = true
  #afterCr = false
  /** The unfinished line; grows by doubling, so an 8 MB line in small reads is copied O(1) times. */
  #buffer: Uint8Array = empty
  #length = 0

  constructor(options: LineTextOptions) {
    this.#options = options
  }

  /** Bytes of the unfinished line. */
  get pendingBytes(): number {
    return this.#length
  }

  /** The text of all lines that this read completes, each with its line end; '' when there is none. */
  push(chunk: Uint8Array): string {
    let start = 0
    if (this.#afterCr && chunk.length > 0) {
      this.#afterCr = false
      if (chunk[0] === LF) start = 1
    }
    const end = this.#endOfLastLine(chunk, start)
    if (end === start) {
      this.#keep(chunk, start)
      return ''
    }
    if (this.#options.crEndsLine) this.#afterCr = chunk[end - 1] === CR
    const text = this.#takeUpTo(chunk, start, end)
    this.#keep(chunk, end)
    return text
  }

  /** The unfinished last line, without a line end; the splitter is empty afterwards. */
  end(): string {
    return this.#takeUpTo(empty, 0, 0)
  }

  #endOfLastLine(chunk: Uint8Array, start: number): number {
    const lf = chunk.lastIndexOf(LF) + 1
    if (!this.#options.crEndsLine || lf === chunk.length) return Math.max(lf, start)
    return Math.max(lf, chunk.lastIndexOf(CR) + 1, start)
  }

  #takeUpTo(chunk: Uint8Array, start: number, end: number): string {
    if (this.#length === 0) return this.#decode(chunk.subarray(start, end))
    this.#append(chunk, start, end)
    const text = this.#decode(this.#buffer.subarray(0, this.#length))
    this.#length = 0
    if (this.#buffer.length > KEEP_BYTES) this.#buffer = empty
    return text
  }

  #decode(bytes: Uint8Array): string {
    const text = this.#decoder.decode(bytes)
    if (!this.#atStart || text === '') return text
    this.#atStart = false
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  }

  #keep(chunk: Uint8Array, start: number): void {
    if (start === chunk.length) return
    if (this.#length + chunk.length - start > this.#options.maxLineBytes)
      throw this.#options.tooLong()
    this.#append(chunk, start, chunk.length)
  }

  /** Copies: the caller may reuse its read buffer. */
  #append(chunk: Uint8Array, start: number, end: number): void {
    const needed = this.#length + end - start
    if (needed > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(needed, this.#buffer.length * 2, 1024))
      grown.set(this.#buffer.subarray(0, this.#length))
      this.#buffer = grown
    }
    this.#buffer.set(chunk.subarray(start, end), this.#length)
    this.#length = needed
  }
}
