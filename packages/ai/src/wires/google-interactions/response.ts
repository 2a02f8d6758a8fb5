import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { objectOf } from '../read-json.ts'
import { invalidResponse } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { InteractionsDecoder } from './stream.ts'
import type { InteractionsDialect } from './types.ts'

/** Decodes a complete answer. */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<InteractionsDialect>,
): StreamEvent[] {
  const interaction = objectOf(body)
  if (!interaction) throw invalidResponse(context.target.provider, 'it is not a JSON object')
  const decoder = new InteractionsDecoder(context)
  return [...decoder.decodeWhole(interaction), ...decoder.end()]
}
