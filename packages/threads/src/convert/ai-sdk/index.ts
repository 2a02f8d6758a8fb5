export { toUIMessages, type ToUIMessagesOptions } from './to-ui-messages.ts'
export { fromUIMessages, type FromUIMessagesOptions } from './from-ui-messages.ts'
export {
  encodeLastResponse,
  encodeUIMessage,
  type EncodeUIMessageOptions,
} from './encode-ui-message.ts'
export { UIStreamEncoder, type UIStreamEncoderOptions } from './encode-events.ts'
export { UIStreamDecoder, fromUIChunks, type DecodeUIStreamOptions } from './ui-stream.ts'
export {
  agentUIResponse,
  agentUIStream,
  uiAnswers,
  type AgentEvent,
  type AgentEvents,
  type AgentUIStreamOptions,
  type UIAnswers,
} from './agent-stream.ts'
export { UIMessageAssembler } from './assemble.ts'
export {
  UIChunkReader,
  UI_STREAM_DONE,
  UI_STREAM_HEADERS,
  decodeUIStream,
  encodeUIChunk,
} from './ui-stream.ts'
export type { UIMessage, UIMessagePart, ToolUIPart, UIMessageChunk } from './types.ts'
