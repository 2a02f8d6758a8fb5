import { messageCrc } from './message-crc.ts'

/**
 * The binary format `application/vnd.amazon.eventstream`. A message is, in big-endian order: its total length, the
 * length of its headers, a CRC-32 of these eight bytes, the headers, the payload, and a CRC-32 of all before it.
 */

/** A header: a text, or a value of another type that is not read here. */
export type EventHeaders = Readonly<Record<string, string | undefined>>

/** One message of an event stream. */
export interface EventMessage {
  readonly headers: EventHeaders
  readonly payload: Uint8Array
}

/** The bytes before the headers and after the payload. */
const PRELUDE = 12
const OVERHEAD = 16
/** The limit of the format for the headers of one message. */
const MAX_HEADERS = 128 * 1024

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** Divides bytes, in whatever pieces they arrive, into messages. Throws for a wrong length, header or CRC. */
export class EventStreamDecoder {
  readonly #maxBytes: number
  #pieces: Uint8Array[] = []
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  push(chunk: Uint8Array): EventMessage[] {
    if (chunk.length === 0) return []
    this.#pieces.push(chunk)
    this.#length += chunk.length
    const messages: EventMessage[] = []
    // Pieces are joined only once a whole message is there, so that a long one costs no more than its length.
    for (;;) {
      const total = this.#peekLength()
      if (total === undefined || this.#length < total) return messages
      const bytes = this.#take(total)
      messages.push(readMessage(bytes))
    }
  }

  /** Called at the end of the bytes. */
  end(): EventMessage[] {
    if (this.#length > 0) throw new Error('it ended within a message')
    return []
  }

  /** Returns the length of the next message, once its prelude is there and right. */
  #peekLength(): number | undefined {
    if (this.#length < PRELUDE) return undefined
    if (this.#pieces[0]!.length < PRELUDE) this.#pieces = [join(this.#pieces, this.#length)]
    const view = viewOf(this.#pieces[0]!)
    const total = view.getUint32(0)
    const headers = view.getUint32(4)
    if (view.getUint32(8) !== messageCrc(this.#pieces[0]!.subarray(0, 8)))
      throw new Error('the CRC of a prelude is wrong')
    if (total < OVERHEAD || headers > Math.min(MAX_HEADERS, total - OVERHEAD))
      throw new Error(`a message has the length ${total} and headers of ${headers} bytes`)
    if (total > this.#maxBytes) throw new Error(`a message has ${total} bytes`)
    return total
  }

  #take(length: number): Uint8Array {
    const [first] = this.#pieces
    const all = first!.length >= length ? first! : join(this.#pieces, this.#length)
    const rest = all.subarray(length)
    this.#pieces =
      all === first
        ? [...(rest.length > 0 ? [rest] : []), ...this.#pieces.slice(1)]
        : rest.length > 0
          ? [rest]
          : []
    this.#length -= length
    return all.subarray(0, length)
  }
}

function readMessage(bytes: Uint8Array): EventMessage {
  const view = viewOf(bytes)
  const end = bytes.length - 4
  if (view.getUint32(end) !== messageCrc(bytes.subarray(0, end)))
    throw new Error('the CRC of a message is wrong')
  const headersEnd = PRELUDE + view.getUint32(4)
  return {
    headers: readHeaders(bytes.subarray(PRELUDE, headersEnd)),
    payload: bytes.subarray(headersEnd, end),
  }
}

/** The bytes of the values of fixed length, by the number of their type: true, false, byte, … timestamp, UUID. */
const fixedLengths: Readonly<Record<number, number>> = {
  0: 0,
  1: 0,
  2: 1,
  3: 2,
  4: 4,
  5: 8,
  8: 8,
  9: 16,
}
const BYTES = 6
const TEXT = 7

function readHeaders(bytes: Uint8Array): EventHeaders {
  const headers: Record<string, string | undefined> = Object.create(null)
  const view = viewOf(bytes)
  let at = 0
  const advance = (count: number): number => {
    const start = at
    at += count
    if (at > bytes.length) throw new Error('a header is cut off')
    return start
  }
  while (at < bytes.length) {
    const nameLength = bytes[advance(1)]!
    const nameStart = advance(nameLength)
    const name = decoder.decode(bytes.subarray(nameStart, at))
    const type = bytes[advance(1)]!
    if (type === TEXT || type === BYTES) {
      const length = view.getUint16(advance(2))
      const start = advance(length)
      headers[name] = type === TEXT ? decoder.decode(bytes.subarray(start, at)) : undefined
    } else {
      const length = fixedLengths[type]
      if (length === undefined) throw new Error(`a header has the type ${type}`)
      advance(length)
      headers[name] = undefined
    }
  }
  return headers
}

/** Writes one message with headers that are texts, for servers. */
export function encodeEventMessage({ headers, payload }: EventMessage): Uint8Array {
  const parts = Object.entries(headers).flatMap(([name, value = '']) => {
    const nameBytes = encoder.encode(name)
    const valueBytes = encoder.encode(value)
    const length = Uint8Array.of(TEXT, valueBytes.length >> 8, valueBytes.length & 0xff)
    return [Uint8Array.of(nameBytes.length), nameBytes, length, valueBytes]
  })
  const headerBytes = join(
    parts,
    parts.reduce((sum, part) => sum + part.length, 0),
  )
  const bytes = new Uint8Array(OVERHEAD + headerBytes.length + payload.length)
  const view = viewOf(bytes)
  view.setUint32(0, bytes.length)
  view.setUint32(4, headerBytes.length)
  view.setUint32(8, messageCrc(bytes.subarray(0, 8)))
  bytes.set(headerBytes, PRELUDE)
  bytes.set(payload, PRELUDE + headerBytes.length)
  view.setUint32(bytes.length - 4, messageCrc(bytes.subarray(0, bytes.length - 4)))
  return bytes
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function join(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
