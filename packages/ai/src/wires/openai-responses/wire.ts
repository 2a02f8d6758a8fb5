import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { readErrorBody, readOpenAIError } from '../openai-error.ts'
import { objectOf } from '../read-json.ts'
import { writeResponses } from './settings.ts'
import { withoutNulls } from '../strict-nulls.ts'
import { asDecodeError, invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, Wire } from '../wire.ts'
import { encodeRequest, refuse } from './request.ts'
import { ResponsesDecoder } from './stream.ts'
import type { OpenAIResponsesDialect } from './types.ts'

/** OpenAI Responses for clients: writes requests and reads answers. An answer is a list of items. */
export const openaiResponses: Wire<OpenAIResponsesDialect> = {
  name: 'openai-responses',
  framing: 'sse',
  encodeRequest,
  refuse,
  writeSettings: writeResponses,
  decodeResponse,
  createDecoder: (context) => new ResponsesDecoder(context),
  readData: withoutNulls,
  decodeError: readOpenAIError,
}

/** Decodes a complete answer, which contains the items that a stream closes one by one. */
function decodeResponse(
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
