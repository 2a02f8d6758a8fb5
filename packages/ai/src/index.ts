export { ai, ai as default } from './ai.ts'
export { llm, type InferOptions, type LLMInstance, type LLMOptions, type ToolRun } from './llm.ts'
export * from './embedding.ts'
export * from './image.ts'
export type * from './contract/content.ts'
export { ContentBlockType } from './contract/content.ts'
export {
  ErrorCode,
  isUPPError,
  Modality,
  UPPError,
  type UPPErrorOptions,
} from './contract/error.ts'
export * from './contract/event.ts'
export * from './contract/message.ts'
export { messageFromJSON, messageToJSON } from './contract/message-json.ts'
export type { MessageJSON } from '@skein/base'
export type * from './contract/middleware.ts'
export * from './contract/provider.ts'
export { Thread, type ThreadJSON, type ThreadOptions } from './contract/thread.ts'
export {
  defer,
  deny,
  isDeferred,
  isDenied,
  TOOL_RISKS,
  type AfterCallResult,
  type ApprovalResult,
  type BeforeCallResult,
  type Deferred,
  type DeferRequest,
  type Denied,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolExecution,
  type ToolOutcome,
  type ToolResult,
  type ToolRisk,
  type ToolUseStrategy,
} from './contract/tool.ts'
export {
  addUsage,
  zeroUsage,
  type OpenCall,
  type TokenUsage,
  type Turn,
  type Warning,
} from './contract/turn.ts'
export { Audio, Document, Image, Video } from './media/media.ts'
export type { MediaReadOptions } from './media/media-type.ts'
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
export {
  deriveTool,
  tool,
  ToolArgumentError,
  wantsContext,
  withToolContext,
  type DefinedTool,
  type ToolDeclaration,
  type ToolSchema,
} from './tools/define.ts'
export {
  executeTools,
  succeededTools,
  type BatchResult,
  type ToolBatch,
  type ToolExecutionEvent,
} from './tools/executor.ts'
export { ToolResultError, toResultJson } from './tools/result.ts'
export type { VendorEndpoint } from './transport/endpoint.ts'
export { DynamicKey, RoundRobinKeys, WeightedKeys, type WeightedKey } from './transport/keys.ts'
export {
  ExponentialBackoff,
  judgeRetry,
  LinearBackoff,
  NoRetry,
  type ExponentialBackoffOptions,
  type LinearBackoffOptions,
  type RetryLimits,
  type RetryVerdict,
} from './transport/retry.ts'
export { BatchReader, ResultStream, StreamResult, type BatchSource } from './turn/batch-reader.ts'
export { messageEvents } from './turn/fold-message.ts'
export type { History, InferenceInput, Structure } from './turn/request.ts'
export { defineVendor } from './vendors/define-vendor.ts'
export type * from './vendors/define-vendor.ts'
