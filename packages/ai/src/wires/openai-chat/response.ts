import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { readErrorBody } from '../openai-error.ts'
import { objectOf } from '../read-json.ts'
import { asDecodeError, invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { ChatDecoder } from './stream.ts'
import type { ChatChunk } from './types.ts'
import type { OpenAIChatDialect } from './dialect.ts'

/** Decodes a complete answer as a stream of one chunk. */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<OpenAIChatDialect>,
): StreamEvent[] {
  const { provider } = context.target
  const answer = objectOf(body)
  if (!answer) throw invalidResponse(provider, 'it is not a JSON object')
  if (answer['choices'] === undefined) {
    const error = readErrorBody(answer)
    if (error) throw vendorFailure(provider, error)
  }
  const decoder = new ChatDecoder(context)
  try {
    const events = decoder.decode(answer as ChatChunk)
    for (const event of decoder.finish()) events.push(event)
    return events
  } catch (error) {
    throw asDecodeError(provider, error)
  }
}
