/** How a response body is split into writes. */
export interface ChunkOptions {
  /**
   * Bytes per write, even if that splits a character, a line end or a number. Default: one write per
   * batch of events.
   */
  readonly chunkBytes?: number
  /** Milliseconds between two writes. */
  readonly paceMs?: number
  /** Line ends of server-sent events; the standard allows all three. */
  readonly lineEnd?: '\n' | '\r\n' | '\r'
}

/** Splits a body into the chunks in which it is sent. */
export async function* toChunks(
  texts: AsyncIterable<string> | Iterable<string>,
  { chunkBytes, paceMs, lineEnd = '\n' }: ChunkOptions,
  binary?: (text: string) => Uint8Array,
): AsyncGenerator<Uint8Array, void> {
  const encoder = new TextEncoder()
  const encode =
    binary ??
    ((text: string) => encoder.encode(lineEnd === '\n' ? text : text.replaceAll('\n', lineEnd)))
  let isFirst = true
  for await (const chunk of cut(toBytes(texts, encode), chunkBytes)) {
    if (!isFirst && paceMs !== undefined)
      await new Promise((resolve) => setTimeout(resolve, paceMs))
    isFirst = false
    yield chunk
  }
}

async function* toBytes(
  texts: AsyncIterable<string> | Iterable<string>,
  encode: (text: string) => Uint8Array,
): AsyncGenerator<Uint8Array, void> {
  for await (const text of texts) {
    if (text === '') continue
    yield encode(text)
  }
}

async function* cut(
  chunks: AsyncIterable<Uint8Array>,
  size: number | undefined,
): AsyncGenerator<Uint8Array, void> {
  if (size === undefined) return yield* chunks
  let rest = new Uint8Array(0)
  for await (const chunk of chunks) {
    const bytes = new Uint8Array(rest.length + chunk.length)
    bytes.set(rest)
    bytes.set(chunk, rest.length)
    let start = 0
    for (; start + size <= bytes.length; start += size) yield bytes.subarray(start, start + size)
    rest = bytes.slice(start)
  }
  if (rest.length > 0) yield rest
}
