/**
 * The objects of ThreadProtocol 2.0.0, named as the specification names them.
 *
 * Two things widen the letter of the specification, both because threads carry Pydantic AI data untouched: fields that
 * Pydantic AI writes as `null` may be `null` here, and its further part kinds are members of `MessagePart`.
 * At run time any object may hold fields, and any list parts, that no type names: they are kept.
 */

/** One conversation: who took part, and what happened in order. */
export interface Thread {
  readonly version: '2.0.0'
  readonly thread_id: string
  /** ISO 8601. */
  readonly created_at: string
  /** ISO 8601. */
  readonly updated_at: string
  readonly title?: string
  readonly metadata?: { readonly [key: string]: unknown }
  /** Registry of agents; each key equals the entry's `agent_id`. */
  readonly agents: { readonly [agentId: string]: AgentConfig }
  readonly turns: readonly Turn[]
  /** The thread this one was forked from or spawned by. */
  readonly parent_thread_id?: string
  /** Outgoing links to other threads. */
  readonly relationships?: ThreadRelationships
}

/** Outgoing links of a thread. */
export interface ThreadRelationships {
  readonly links: readonly ThreadLink[]
}

/** One outgoing link, for example `{ thread_id, relation: 'fork' }`. */
export interface ThreadLink {
  readonly thread_id: string
  readonly relation: string
  readonly metadata?: { readonly [key: string]: unknown }
}

/** An entry of the agent registry. Prompts and tools are configured elsewhere. */
export interface AgentConfig {
  readonly agent_id: string
  readonly agent_name: string
  readonly model_name?: string | null
  readonly provider_name?: string | null
  /** ISO 8601. */
  readonly created_at: string
  /** Reference into a config store. */
  readonly config_ref?: string | null
}

/** What a person submitted, or one run of an agent. */
export type Turn = UserTurn | AgentTurn

/** What a person submitted. It is the request that starts the following run, so no AgentTurn repeats it. */
export interface UserTurn extends PydanticRequestFields {
  readonly turn_type: 'user'
  /** ISO 8601. */
  readonly submitted_at: string
  readonly parts: readonly MessagePart[]
  readonly turn_id?: string
  /** Which person, when there are several. */
  readonly user_id?: string
  readonly name?: string
  /** Data of the client, such as its own message id; never sent to a model. */
  readonly client_metadata?: { readonly [key: string]: unknown }
}

/** One `agent.run()`. */
export interface AgentTurn {
  readonly turn_type: 'agent'
  readonly agent_id: string
  /** ISO 8601, start of the run. */
  readonly started_at: string
  /** ISO 8601, end of the run. */
  readonly completed_at: string
  readonly messages: readonly (ThreadMessage | SystemMessage)[]
  readonly total_usage?: Usage | null
  readonly turn_id?: string
  readonly completion_status?: 'complete' | 'interrupted'
  readonly interruption?: Interruption
}

/** Why and when a turn was cut short. */
export interface Interruption {
  readonly reason:
    'user_cancelled' | 'timeout' | 'network_failure' | 'safety_halt' | 'error' | (string & {})
  /** ISO 8601. */
  readonly interrupted_at: string
}

/** One request to, or response from, a model. */
export interface ThreadMessage extends PydanticRequestFields {
  readonly message_type: 'request' | 'response'
  /** ISO 8601. */
  readonly timestamp: string
  readonly parts: readonly MessagePart[]
  readonly agent_id: string
  readonly model_name?: string | null
  readonly provider_name?: string | null
  readonly provider_response_id?: string | null
  readonly usage?: Usage | null
  readonly finish_reason?: FinishReason | null
  readonly provider_url?: string | null
  readonly provider_details?: unknown
}

/** Message fields of Pydantic AI that travel under their own names, on a message or on the UserTurn it became. */
export interface PydanticRequestFields {
  readonly run_id?: string | null
  readonly conversation_id?: string | null
  readonly metadata?: { readonly [key: string]: unknown } | null
  readonly state?: string
  /** Rendered instructions, only when the importer was asked to keep them inline. */
  readonly instructions?: string | null
  /** Config-store reference that stands where `instructions` stood. */
  readonly instructions_ref?: string
  /** Where system prompts stood among the parts. */
  readonly system_prompts?: readonly SystemPromptMark[]
  /** Present on everything that came from Pydantic AI; says what the thread had to change. */
  readonly pydantic_ai?: PydanticOrigin
}

/** The place of one system prompt: it stood before the part that is now at `at`. */
export interface SystemPromptMark {
  /** Index among the stored parts, counted without system prompts. */
  readonly at: number
  /** The prompt part with `content` replaced by `content_ref`; other fields as they were. */
  readonly prompt: { readonly content_ref?: string; readonly [key: string]: unknown }
  /** Instead of `prompt.content_ref`, when the part could not be taken apart: reference of its whole JSON text. */
  readonly part_ref?: string
}

/** What an import from Pydantic AI changed in one message. Empty when nothing but names changed. */
export interface PydanticOrigin {
  /** `null` when the source timestamp was null. The stored one is synthesised. */
  readonly timestamp?: unknown
  /** Source fields that were absent although the thread needs them. */
  readonly absent?: readonly string[]
  /** Parts (by index) that were stored as found because their field names clash with the thread's. */
  readonly verbatim?: readonly number[]
  /** Source fields whose names the thread uses for itself. */
  readonly fields?: { readonly [key: string]: unknown }
  /** Order of the source's keys, when `fields` is set. */
  readonly keys?: readonly string[]
}

/** The specification's seven part kinds, and the further ones of Pydantic AI. */
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

/** What the model thought. A signature belongs to the provider that wrote it and is sent to no other. */
export interface ThinkingPart extends ProviderFields {
  readonly part_kind: 'thinking'
  /** Visible thinking text. */
  readonly content?: string | null
  /** Opaque provider reference. */
  readonly signature?: string | null
  readonly thinking_id?: string | null
}

/** A call that the application runs. */
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
  /** Pydantic AI's own state, finer than `status`; it wins on export. */
  readonly outcome?: ToolReturnOutcome
  readonly tool_kind?: string | null
  readonly timestamp?: string | null
  /** Where a large return is kept; `content` is then a preview or null. */
  readonly content_ref?: ContentRef
}

/** Whether a call succeeded, in the words of ThreadProtocol. */
export type ToolReturnStatus = 'success' | 'error' | 'validation_error'

/** How a call ended, in the words of Pydantic AI. */
export type ToolReturnOutcome = 'success' | 'failed' | 'denied' | 'interrupted'

/** A large value kept outside the thread, addressed by its hash. */
export interface ContentRef {
  readonly uri: string
  readonly size_bytes: number
  readonly hash: string
  readonly media_type: string
}

/** Asks the model to try again: a failed call when it names a tool, else an answer that was rejected. */
export interface RetryPromptPart {
  readonly part_kind: 'retry-prompt'
  readonly content: string | readonly ValidationError[]
  readonly tool_name?: string | null
  readonly tool_call_id?: string | null
  readonly timestamp?: string | null
}

/** One problem that the model is asked to mend (Pydantic's error details; the specification leaves it open). */
export interface ValidationError {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input?: unknown
  readonly ctx?: { readonly [key: string]: unknown }
  readonly url?: string
}

/** A file that the model made. */
export interface FilePart extends ProviderFields {
  readonly part_kind: 'file'
  /** Binary per the specification; files seen in a UI stream may be known by URL only. */
  readonly content: BinaryContent | UrlContent
}

/** What a person wrote or attached. */
export interface UserPromptPart {
  readonly part_kind: 'user-prompt'
  readonly content: string | readonly UserContent[]
  readonly timestamp?: string | null
}

/** A call that the provider ran itself. */
export interface BuiltinToolCallPart extends ProviderFields {
  readonly part_kind: 'builtin-tool-call'
  readonly tool_name: string
  readonly tool_call_id: string
  readonly args: unknown
  readonly tool_kind?: string | null
}

/** The result of a call that the provider ran itself; it stands in the response. */
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
}

/** A provider's summary that stands for earlier messages. */
export interface CompactionPart extends ProviderFields {
  readonly part_kind: 'compaction'
  readonly content?: string | null
}

/** Spoken words: the user's in requests, the model's in responses. */
export interface SpeechPart extends ProviderFields {
  readonly part_kind: 'speech'
  readonly speaker: 'user' | 'assistant'
  readonly transcript?: string | null
  readonly audio?: BinaryContent | null
  readonly interrupted_at_ms?: number | null
}

/** Tools that became available in mid-run. */
export interface ToolAvailabilityDeltaPart {
  readonly part_kind: 'tool-availability-delta'
  readonly tools_added?: readonly unknown[]
  readonly tool_call_id?: string | null
}

/** An event outside the exchange with a model. */
export interface SystemMessage {
  readonly message_type: 'system'
  /** ISO 8601. */
  readonly timestamp: string
  readonly event_type: SystemEventType
  readonly event_data: unknown
  readonly source_agent?: string | null
  readonly target_agents?: readonly string[] | null
}

/** The specification's event names; any other string is legal. */
export type SystemEventType =
  | 'agent.handoff'
  | 'tool.grant'
  | 'tool.revoke'
  | 'state.update'
  | 'ui.update'
  | 'context.switch'
  | (string & {})

/** Token counts. The first four are the specification's; the others are Pydantic AI's, where totals are inclusive. */
export interface Usage {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly thinking_tokens?: number
  readonly total_tokens?: number
  readonly cache_write_tokens?: number
  readonly cache_read_tokens?: number
  readonly input_audio_tokens?: number
  readonly cache_audio_read_tokens?: number
  readonly output_audio_tokens?: number
  readonly details?: { readonly [name: string]: number } | null
  /** Decimal text. */
  readonly cost?: string | number | null
}

/** Why a response ended. */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_call' | 'error'

/** One item of a prompt: text, or an object known by its `kind`. */
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

/** A file that is known by its address. */
export type UrlContent = ImageUrl | AudioUrl | DocumentUrl | VideoUrl

interface UrlFields {
  readonly url: string
  /** For tool references. */
  readonly identifier: string
  readonly force_download?: boolean | 'allow-local'
  readonly vendor_metadata?: unknown
  readonly media_type?: string | null
}

/** An image by address. */
export interface ImageUrl extends UrlFields {
  readonly kind: 'image-url'
}

/** Sound by address. */
export interface AudioUrl extends UrlFields {
  readonly kind: 'audio-url'
}

/** A film by address. */
export interface VideoUrl extends UrlFields {
  readonly kind: 'video-url'
}

/** A document by address. */
export interface DocumentUrl extends UrlFields {
  readonly kind: 'document-url'
}

/** A file with its bytes. */
export interface BinaryContent {
  readonly kind: 'binary'
  /** Base64 in either alphabet, kept as found (Pydantic AI writes the URL-safe one). */
  readonly data: string
  readonly media_type: string
  readonly identifier: string
  readonly vendor_metadata?: unknown
}

/** Text with metadata that is not sent to the model (Pydantic AI). */
export interface TextContent {
  readonly kind: 'text-content'
  readonly content: string
  readonly metadata?: unknown
}

/** A file the provider already holds (Pydantic AI). */
export interface UploadedFile {
  readonly kind: 'uploaded-file'
  readonly file_id: string
  readonly provider_name: string
  readonly identifier?: string | null
  readonly media_type?: string | null
  readonly vendor_metadata?: unknown
}

/** Asks the provider to cache the prompt up to here (Pydantic AI). */
export interface CachePoint {
  readonly kind: 'cache-point'
  readonly ttl?: '5m' | '1h' | (string & {})
}

/** For hosts; no object of the protocol refers to it. */
export interface Attachment {
  readonly name: string
  readonly url?: string
  /** Base64. */
  readonly data?: string
  readonly media_type: string
  readonly size_bytes?: number
}
