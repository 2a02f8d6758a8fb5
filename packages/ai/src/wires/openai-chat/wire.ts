import type { JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { readErrorBody, readOpenAIError } from '../openai-error.ts'
import { objectOf } from '../read-json.ts'
import { writeChat } from './settings.ts'
import { withoutNulls } from '../strict-nulls.ts'
import { asDecodeError, invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, Wire } from '../wire.ts'
import { encodeRequest, refuse } from './request.ts'
import { ChatDecoder } from './stream.ts'
import type { ChatChunk, OpenAIChatDialect } from './types.ts'

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

/** Decodes a complete answer as a stream of one chunk. */
function decodeResponse(body: JsonValue, context: DecodeContext<OpenAIChatDialect>): StreamEvent[] {
  const { provider } = context.target
  const answer = objectOf(body)
  if (!answer) throw invalidResponse(provider, 'it is not a JSON object')
  if (answer['choices'] === undefined) {
    const error = readErrorBody(answer)
    if (error) throw vendorFailure(provider, error)
  }
  const decoder = new ChatDecoder(context)
  try {
    const events = decoder.decode(answer as ChatChunk)
    for (const event of decoder.finish()) events.push(event)
    return events
  } catch (error) {
    throw asDecodeError(provider, error)
  }
}
