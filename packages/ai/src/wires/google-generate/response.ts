import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { objectOf } from '../read-json.ts'
import { invalidResponse } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { GoogleDecoder } from './stream.ts'
import type { GoogleDialect } from './types.ts'

/** Decodes a complete answer as a stream of one frame. (A stream without `alt=sse` is a list of frames.) */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<GoogleDialect>,
): StreamEvent[] {
  const decoder = new GoogleDecoder(context)
  const frames = Array.isArray(body) ? (body as readonly JsonValue[]) : [body]
  const events = frames.flatMap((frame) => {
    const fields = objectOf(frame)
    if (!fields) throw invalidResponse(context.target.provider, 'it is not a JSON object')
    return decoder.decode(fields)
  })
  return [...events, ...decoder.end()]
}
