import { readOpenAIError } from '../openai-error.ts'
import { withoutNulls } from '../strict-nulls.ts'
import type { Wire } from '../wire.ts'
import { encodeRequest, refuse } from './request.ts'
import { decodeResponse } from './response.ts'
import { writeChat } from './settings.ts'
import { ChatDecoder } from './stream.ts'
import type { OpenAIChatDialect } from './dialect.ts'

/** OpenAI Chat Completions for clients, the format that most servers use: writes requests and reads answers. */
export const openaiChat: Wire<OpenAIChatDialect> = {
  name: 'openai-chat',
  framing: 'sse',
  encodeRequest,
  refuse,
  writeSettings: writeChat,
  decodeResponse,
  createDecoder: (context) => new ChatDecoder(context),
  readData: withoutNulls,
  decodeError: readOpenAIError,
}
