import { readOpenAIError } from '../openai-error.ts'
import { writeResponses } from '../settings.ts'
import { withoutNulls } from '../strict-nulls.ts'
import type { Wire } from '../wire.ts'
import { encodeRequest } from './request.ts'
import { decodeResponse } from './response.ts'
import { ResponsesDecoder } from './stream.ts'
import type { OpenAIResponsesDialect } from './types.ts'

/** The client half of OpenAI Responses, in which an answer is a list of items. */
export const openaiResponses: Wire<OpenAIResponsesDialect> = {
  name: 'openai-responses',
  framing: 'sse',
  encodeRequest,
  writeSettings: writeResponses,
  decodeResponse,
  createDecoder: (context) => new ResponsesDecoder(context),
  readData: withoutNulls,
  decodeError: readOpenAIError,
}
