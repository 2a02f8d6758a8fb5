/**
 * The vendor formats: the client halves with which vendors are defined, and the server halves that answer
 * the clients of those vendors.
 */
export { anthropicMessagesServer } from './anthropic-messages/server.ts'

export { anthropicMessages } from './anthropic-messages/wire.ts'
export { googleGenerateServer } from './google-generate/server.ts'
export type { GoogleDialect } from './google-generate/types.ts'
export { googleGenerate } from './google-generate/wire.ts'
export { ollamaChatServer } from './ollama-chat/server.ts'

export { ollamaChat } from './ollama-chat/wire.ts'
export { chatDialect, type OpenAIChatDialect } from './openai-chat/types.ts'
export { openaiChatServer } from './openai-chat/server.ts'
export { openaiChat } from './openai-chat/wire.ts'
export { responsesDialect } from './openai-responses/types.ts'
export { openaiResponsesServer } from './openai-responses/server.ts'
export { openaiResponses } from './openai-responses/wire.ts'
export type { WireName } from '../contract/wire-name.ts'
export type { VendorError } from '../contract/vendor-error.ts'
export type { Target, Wire, RequestMode, DecodeContext, WireServer, ServerError } from './wire.ts'
export { messageEvents } from '../turn/message-events.ts'
