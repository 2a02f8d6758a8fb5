/**
 * The objects of ThreadProtocol 2.0.0, with the names of the specification.
 *
 * The types allow two things that the specification does not, because threads contain Pydantic AI data
 * unchanged: fields that Pydantic AI writes as `null` may be `null`, and its additional part kinds are
 * members of `MessagePart`. Documents may contain fields and parts that have no type here; reading and
 * writing a thread keeps them. `schema.ts` and `validate.ts` repeat the shape of these types.
 */
import type { MessagePart } from './part.ts'

/** One conversation: its agents, and its turns in order. */
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
  /** The id of the thread from which this thread was forked, or by which it was created. */
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
  /** The reference under which a config store keeps the agent's configuration. */
  readonly config_ref?: string | null
}

/** A turn: a person's input, or one run of an agent. */
export type Turn = UserTurn | AgentTurn

/** A person's input. It is the request that starts the following run, so the AgentTurn does not repeat it. */
export interface UserTurn extends PydanticRequestFields {
  readonly turn_type: 'user'
  /** ISO 8601. */
  readonly submitted_at: string
  readonly parts: readonly MessagePart[]
  readonly turn_id?: string
  /** The person's id, when there are several people. */
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

/** Fields of a Pydantic AI message that keep their names in the thread, on a message or on a UserTurn. */
export interface PydanticRequestFields {
  readonly run_id?: string | null
  readonly conversation_id?: string | null
  readonly metadata?: { readonly [key: string]: unknown } | null
  readonly state?: string
  /** The instructions as text, only when the importer was asked to keep them in the thread. */
  readonly instructions?: string | null
  /** The config-store reference that replaces `instructions`. */
  readonly instructions_ref?: string
  /** The original positions of system prompts among the parts. */
  readonly system_prompts?: readonly SystemPromptMark[]
  /** Present on every message that came from Pydantic AI; records what the import changed in it. */
  readonly pydantic_ai?: PydanticOrigin
}

/**
 * The original position of a system prompt that was moved to the config store: before the part that is now at
 * index `at`.
 */
export interface SystemPromptMark {
  /** Index among the stored parts, counted without system prompts. */
  readonly at: number
  /** The prompt part with `content` replaced by `content_ref`; other fields are unchanged. */
  readonly prompt: { readonly content_ref?: string; readonly [key: string]: unknown }
  /**
   * The reference of the whole prompt part as JSON text. Used instead of `prompt.content_ref` when `content`
   * could not be replaced.
   */
  readonly part_ref?: string
}

/** The changes that an import from Pydantic AI made to one message. Empty when only names changed. */
export interface PydanticOrigin {
  /**
   * The source timestamp, when it was `null` or not a time. The timestamp in the thread was then derived or
   * generated.
   */
  readonly timestamp?: unknown
  /** Fields that the thread requires but the source did not have. */
  readonly absent?: readonly string[]
  /** Indices of parts that were stored unchanged because their field names clash with the thread's. */
  readonly verbatim?: readonly number[]
  /** Source fields whose names the thread itself uses. */
  readonly fields?: { readonly [key: string]: unknown }
  /** The order of the source's keys; set when `fields` is set. */
  readonly keys?: readonly string[]
}

/** An event that is not part of the exchange with a model. */
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

/**
 * Token counts and cost. The specification defines the first four fields, Pydantic AI the others. In Pydantic
 * AI, a total includes its parts: `input_tokens` includes `cache_read_tokens`.
 */
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
  /** A decimal number as text. */
  readonly cost?: string | number | null
}

/** Why a response ended. */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_call' | 'error'

/**
 * A file that belongs to a conversation, for hosts that list attachments. No other object of ThreadProtocol
 * refers to it.
 */
export interface Attachment {
  readonly name: string
  readonly url?: string
  /** Base64. */
  readonly data?: string
  readonly media_type: string
  readonly size_bytes?: number
}
