/** The binary event stream of AWS, written from its documentation with the CRC of Node: an encoder that is not ours. */
import { crc32 } from 'node:zlib'
import type { JsonObject } from '@skein/base'

/** Writes one message with headers that are texts. */
export function eventMessage(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const parts = Object.entries(headers).map(([name, value]) => {
    const head = Buffer.from([Buffer.byteLength(name), ...Buffer.from(name), 7, 0, 0])
    head.writeUInt16BE(Buffer.byteLength(value), head.length - 2)
    return Buffer.concat([head, Buffer.from(value)])
  })
  const headerBytes = Buffer.concat(parts)
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + headerBytes.length + body.length, 0)
  prelude.writeUInt32BE(headerBytes.length, 4)
  const crc = (bytes: Buffer): Buffer => {
    const four = Buffer.alloc(4)
    four.writeUInt32BE(crc32(bytes))
    return four
  }
  const rest = Buffer.concat([prelude, crc(prelude), headerBytes, body])
  return Buffer.concat([rest, crc(rest)])
}

/** Writes an event, e.g. `contentBlockDelta`. */
export function event(type: string, body: JsonObject): Buffer {
  const headers = {
    ':event-type': type,
    ':content-type': 'application/json',
    ':message-type': 'event',
  }
  return eventMessage(headers, JSON.stringify(body))
}

/** Returns the bytes of a stream that is written as lines of a type and its JSON. */
export function eventStream(lines: string): Buffer {
  const events = lines.split('\n').filter(Boolean)
  return Buffer.concat(
    events.map((line) => {
      const { type, ...body } = JSON.parse(line) as JsonObject & { type: string }
      return event(type, body)
    }),
  )
}
