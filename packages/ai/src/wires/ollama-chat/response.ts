import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { objectOf } from '../read-json.ts'
import { invalidResponse } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { OllamaDecoder } from './stream.ts'
import type { OllamaDialect } from './types.ts'

/** Decodes a complete answer as a stream of one line. */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<OllamaDialect>,
): StreamEvent[] {
  const { provider } = context.target
  const line = objectOf(body)
  if (!line) throw invalidResponse(provider, 'it is not a JSON object')
  if (line['error'] === undefined && !objectOf(line['message']))
    throw invalidResponse(provider, 'it has no message')
  const decoder = new OllamaDecoder(context)
  return [...decoder.decode(line), ...decoder.end()]
}
