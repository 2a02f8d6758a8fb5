import { readRequest } from '../wire-error.ts'
import type { WireServer } from '../wire-server.ts'
import { encodeError } from './server-error.ts'
import { decodeRequest } from './server-request.ts'
import { AnthropicEncoder, encodeResponse } from './server-response.ts'
import { API } from './types.ts'

/** The Messages API served: one message per answer. */
export const anthropicMessagesServer: WireServer = {
  name: API,
  decodeRequest: (body) => readRequest('anthropic', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new AnthropicEncoder(context),
  encodeError,
}
