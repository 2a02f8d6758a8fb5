import { readOpenAIError } from '../openai-error.ts'
import { writeChat } from '../settings.ts'
import { withoutNulls } from '../strict-nulls.ts'
import type { Wire } from '../wire.ts'
import { encodeRequest } from './request.ts'
import { decodeResponse } from './response.ts'
import { ChatDecoder } from './stream.ts'
import type { OpenAIChatDialect } from './types.ts'

/** The client half of OpenAI Chat Completions, the format that most servers use. */
export const openaiChat: Wire<OpenAIChatDialect> = {
  name: 'openai-chat',
  framing: 'sse',
  encodeRequest,
  writeSettings: writeChat,
  decodeResponse,
  createDecoder: (context) => new ChatDecoder(context),
  readData: withoutNulls,
  decodeError: readOpenAIError,
}
