/**
 * UPP messages as JSON (UPP 1.3.1 §6 and, for the members, UPP 1.2 §8.4): the one set of types for a message that is
 * stored or sent. `@skein/ai` writes and reads them (`messageToJSON`, `messageFromJSON`), events of `@skein/threads`
 * and the runtime's log carry them. The classes of messages that a program works with are in `@skein/ai`.
 */
import type { JsonObject } from './json.ts'

/** Bytes inside JSON: base64 under one key, so that a reader can tell them from text. */
export interface BytesJSON {
  readonly $bytes: string
}

/** Vendor data, one namespace per provider name (UPP §5.6.5). Unknown fields are kept as they came. */
export type MetadataJSON = Readonly<Record<string, JsonObject>>

interface BlockBase {
  /** What a vendor said about this block beyond the fields that UPP names. */
  readonly metadata?: MetadataJSON
}

/** Plain text. */
export interface TextBlockJSON extends BlockBase {
  readonly type: 'text'
  readonly text: string
}

/** What the model thought before it answered. The text is empty when the vendor gave only an opaque block. */
export interface ReasoningBlockJSON extends BlockBase {
  readonly type: 'reasoning'
  readonly text: string
}

/** Where the data of an image is. */
export type ImageSourceJSON =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'bytes'; readonly data: BytesJSON }

/** An image. */
export interface ImageBlockJSON extends BlockBase {
  readonly type: 'image'
  readonly source: ImageSourceJSON
  readonly mimeType: string
}

/** Where the data of a document is. */
export type DocumentSourceJSON =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'text'; readonly data: string }

/** A document, such as a PDF or a page of text. */
export interface DocumentBlockJSON extends BlockBase {
  readonly type: 'document'
  readonly source: DocumentSourceJSON
  readonly mimeType: string
  readonly title?: string
}

/** Sound, film or any other bytes. Only users may send `binary` (UPP §6.5). */
export interface MediaBlockJSON extends BlockBase {
  readonly type: 'audio' | 'video' | 'binary'
  readonly data: BytesJSON
  readonly mimeType: string
}

/** A vendor's block that UPP has no name for. It is replayed to the vendor it came from and skipped by all others. */
export interface NativeBlockJSON {
  readonly type: 'native'
  /** The vendor's own name of the block, e.g. `server_tool_use`. */
  readonly name: string
  readonly metadata: MetadataJSON
}

/** Every content block that a message can hold (UPP §6.5). */
export type ContentBlockJSON =
  | TextBlockJSON
  | ReasoningBlockJSON
  | ImageBlockJSON
  | DocumentBlockJSON
  | MediaBlockJSON
  | NativeBlockJSON

/** A model's request to run a tool. */
export interface ToolCallJSON {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonObject
  /** Set when the text that the model wrote is not one JSON object; `arguments` is then `{}`. */
  readonly invalidArguments?: { readonly text: string; readonly reason: string }
  /** Ids of calls in the same message that must finish first (UAP §8.6). */
  readonly after?: readonly string[]
  readonly metadata?: MetadataJSON
}

/** What one call returned, as the model reads it. */
export interface ToolResultJSON {
  readonly toolCallId: string
  readonly result: unknown
  readonly isError?: boolean
  /** The called tool, so that vendors which match results by name need no look-up. */
  readonly toolName?: string
  readonly metadata?: MetadataJSON
}

interface MessageBase {
  readonly id: string
  /** ISO 8601. */
  readonly timestamp: string
  readonly metadata?: MetadataJSON
}

/** What a person (or the program in that role) wrote. */
export interface UserMessageJSON extends MessageBase {
  readonly type: 'user'
  readonly content: readonly ContentBlockJSON[]
  readonly toolCalls?: undefined
  readonly results?: undefined
}

/** What a model answered: its blocks, and apart from them its tool calls. */
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
 * One message as JSON (UPP 1.2 §8.4). Bytes are `BytesJSON`, the timestamp is ISO 8601. The members of the other kinds
 * are declared as absent, so that a reader may take `toolCalls` and `results` from any message.
 */
export type MessageJSON = UserMessageJSON | AssistantMessageJSON | ToolResultMessageJSON
