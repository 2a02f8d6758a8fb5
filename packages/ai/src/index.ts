export { ai, ai as default } from './ai.ts'
export { llm, type LLMInstance, type DataOf, type LLMOptions, type Validated } from './llm.ts'
export {
  embedding,
  type BoundEmbeddingModel,
  type Embedding,
  type EmbeddingHandler,
  type EmbeddingInput,
  type EmbeddingInstance,
  type EmbeddingOptions,
  type EmbeddingProgress,
  type EmbeddingRequest,
  type EmbeddingResult,
  type EmbeddingStream,
  type EmbeddingUsage,
} from './embedding.ts'
export {
  image,
  type ImageCapabilities,
  type GeneratedImage,
  type ImageUsage,
  type ImageResult,
  type ImageRequest,
  type ImageStream,
  type ImageStreamEvent,
  type ImageHandler,
  type BoundImageModel,
  type ImageOptions,
  type ImageInstance,
} from './image.ts'
export type {
  TextBlock,
  ReasoningBlock,
  ImageSource,
  ImageBlock,
  DocumentSource,
  DocumentBlock,
  AudioBlock,
  VideoBlock,
  BinaryBlock,
  UserContent,
  AssistantContent,
  ContentBlock,
} from './contract/content.ts'
export { ContentBlockType } from './contract/content.ts'
export {
  ErrorCode,
  isUPPError,
  Modality,
  UPPError,
  type UPPErrorOptions,
} from './contract/error.ts'
export type { DataIssue, DeepPartial, Unchecked, UncheckedData } from './contract/structure.ts'
export { StreamEventType, StopReason, type StreamEvent, type EventDelta } from './contract/event.ts'
export {
  AssistantMessage,
  MessageRole,
  ToolResultMessage,
  UserMessage,
  isAssistantMessage,
  isMessage,
  isToolResultMessage,
  isUserMessage,
  type Message,
  type MessageOptions,
  type MessageType,
} from './contract/message.ts'
export { messageFromJSON, messageToJSON } from './contract/message-json.ts'
export type { MessageJSON } from '@skein/base'
export { hasModelHooks } from './contract/middleware.ts'
export type {
  AnyRequest,
  AnyResponse,
  MiddlewareContext,
  StreamContext,
  Middleware,
} from './contract/middleware.ts'
export {
  createProvider,
  type Params,
  type Settings,
  type ToolChoice,
  type ModelReference,
  type Provider,
  type LLMCapabilities,
  type BoundLLMModel,
  type LLMRequest,
  type ProviderConfig,
  type Timeouts,
  type Fetch,
  type KeyStrategy,
  type RetryStrategy,
} from './contract/provider.ts'
export { Thread, type ThreadJSON } from './contract/thread.ts'
export {
  defer,
  deny,
  isDeferred,
  isDenied,
  type ApprovalResult,
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
export type { ToolEnd, TypesOf } from './contract/tool-types.ts'
export {
  type OpenCall,
  type Source,
  type TokenUsage,
  type Turn,
  type Warning,
} from './contract/turn.ts'
export { Audio, Video } from './media/byte-media.ts'
export { Image } from './media/image.ts'
export { Document } from './media/document.ts'
export type { VendorFile } from './media/vendor-file.ts'
export { loggingMiddleware, LogLevel, type Logger } from './middleware/logging.ts'
export {
  parsedObjectMiddleware,
  type ParsedEventDelta,
  type ParsedStreamEvent,
} from './middleware/parsed-object.ts'
export {
  type CallPorts,
  type LateOutcome,
  type SettledOutcome,
  type ToolAdmission,
  type ToolEffect,
  type ToolGate,
  type ToolJournal,
} from './tools/call-ports.ts'
export { type SettledCall } from './tools/outcome.ts'
export { tool, withToolContext, type DefinedTool, type ToolDeclaration } from './tools/define.ts'
export {
  ToolArgumentError,
  type SchemaArguments,
  type SchemaArgumentsOptions,
  type ToolSchema,
} from './tools/arguments.ts'
export { executeTools, type BatchResult, type ToolBatch } from './tools/executor.ts'
export { ToolResultError, toResultJson } from './tools/result.ts'

export { DynamicKey, RoundRobinKeys, WeightedKeys } from './transport/keys.ts'
export { ExponentialBackoff, LinearBackoff, NoRetry } from './transport/retry.ts'
export { partials, StreamResult } from './turn/batch-reader.ts'
export type { History, InferenceInput } from './turn/to-messages.ts'
export { defineVendor, type Vendor } from './vendors/define-vendor.ts'
