export { toUIMessages, type ToUIMessagesOptions } from './to-ui-messages.ts'
export { fromUIMessages } from './from-ui-messages.ts'
export { encodeUIMessage } from './encode-ui-message.ts'
export { UIStreamEncoder } from './encode-events.ts'
export { UIStreamDecoder, fromUIChunks } from './ui-stream.ts'
export { agentUIResponse, agentUIStream, uiAnswers } from './agent-stream.ts'
export { UIMessageAssembler } from './assemble.ts'
export {
  UIChunkReader,
  UI_STREAM_DONE,
  UI_STREAM_HEADERS,
  decodeUIStream,
  encodeUIChunk,
} from './ui-chunks.ts'
export type { UIMessage, UIMessagePart, UIMessageChunk } from './types.ts'
