export { toUIMessages, type ToUIMessagesOptions } from './ai-sdk/to-ui-messages.ts'
export { fromUIMessages, type FromUIMessagesOptions } from './ai-sdk/from-ui-messages.ts'
export {
  encodeLastResponse,
  encodeUIMessage,
  type EncodeUIMessageOptions,
} from './ai-sdk/encode-ui-message.ts'
export { UIStreamEncoder, type UIStreamEncoderOptions } from './ai-sdk/encode-events.ts'
export {
  UIStreamDecoder,
  fromUIChunks,
  type DecodeUIStreamOptions,
} from './ai-sdk/decode-ui-stream.ts'
export { UIMessageAssembler, type DroppedChunk } from './ai-sdk/assemble.ts'
export {
  UIChunkReader,
  UI_STREAM_DONE,
  UI_STREAM_HEADERS,
  decodeUIStream,
  encodeUIChunk,
} from './ai-sdk/ui-stream.ts'
export type * from './ai-sdk/types.ts'
