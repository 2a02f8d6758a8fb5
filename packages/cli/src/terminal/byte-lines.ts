const LF = 10

/** Stands for a line that is longer than the limit. */
export const TOO_LONG: unique symbol = Symbol('a line that is too long')

/**
 * Yields the lines of a stream of bytes. Only a line feed ends a line, because texts may contain other line
 * separators. A line that is too long is not kept: `TOO_LONG` is yielded for it, and the lines after it follow.
 */
export async function* byteLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string | typeof TOO_LONG, void, undefined> {
  let pieces: Uint8Array[] = []
  let bytes = 0
  const add = (piece: Uint8Array): void => {
    bytes += piece.length
    if (bytes > maxBytes) pieces = []
    else pieces.push(piece)
  }
  const take = (): string | typeof TOO_LONG => {
    const line = bytes > maxBytes ? TOO_LONG : Buffer.concat(pieces).toString()
    pieces = []
    bytes = 0
    return line
  }
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
      add(chunk.subarray(from, end))
      from = end + 1
      yield take()
    }
    add(chunk.subarray(from))
  }
  if (bytes > 0) yield take()
}
