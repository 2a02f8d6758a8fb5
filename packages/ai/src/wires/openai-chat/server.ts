import { encodeError } from '../openai-server-error.ts'
import { readRequest } from '../wire-error.ts'
import type { WireServer } from '../wire-server.ts'
import { decodeRequest } from './server-request.ts'
import { ChatEncoder, encodeResponse } from './server-stream.ts'

/**
 * Chat Completions served: one message per answer. Vendor options that a client sends on parts
 * and tools are kept under `metadata.openai`.
 */
export const openaiChatServer: WireServer = {
  name: 'openai-chat',
  decodeRequest: (body) => readRequest('openai', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new ChatEncoder(context),
  encodeError,
}
