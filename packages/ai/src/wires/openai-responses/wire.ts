import { readOpenAIError } from '../openai-error.ts'
import { withoutNulls } from '../strict-nulls.ts'
import type { Wire } from '../wire.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { writeResponses } from './settings.ts'
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
