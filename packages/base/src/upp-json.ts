/**
 * UPP messages as JSON (UPP 1.3.1 §6 and, for the members, UPP 1.2 §8.4): the types of messages that are
 * stored or sent. `@skein/ai` writes and reads them (`messageToJSON`, `messageFromJSON`); events of
 * `@skein/threads` and the runtime's log contain them. The message classes for use in programs are in
 * `@skein/ai`.
 */

import type { JsonObject } from './json.ts'
import type {
  UppDocumentBlock,
  UppImageBlock,
  UppMediaBlock,
  UppMetadata,
  UppNativeBlock,
  UppReasoningBlock,
  UppTextBlock,
} from './upp-blocks.ts'

/** Bytes inside JSON: base64 under one key, so that a reader can distinguish them from text. */
export interface BytesJSON {
  readonly $bytes: string
}

/** Vendor data of a message or block. */
export type MetadataJSON = UppMetadata

/** An image. */
export type ImageBlockJSON = UppImageBlock<BytesJSON>

/** A document. */
export type DocumentBlockJSON = UppDocumentBlock

/** Audio, video or any other bytes. */
export type MediaBlockJSON = UppMediaBlock<BytesJSON>

/** A vendor block that UPP does not define. */
export type NativeBlockJSON = UppNativeBlock

/** Every content block that a message can hold (UPP §6.5). */
export type ContentBlockJSON =
  | UppTextBlock
  | UppReasoningBlock
  | ImageBlockJSON
  | DocumentBlockJSON
  | MediaBlockJSON
  | NativeBlockJSON

/** A model's request to run a tool. */
export interface ToolCallJSON {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonObject
  /** Set when the argument text that the model wrote is not one JSON object; `arguments` is then `{}`. */
  readonly invalidArguments?: { readonly text: string; readonly reason: string }
  /** Ids of calls in the same message that must finish before this call starts (UAP §8.6). */
  readonly after?: readonly string[]
  readonly metadata?: MetadataJSON
}

/** The result of one call, as the model reads it. */
export interface ToolResultJSON {
  readonly toolCallId: string
  readonly result: unknown
  readonly isError?: boolean
  /** The name of the called tool, for vendors that match results with calls by name. */
  readonly toolName?: string
  readonly metadata?: MetadataJSON
}

interface MessageBase {
  readonly id: string
  /** ISO 8601. */
  readonly timestamp: string
  readonly metadata?: MetadataJSON
}

/** A message from a person, or from the program in that role. */
export interface UserMessageJSON extends MessageBase {
  readonly type: 'user'
  readonly content: readonly ContentBlockJSON[]
  readonly toolCalls?: undefined
  readonly results?: undefined
}

/** A model's answer: its content blocks and, separately, its tool calls. */
export interface AssistantMessageJSON extends MessageBase {
  readonly type: 'assistant'
  readonly content: readonly ContentBlockJSON[]
  readonly toolCalls?: readonly ToolCallJSON[]
  readonly results?: undefined
}

/** The results of tool calls. `content` is always empty; writers may leave it out. */
export interface ToolResultMessageJSON extends MessageBase {
  readonly type: 'tool_result'
  readonly content?: readonly ContentBlockJSON[]
  readonly toolCalls?: undefined
  readonly results: readonly ToolResultJSON[]
}

/**
 * One message as JSON (UPP 1.2 §8.4). Bytes are `BytesJSON`, the timestamp is ISO 8601. Each kind declares
 * the members of the other kinds as absent, so that code can read `toolCalls` and `results` of any message.
 */
export type MessageJSON = UserMessageJSON | AssistantMessageJSON | ToolResultMessageJSON
