/** One line of a stored log. */
export interface StoredLine {
  /**
   * The line's bytes behind a 0 byte, as RFC 6962 hashes a leaf; without line break. Valid until the
   * next line.
   */
  readonly leaf: Uint8Array
  /** Where the line begins in the log. */
  readonly offset: number
  /** False for a last line that was never ended. */
  readonly isWhole: boolean
}

/** What a log can be read from: text or bytes as they are stored, cut anywhere. */
export type LogSource =
  string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

const NEWLINE = 10
const utf8 = new TextEncoder()

/**
 * Splits a stored log into lines without copying them: the byte before a line is the line break of
 * the one before, already read, and becomes the 0 that a leaf begins with.
 */
export async function* splitLines(source: LogSource): AsyncGenerator<StoredLine[], void> {
  // The first byte is room for the first leaf's 0.
  let rest: Uint8Array = new Uint8Array(1)
  let offset = 0
  for await (const piece of toPieces(source)) {
    const bytes = typeof piece === 'string' ? utf8.encode(piece) : piece
    const buffer = new Uint8Array(rest.length + bytes.length)
    buffer.set(rest)
    buffer.set(bytes, rest.length)
    const lines: StoredLine[] = []
    let start = 1
    for (let end = findEnd(buffer, rest.length); end >= 0; end = findEnd(buffer, end + 1)) {
      buffer[start - 1] = 0
      lines.push({ leaf: buffer.subarray(start - 1, end), offset, isWhole: true })
      offset += end + 1 - start
      start = end + 1
    }
    rest = buffer.subarray(start - 1)
    yield lines
  }
  if (rest.length <= 1) return
  rest[0] = 0
  yield [{ leaf: rest, offset, isWhole: false }]
}

function findEnd(buffer: Uint8Array, from: number): number {
  return buffer.indexOf(NEWLINE, from)
}

function toPieces(
  source: LogSource,
): Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array> {
  return typeof source === 'string' || source instanceof Uint8Array ? [source] : source
}
