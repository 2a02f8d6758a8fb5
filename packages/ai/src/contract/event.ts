import type { JsonObject } from '@skein/base'
import type { ProviderMetadata } from './content.ts'
import type { ToolTypes } from './tool-types.ts'
import type { Source, TokenUsage, Warning } from './turn.ts'

/**
 * One event of a stream. Every vendor format is decoded into these events, for a whole response as for a
 * stream, and all other code reads only them:
 *
 *     message_start (content_block_start delta* content_block_stop)* message_stop
 *     (tool_execution_start tool_execution_end)*        interleaved live, between two messages
 *
 * `index` is the position of the block in its message. It starts at 0 with each `message_start` and is never
 * used twice in a message; blocks may interleave. Tool execution events carry the index of the call's block.
 * An empty block still has a start and a stop event. `Calls` has the types of tool results.
 */
export type StreamEvent<Calls extends ToolTypes = ToolTypes> =
  | MessageStartEvent
  | ContentBlockStartEvent
  | TextDeltaEvent
  | ReasoningDeltaEvent
  | ObjectDeltaEvent
  | MediaDeltaEvent
  | ToolCallDeltaEvent
  | ContentBlockStopEvent
  | MessageStopEvent
  | ToolExecutionStartEvent
  | ToolExecutionEndEvent<Calls>

/** A message begins. */
export interface MessageStartEvent {
  readonly type: 'message_start'
  readonly index: 0
  /** The model that answers. `id` is the vendor's response id; the UPP message has a separate id. */
  readonly delta: {
    readonly provider?: string
    readonly model?: string
    readonly id?: string
  }
}

/** The kind of block that a stream is building. */
export type BlockKind =
  'text' | 'reasoning' | 'object' | 'image' | 'audio' | 'video' | 'tool_call' | 'native'

/** A block begins; later events of the block have the same index. */
export interface ContentBlockStartEvent {
  readonly type: 'content_block_start'
  readonly index: number
  readonly delta: {
    readonly block: BlockKind
    /** `toolCallId` and `toolName` are set when `block` is `tool_call`. */
    readonly toolCallId?: string
    readonly toolName?: string
    /** Set when `block` is `native`: the vendor's name of the block. */
    readonly name?: string
    /** The vendor's id of the item that the block is, where its format announces one (OpenAI's Responses). */
    readonly itemId?: string
  }
}

/** A piece of text. */
export interface TextDeltaEvent {
  readonly type: 'text_delta'
  readonly index: number
  readonly delta: { readonly text: string }
}

/** A piece of reasoning. */
export interface ReasoningDeltaEvent {
  readonly type: 'reasoning_delta'
  readonly index: number
  readonly delta: { readonly text: string }
}

/**
 * A piece of the JSON text of a structured answer. With `structure`, text events are converted to this event.
 */
export interface ObjectDeltaEvent {
  readonly type: 'object_delta'
  readonly index: number
  readonly delta: { readonly text: string }
}

/** Bytes of an image, audio or video, in order. */
export interface MediaDeltaEvent {
  readonly type: 'image_delta' | 'audio_delta' | 'video_delta'
  readonly index: number
  readonly delta: {
    readonly data: Uint8Array
    readonly mimeType: string
    /** True for a preview, which later data replaces; it is not part of the message. */
    readonly isPartial?: boolean
    /** Set instead of bytes when the vendor answers with an address (images only). */
    readonly url?: string
  }
}

/** A piece of a call's arguments as JSON text. A call without arguments may send an empty piece. */
export interface ToolCallDeltaEvent {
  readonly type: 'tool_call_delta'
  readonly index: number
  readonly delta: {
    readonly toolCallId: string
    readonly toolName: string
    readonly argumentsJson: string
  }
}

/** A block is complete. */
export interface ContentBlockStopEvent {
  readonly type: 'content_block_stop'
  readonly index: number
  /** `metadata` of the finished block or tool call. */
  readonly delta: { readonly metadata?: ProviderMetadata }
}

/** The message is complete. A stream that ends without this event was cut off. */
export interface MessageStopEvent {
  readonly type: 'message_stop'
  readonly index: 0
  readonly delta: {
    readonly stopReason: StopReason
    /** The vendor's own stop reason. */
    readonly rawStopReason?: string
    readonly usage: TokenUsage
    /** `metadata` of the finished message. */
    readonly metadata?: ProviderMetadata
    readonly warnings?: readonly Warning[]
    /** The sources that the message cites, one entry for each citation; `turn.sources` has each source once. */
    readonly sources?: readonly Source[]
  }
}

/** A tool starts now. */
export interface ToolExecutionStartEvent {
  readonly type: 'tool_execution_start'
  readonly index: number
  readonly delta: {
    readonly toolCallId: string
    readonly toolName: string
    readonly arguments: JsonObject
    /** Milliseconds since the epoch. */
    readonly timestamp: number
  }
}

/** A tool has ended, or its call was refused. */
export interface ToolExecutionEndEvent<Calls extends ToolTypes = ToolTypes> {
  readonly type: 'tool_execution_end'
  readonly index: number
  readonly delta: Calls['end']
}

/** The `delta` of any event (UPP §9.2). */
export type EventDelta = StreamEvent['delta']

/** The types of events by name (UPP §9.2). */
export const StreamEventType = {
  TextDelta: 'text_delta',
  ReasoningDelta: 'reasoning_delta',
  ImageDelta: 'image_delta',
  AudioDelta: 'audio_delta',
  VideoDelta: 'video_delta',
  ObjectDelta: 'object_delta',
  ToolCallDelta: 'tool_call_delta',
  ToolExecutionStart: 'tool_execution_start',
  ToolExecutionEnd: 'tool_execution_end',
  MessageStart: 'message_start',
  MessageStop: 'message_stop',
  ContentBlockStart: 'content_block_start',
  ContentBlockStop: 'content_block_stop',
} as const
/** The type of an event. */
export type StreamEventType = StreamEvent['type']

/** Why an inference ended, in one vocabulary for all vendors. */
export const StopReason = {
  EndTurn: 'end_turn',
  MaxTokens: 'max_tokens',
  StopSequence: 'stop_sequence',
  ToolUse: 'tool_use',
  /** The vendor expects the same conversation again in order to continue (Anthropic `pause_turn`). */
  Pause: 'pause',
  Refusal: 'refusal',
  ContentFilter: 'content_filter',
  ContextWindow: 'context_window',
  Other: 'other',
} as const
/** Why an inference ended. */
export type StopReason = (typeof StopReason)[keyof typeof StopReason]
