import { SkeinError } from './error.ts'
import { LineText } from './line-text.ts'

/** Settings of an `NdjsonDecoder`. */
export interface NdjsonDecoderOptions {
  /** The most bytes one line may have. Default 64 MiB. */
  readonly maxLineBytes?: number | undefined
}

const DEFAULT_MAX_LINE_BYTES = 64 * 1024 * 1024

/**
 * Splits newline-delimited JSON into lines, one batch per network read. Lines end with LF or CRLF;
 * blank lines are left out. Parsing stays with the caller, who knows what a bad line means.
 */
export class NdjsonDecoder {
  readonly #lines: LineText

  constructor({ maxLineBytes = DEFAULT_MAX_LINE_BYTES }: NdjsonDecoderOptions = {}) {
    this.#lines = new LineText({
      crEndsLine: false,
      maxLineBytes,
      tooLong: () => tooLong(maxLineBytes),
    })
  }

  /** Lines that this read completes, without their line ends. */
  push(chunk: Uint8Array): string[] {
    return splitLines(this.#lines.push(chunk))
  }

  /** The last line, if no line end closed it. */
  end(): string[] {
    return splitLines(this.#lines.end())
  }
}

function splitLines(text: string): string[] {
  const lines: string[] = []
  let start = 0
  while (start < text.length) {
    const lf = text.indexOf('\n', start)
    const end = lf < 0 ? text.length : lf
    const line = text.slice(start, text.charCodeAt(end - 1) === 13 ? end - 1 : end)
    if (line.trim() !== '') lines.push(line)
    start = end + 1
  }
  return lines
}

function tooLong(maxBytes: number): SkeinError {
  return new SkeinError(`A line of newline-delimited JSON is longer than ${maxBytes} bytes.`, {
    code: 'NDJSON_LINE_TOO_LONG',
    hint: 'Raise maxLineBytes if the sender is trusted to send lines this long.',
  })
}
