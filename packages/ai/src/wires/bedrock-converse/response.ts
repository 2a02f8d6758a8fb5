import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { objectOf } from '../read-json.ts'
import { invalidResponse } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { BedrockDecoder } from './stream.ts'
import type { BedrockDialect } from './types.ts'

/** Decodes a complete answer. */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<BedrockDialect>,
): StreamEvent[] {
  const answer = objectOf(body)
  if (!answer) throw invalidResponse(context.target.provider, 'it is not a JSON object')
  const decoder = new BedrockDecoder(context)
  return [...decoder.decodeWhole(answer), ...decoder.end()]
}
