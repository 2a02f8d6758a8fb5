/** The server halves of the vendor formats, which answer the clients of those vendors. */
export { anthropicMessagesServer } from './anthropic-messages/server.ts'
export { googleGenerateServer } from './google-generate/server.ts'
export { ollamaChatServer } from './ollama-chat/server.ts'
export { openaiChatServer } from './openai-chat/server.ts'
export { openaiResponsesServer } from './openai-responses/server.ts'
export type { ServerError, WireServer } from './wire.ts'
