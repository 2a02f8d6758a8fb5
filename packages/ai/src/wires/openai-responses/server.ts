import { encodeError } from '../openai-server-error.ts'
import { readRequest } from '../wire-error.ts'
import type { WireServer } from '../wire-server.ts'
import { decodeRequest } from './server-request.ts'
import { encodeResponse, ResponsesEncoder } from './server-stream.ts'

/**
 * Responses served: one message per answer. Items that a client sends back are kept verbatim
 * under `metadata.openai`.
 */
export const openaiResponsesServer: WireServer = {
  name: 'openai-responses',
  decodeRequest: (body) => readRequest('openai', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new ResponsesEncoder(context),
  encodeError,
}
