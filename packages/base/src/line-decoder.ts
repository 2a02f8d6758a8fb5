import { SkeinError } from './error.ts'

const LF = 10
export const CR = 13
const BYTE_ORDER_MARK = 0xfeff

/** The properties in which line formats differ. */
interface LineFormat {
  /** Whether a lone CR ends a line (SSE) or is part of it (NDJSON). */
  readonly crEndsLine: boolean
  /**
   * The characters that are appended at the end of the stream to a last line without a line end, so that the
   * line is decoded; undefined discards that line.
   */
  readonly closing: string | undefined
  readonly maxLineBytes: number
  /** Creates the error for a line longer than `maxLineBytes`. */
  readonly tooLong: () => SkeinError
}

/**
 * One decoder for all streams, for chunks that begin and end with whole characters: a decoder that is not in
 * streaming mode keeps nothing between calls. `ignoreBOM` is set because only a byte order mark at the very
 * start of a stream may be dropped.
 */
const wholeDecoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Decodes a text format of lines that arrives in chunks: `push` returns the items that a chunk completes.
 * Each chunk is decoded once, and the pieces of an unfinished line are joined once, so the cost is linear in
 * the number of bytes, however they are split into chunks. When a line causes an error, the items before it
 * are returned first, and the next call throws.
 */
export abstract class LineDecoder<Item> {
  readonly #format: LineFormat
  /** Decodes chunks that begin or end inside a character. Created only when needed, because such chunks are rare. */
  #splitDecoder: TextDecoder | undefined
  #insideCharacter = false
  #atStart = true
  #afterCr = false
  #pending = ''
  #pendingBytes = 0
  #failure: unknown

  constructor(format: LineFormat) {
    this.#format = format
  }

  /** Decodes `text`, which consists of whole lines with their line ends, and adds the items to the list. */
  protected abstract decodeLines(text: string, items: Item[]): void

  /** Decodes the next chunk of the stream and returns the items that it completes, in order. */
  push(chunk: Uint8Array): Item[] {
    return this.#decode(chunk)
  }

  /** Ends the stream and returns the items that the end of the stream completes. */
  end(): Item[] {
    return this.#decode(undefined)
  }

  /** Throws if the line from `start` to `end` is longer than `maxLineBytes`. */
  protected checkLine(text: string, start: number, end: number): void {
    // UTF-8 takes at most three bytes per UTF-16 unit, so most lines need no exact count.
    const { maxLineBytes, tooLong } = this.#format
    if ((end - start) * 3 <= maxLineBytes) return
    if (utf8Length(text.slice(start, end)) > maxLineBytes) throw tooLong()
  }

  #decode(chunk: Uint8Array | undefined): Item[] {
    const items: Item[] = []
    try {
      if (this.#failure !== undefined) throw this.#failure
      const text = chunk === undefined ? this.#takeRest() : this.#takeLines(chunk)
      if (text !== '') this.decodeLines(text, items)
    } catch (error) {
      this.#failure = error
      if (items.length === 0) throw error
    }
    return items
  }

  /** Returns the text of all lines that the chunk completes; '' when it completes none. */
  #takeLines(chunk: Uint8Array): string {
    const text = this.#toText(chunk)
    const end = this.#endOfLastLine(text)
    if (end === 0) {
      this.#pending += text
      this.#pendingBytes += chunk.length
      if (this.#pendingBytes > this.#format.maxLineBytes) throw this.#format.tooLong()
      return ''
    }
    const lines = end === text.length ? text : text.slice(0, end)
    // `join` creates a flat string; `+` would create a tree of pieces that each later search has to traverse.
    const whole = this.#pending === '' ? lines : [this.#pending, lines].join('')
    this.#pending = text.slice(end)
    const isAscii = text.length === chunk.length
    this.#pendingBytes = isAscii ? this.#pending.length : utf8Length(this.#pending)
    return whole
  }

  #takeRest(): string {
    const rest = this.#pending + (this.#splitDecoder?.decode() ?? '')
    this.#pending = ''
    this.#pendingBytes = 0
    const { closing } = this.#format
    return closing === undefined ? '' : rest + closing
  }

  /**
   * Decodes the bytes. Drops a byte order mark at the start of the stream, and an LF when the previous chunk
   * ended with the CR of the same line end.
   */
  #toText(chunk: Uint8Array): string {
    const text = this.#decodeUtf8(chunk)
    if (text === '') return text
    const first = text.charCodeAt(0)
    const skip = (this.#atStart && first === BYTE_ORDER_MARK) || (this.#afterCr && first === LF)
    this.#atStart = false
    this.#afterCr = this.#format.crEndsLine && text.charCodeAt(text.length - 1) === CR
    return skip ? text.slice(1) : text
  }

  #decodeUtf8(chunk: Uint8Array): string {
    const last = chunk[chunk.length - 1]
    if (last === undefined) return ''
    // A last byte below 0x80 is a whole ASCII character, so the chunk does not end inside a character.
    const stream = last >= 0x80
    if (!stream && !this.#insideCharacter) return wholeDecoder.decode(chunk)
    this.#insideCharacter = stream
    this.#splitDecoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
    return this.#splitDecoder.decode(chunk, { stream })
  }

  #endOfLastLine(text: string): number {
    // `includes` is far faster than `lastIndexOf` on a text that has no line end at all.
    const lf = text.includes('\n') ? text.lastIndexOf('\n') : -1
    if (!this.#format.crEndsLine || !text.includes('\r', lf + 1)) return lf + 1
    return text.lastIndexOf('\r') + 1
  }
}

/** Returns how many bytes a text has in UTF-8, without encoding it. */
export function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    // A surrogate pair has two units and four bytes, so each of its units adds one byte.
    length += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
  }
  return length
}
