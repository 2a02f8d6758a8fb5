/** The vendor formats for servers: each reads the requests of a vendor's clients and writes answers to them. */
export { anthropicMessagesServer } from '../wires/anthropic-messages/server.ts'
export { bedrockConverseServer } from '../wires/bedrock-converse/server.ts'
export { googleGenerateServer } from '../wires/google-generate/server.ts'
export { googleInteractionsServer } from '../wires/google-interactions/server.ts'
export { ollamaChatServer } from '../wires/ollama-chat/server.ts'
export { openaiChatServer } from '../wires/openai-chat/server.ts'
export { openaiResponsesServer } from '../wires/openai-responses/server.ts'
export type { ServerError, WireServer } from '../wires/wire-server.ts'
