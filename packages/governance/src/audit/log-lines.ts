/** One line of a stored log. */
interface StoredLine {
  /**
   * A 0 byte followed by the bytes of the line without line break; RFC 6962 hashes this as a leaf. Copy
   * these bytes to keep them, because their buffer may be reused.
   */
  readonly leaf: Uint8Array
  /** Byte offset of the line in the log. */
  readonly offset: number
  /** False for a last line without line break, which means that writing it was interrupted. */
  readonly isWhole: boolean
}

/** The stored text or bytes of a log, in pieces of any size. */
export type LogSource =
  string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

const NEWLINE = 10
const utf8 = new TextEncoder()

/**
 * Splits a stored log into lines without copying each line. The 0 byte at the start of a leaf overwrites
 * the line break before the line, which is no longer needed.
 */
export async function* splitLines(source: LogSource): AsyncGenerator<StoredLine[], void> {
  // The first byte is reserved for the 0 byte of the first leaf.
  let rest: Uint8Array = new Uint8Array(1)
  let offset = 0
  const isOne = typeof source === 'string' || source instanceof Uint8Array
  for await (const piece of isOne ? [source] : source) {
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
