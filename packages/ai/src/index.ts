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
export { deriveTool, wantsContext, withToolContext } from './tools/define.ts'
export {
  executeTools,
  succeededTools,
  type BatchResult,
  type ToolBatch,
  type ToolExecutionEvent,
} from './tools/executor.ts'
export {
  toToolExecution,
  toToolResult,
  type CallPorts,
  type CallSettings,
  type SettledCall,
  type SettledOutcome,
  type ToolAdmission,
  type ToolEffect,
  type ToolGate,
  type ToolHooks,
  type ToolJournal,
} from './tools/call.ts'
export { ToolResultError, toResultJson } from './tools/result.ts'
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
  judgeRetry,
  LinearBackoff,
  NoRetry,
  type ExponentialBackoffOptions,
  type LinearBackoffOptions,
  type RetryLimits,
  type RetryVerdict,
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
} from './tools/define.ts'
export { ResultStream } from './result-stream.ts'
export { defineVendor } from './vendors/define-vendor.ts'
export type * from './vendors/vendor.ts'
export type { VendorEndpoint } from './transport/endpoint.ts'
