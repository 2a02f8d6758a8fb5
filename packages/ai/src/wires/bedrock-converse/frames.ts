import type { SseEvent } from '@skein/base'
import type { BodyFrames } from '../../transport/read-answer.ts'
import { EventStreamDecoder, encodeEventMessage, type EventMessage } from './event-stream.ts'

/** The beginning of the name of a frame that is an exception, e.g. `exception:throttlingException`. */
export const EXCEPTION = 'exception:'

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** Divides the body of a stream into frames: the type of each event, and its JSON. */
export function createFrames(maxBytes: number): BodyFrames {
  const messages = new EventStreamDecoder(maxBytes)
  return {
    push: (chunk) => messages.push(chunk).map(toFrame),
    end: () => messages.end().map(toFrame),
  }
}

function toFrame({ headers, payload }: EventMessage): SseEvent {
  const data = decoder.decode(payload)
  switch (headers[':message-type']) {
    case 'exception':
      return { event: EXCEPTION + (headers[':exception-type'] ?? ''), data: data || '{}', id: '' }
    case 'error': {
      // An error that is not in the model of the service has its words in headers, and no payload.
      const message = headers[':error-message'] ?? data
      const event = EXCEPTION + (headers[':error-code'] ?? '')
      return { event, data: JSON.stringify({ message }), id: '' }
    }
    default:
      return { event: headers[':event-type'] ?? '', data, id: '' }
  }
}

/** Writes a frame as the text that `toBytes` reads: a line with the name and the JSON. */
export function frameText(event: string, data: string): string {
  return `${event} ${data}\n`
}

/** Returns the bytes of frames written by `frameText`. Any other text is sent as it is. */
export function toBytes(text: string): Uint8Array {
  const parts = text.split(/(?<=\n)/).map((line) => {
    const [, name, data] = /^([\w:]+) (\{.*\})\n$/s.exec(line) ?? []
    if (name === undefined || data === undefined) return encoder.encode(line)
    const isException = name.startsWith(EXCEPTION)
    const headers = {
      [isException ? ':exception-type' : ':event-type']: name.slice(
        isException ? EXCEPTION.length : 0,
      ),
      ':content-type': 'application/json',
      ':message-type': isException ? 'exception' : 'event',
    }
    return encodeEventMessage({ headers, payload: encoder.encode(data) })
  })
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
