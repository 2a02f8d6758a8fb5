import { SkeinError } from './error.ts'
import { CR, LineDecoder } from './line-decoder.ts'

/** Settings of an `NdjsonDecoder`. */
export interface NdjsonDecoderOptions {
  /** The most bytes one line may have. Default 64 MiB. */
  readonly maxLineBytes?: number | undefined
}

const DEFAULT_MAX_LINE_BYTES = 64 * 1024 * 1024

/**
 * Splits newline-delimited JSON into lines: `push` returns the lines that a chunk completes. Lines end with
 * LF or CRLF; blank lines are left out. The caller parses the lines, because it decides what to do about an
 * invalid one.
 */
export class NdjsonDecoder extends LineDecoder<string> {
  constructor({ maxLineBytes = DEFAULT_MAX_LINE_BYTES }: NdjsonDecoderOptions = {}) {
    super({
      crEndsLine: false,
      closing: '\n',
      maxLineBytes,
      tooLong: () => tooLong(maxLineBytes),
    })
  }

  protected override decodeLines(text: string, lines: string[]): void {
    for (let start = 0; start < text.length;) {
      const end = text.indexOf('\n', start)
      this.checkLine(text, start, end)
      const line = text.slice(start, text.charCodeAt(end - 1) === CR ? end - 1 : end)
      if (line.trim() !== '') lines.push(line)
      start = end + 1
    }
  }
}

function tooLong(maxBytes: number): SkeinError {
  return new SkeinError(`A line of newline-delimited JSON is longer than ${maxBytes} bytes.`, {
    code: 'NDJSON_LINE_TOO_LONG',
    hint: 'Raise maxLineBytes if the sender is trusted to send lines this long.',
  })
}
