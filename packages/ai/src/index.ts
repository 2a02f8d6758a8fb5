export { ai, ai as default } from './ai.ts'
export type * from './content.ts'
export { ContentBlockType } from './content.ts'
export { llm, type InferOptions, type LLMInstance, type LLMOptions, type ToolRun } from './llm.ts'
export { BatchReader, type BatchSource } from './batch-reader.ts'
export { StreamResult } from './stream-result.ts'
export type { History, InferenceInput } from './to-messages.ts'
export type { Structure } from './structure.ts'
export type { OpenCall, Turn } from './turn.ts'
export { addUsage, zeroUsage, type TokenUsage } from './usage.ts'
export type { Warning } from './warning.ts'
export * from './message.ts'
export * from './error.ts'
export * from './event.ts'
export * from './tool.ts'
export { withToolContext } from './tool-context.ts'
export {
  executeTools,
  type BatchResult,
  type SettledCall,
  type ToolBatch,
  type ToolEffect,
  type ToolExecutionEvent,
  type ToolHooks,
} from './tool-executor.ts'
export { toToolExecution, toToolResult } from './tool-result.ts'
export { parsePartialJson, PartialJson } from './partial-json.ts'
export type * from './config.ts'
export type * from './middleware.ts'
export * from './provider.ts'
export {
  loggingMiddleware,
  LogLevel,
  type LogDetails,
  type Logger,
  type LoggingOptions,
} from './middleware/logging.ts'
export {
  parsedObjectMiddleware,
  type ParsedEventDelta,
  type ParsedObjectOptions,
  type ParsedStreamEvent,
} from './middleware/parsed-object.ts'
export { DynamicKey, RoundRobinKeys, WeightedKeys, type WeightedKey } from './keys.ts'
export {
  ExponentialBackoff,
  LinearBackoff,
  NoRetry,
  type ExponentialBackoffOptions,
  type LinearBackoffOptions,
} from './retry.ts'
export * from './embedding.ts'
export * from './image.ts'
export { Image } from './media/image.ts'
export { Document } from './media/document.ts'
export { Audio } from './media/audio.ts'
export { Video } from './media/video.ts'
export type { ReadOptions } from './media/media-error.ts'
export { Thread, type ThreadJSON, type ThreadOptions } from './thread.ts'
export { messageFromJSON, messageToJSON, type MessageJSON } from './message-json.ts'
export {
  tool,
  ToolArgumentError,
  type DefinedTool,
  type ToolDefinition,
  type ToolSchema,
} from './define-tool.ts'
export { ResultStream } from './result-stream.ts'
export { defineVendor } from './vendors/define-vendor.ts'
export type * from './vendors/define-vendor.ts'
export type { VendorEndpoint } from './transport/endpoint.ts'
