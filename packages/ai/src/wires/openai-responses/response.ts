import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { readErrorBody } from '../openai-error.ts'
import { objectOf } from '../read-json.ts'
import { asDecodeError, invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext } from '../wire.ts'
import { ResponsesDecoder } from './stream.ts'
import type { OpenAIResponsesDialect } from './types.ts'

/** Decodes a complete answer, which contains the items that a stream closes one by one. */
export function decodeResponse(
  body: JsonValue,
  context: DecodeContext<OpenAIResponsesDialect>,
): StreamEvent[] {
  const { provider } = context.target
  const response = objectOf(body)
  if (!response) throw invalidResponse(provider, 'it is not a JSON object')
  if (!Array.isArray(response['output']) && response['status'] === undefined) {
    const error = readErrorBody(response)
    if (error) throw vendorFailure(provider, error)
    throw invalidResponse(provider, 'it has no output')
  }
  try {
    return new ResponsesDecoder(context).decode(response)
  } catch (error) {
    throw asDecodeError(provider, error)
  }
}
