import { writeAnthropic } from './settings.ts'
import type { Wire } from '../wire.ts'
import { decodeError } from './error.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { AnthropicDecoder } from './stream.ts'
import { API, type AnthropicDialect } from './types.ts'

/** Anthropic's Messages API for clients: writes requests and reads answers. */
export const anthropicMessages: Wire<AnthropicDialect> = {
  name: API,
  framing: 'sse',
  encodeRequest,
  refuse,
  writeSettings: writeAnthropic,
  decodeResponse,
  createDecoder: (context) => new AnthropicDecoder(context),
  decodeError,
}
