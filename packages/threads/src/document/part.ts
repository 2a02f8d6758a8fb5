/**
 * The parts of messages in ThreadProtocol 2.0.0 and Pydantic AI, and the content of prompts. The thread, its
 * turns and its messages are in `thread.ts`.
 */

/** A part of a message: the specification's seven part kinds, and the additional kinds of Pydantic AI. */
export type MessagePart =
  | UserPromptPart
  | TextPart
  | ThinkingPart
  | ToolCallPart
  | ToolReturnPart
  | RetryPromptPart
  | FilePart
  | BuiltinToolCallPart
  | BuiltinToolReturnPart
  | CompactionPart
  | SpeechPart
  | ToolAvailabilityDeltaPart

/** Fields that most response parts of Pydantic AI share. */
export interface ProviderFields {
  readonly id?: string | null
  readonly provider_name?: string | null
  readonly provider_details?: unknown
}

/** Text of a response. */
export interface TextPart extends ProviderFields {
  readonly part_kind: 'text'
  readonly content: string
}

/** The model's thinking. A signature is valid only for the provider that wrote it and is sent to no other. */
export interface ThinkingPart extends ProviderFields {
  readonly part_kind: 'thinking'
  /** Visible thinking text. */
  readonly content?: string | null
  /** Data that only the provider can read, and that it needs to continue the thinking. */
  readonly signature?: string | null
  readonly thinking_id?: string | null
}

/** A tool call that the application runs. */
export interface ToolCallPart extends ProviderFields {
  readonly part_kind: 'tool-call'
  readonly tool_name: string
  readonly tool_call_id: string
  /** An object, the raw argument text, or null; text is kept byte for byte. */
  readonly args: unknown
  readonly tool_kind?: string | null
}

/** The result of a call that the application ran. */
export interface ToolReturnPart {
  readonly part_kind: 'tool-return'
  readonly tool_name: string
  readonly tool_call_id: string
  readonly status: ToolReturnStatus
  readonly content: unknown
  readonly metadata?: unknown
  /** Pydantic AI's own outcome, more precise than `status`. An export uses it instead of `status`. */
  readonly outcome?: ToolReturnOutcome
  readonly tool_kind?: string | null
  readonly timestamp?: string | null
  /** A reference to a large return that is stored elsewhere; `content` is then a preview or null. */
  readonly content_ref?: ContentRef
}

/** Whether a call succeeded, in the words of ThreadProtocol. */
export type ToolReturnStatus = 'success' | 'error' | 'validation_error'

/** How a call ended, in the words of Pydantic AI. */
export type ToolReturnOutcome = 'success' | 'failed' | 'denied' | 'interrupted'

/**
 * A reference to a large value that is stored outside the thread; `hash` proves that the stored bytes are
 * unchanged.
 */
export interface ContentRef {
  readonly uri: string
  readonly size_bytes: number
  readonly hash: string
  readonly media_type: string
}

/**
 * Asks the model to try again. With a tool name the part answers a failed call; without a tool name it
 * answers a rejected response.
 */
export interface RetryPromptPart {
  readonly part_kind: 'retry-prompt'
  readonly content: string | readonly ValidationError[]
  readonly tool_name?: string | null
  readonly tool_call_id?: string | null
  readonly timestamp?: string | null
}

/**
 * One problem that the model is asked to correct, as Pydantic reports it. The specification does not define
 * the fields.
 */
export interface ValidationError {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input?: unknown
  readonly ctx?: { readonly [key: string]: unknown }
  readonly url?: string
}

/** A file that the model created. */
export interface FilePart extends ProviderFields {
  readonly part_kind: 'file'
  /** The specification allows binary content only; files from a UI stream may have only a URL. */
  readonly content: BinaryContent | UrlContent
}

/** A person's input: text and attachments. */
export interface UserPromptPart {
  readonly part_kind: 'user-prompt'
  readonly content: string | readonly UserContent[]
  readonly timestamp?: string | null
}

/** A tool call that the provider ran itself. */
export interface BuiltinToolCallPart extends ProviderFields {
  readonly part_kind: 'builtin-tool-call'
  readonly tool_name: string
  readonly tool_call_id: string
  readonly args: unknown
  readonly tool_kind?: string | null
}

/** The result of a call that the provider ran itself; it is part of the response. */
export interface BuiltinToolReturnPart extends ProviderFields {
  readonly part_kind: 'builtin-tool-return'
  readonly tool_name: string
  readonly tool_call_id: string
  readonly content: unknown
  readonly metadata?: unknown
  readonly status?: ToolReturnStatus
  readonly outcome?: ToolReturnOutcome
  readonly tool_kind?: string | null
  readonly timestamp?: string | null
  /** A reference to a large return that is stored elsewhere; `content` is then a preview or null. */
  readonly content_ref?: ContentRef
}

/** A provider's summary that replaces earlier messages. */
export interface CompactionPart extends ProviderFields {
  readonly part_kind: 'compaction'
  readonly content?: string | null
}

/** Speech: the user's in requests, the model's in responses. */
export interface SpeechPart extends ProviderFields {
  readonly part_kind: 'speech'
  readonly speaker: 'user' | 'assistant'
  readonly transcript?: string | null
  readonly audio?: BinaryContent | null
  readonly interrupted_at_ms?: number | null
}

/** Tools that became available during a run. */
export interface ToolAvailabilityDeltaPart {
  readonly part_kind: 'tool-availability-delta'
  readonly tools_added?: readonly unknown[]
  readonly tool_call_id?: string | null
}

/** One item of a prompt: text, or an object with a `kind`. */
export type UserContent = string | MultiModalContent

/** Every content object of a prompt. */
export type MultiModalContent =
  | ImageUrl
  | AudioUrl
  | DocumentUrl
  | VideoUrl
  | BinaryContent
  | TextContent
  | UploadedFile
  | CachePoint

/** A file given by its URL. */
export type UrlContent = ImageUrl | AudioUrl | DocumentUrl | VideoUrl

interface UrlFields {
  readonly url: string
  /** Short name by which a tool call can refer to the file. */
  readonly identifier: string
  readonly force_download?: boolean | 'allow-local'
  readonly vendor_metadata?: unknown
  readonly media_type?: string | null
}

/** An image given by its URL. */
export interface ImageUrl extends UrlFields {
  readonly kind: 'image-url'
}

/** An audio file given by its URL. */
export interface AudioUrl extends UrlFields {
  readonly kind: 'audio-url'
}

/** A video given by its URL. */
export interface VideoUrl extends UrlFields {
  readonly kind: 'video-url'
}

/** A document given by its URL. */
export interface DocumentUrl extends UrlFields {
  readonly kind: 'document-url'
}

/** A file with its bytes. */
export interface BinaryContent {
  readonly kind: 'binary'
  /** Base64 in either alphabet, stored unchanged (Pydantic AI writes the URL-safe alphabet). */
  readonly data: string
  readonly media_type: string
  readonly identifier: string
  readonly vendor_metadata?: unknown
  /** A reference to bytes that are stored elsewhere; `data` is then empty. */
  readonly content_ref?: ContentRef
}

/** Text with metadata that is not sent to the model (Pydantic AI). */
export interface TextContent {
  readonly kind: 'text-content'
  readonly content: string
  readonly metadata?: unknown
}

/** A file that was uploaded to the provider before (Pydantic AI). */
export interface UploadedFile {
  readonly kind: 'uploaded-file'
  readonly file_id: string
  readonly provider_name: string
  readonly identifier?: string | null
  readonly media_type?: string | null
  readonly vendor_metadata?: unknown
}

/** Asks the provider to cache the prompt up to this item (Pydantic AI). */
export interface CachePoint {
  readonly kind: 'cache-point'
  readonly ttl?: '5m' | '1h' | (string & {})
}
