import type { JsonObject } from '@skein/base'

/** Vendor data, one namespace per provider name (UPP §5.6.5). Unknown fields are kept as they came. */
export type ProviderMetadata = Readonly<Record<string, JsonObject>>

interface BlockBase {
  /**
   * What a vendor said about this block beyond its UPP fields. A wire keeps the verbatim vendor
   * block here as `{ [provider]: { api, native } }` and replays it to the same origin.
   */
  readonly metadata?: ProviderMetadata
}

/** Plain text. */
export interface TextBlock extends BlockBase {
  readonly type: 'text'
  readonly text: string
}

/** What the model thought before it answered. */
export interface ReasoningBlock extends BlockBase {
  readonly type: 'reasoning'
  /** Empty when the vendor only gave an opaque (redacted or encrypted) block. */
  readonly text: string
}

/** Where the data of an image is. */
export type ImageSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'bytes'; readonly data: Uint8Array }

/** An image; `Image` makes one from any source. */
export interface ImageBlock extends BlockBase {
  readonly type: 'image'
  readonly source: ImageSource
  readonly mimeType: string
}

/** Where the data of a document is. */
export type DocumentSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'text'; readonly data: string }

/** A document; `Document` makes one from any source. */
export interface DocumentBlock extends BlockBase {
  readonly type: 'document'
  readonly source: DocumentSource
  readonly mimeType: string
  readonly title?: string
}

/** Sound; `Audio` makes one from any source. */
export interface AudioBlock extends BlockBase {
  readonly type: 'audio'
  readonly data: Uint8Array
  readonly mimeType: string
}

/** Film; `Video` makes one from any source. */
export interface VideoBlock extends BlockBase {
  readonly type: 'video'
  readonly data: Uint8Array
  readonly mimeType: string
}

/** Arbitrary bytes. Allowed in user content only (UPP §6.5). */
export interface BinaryBlock extends BlockBase {
  readonly type: 'binary'
  readonly data: Uint8Array
  readonly mimeType: string
}

/**
 * A vendor block with no UPP equivalent (a server tool call, its result, a compaction …), kept in
 * its place so that the conversation can be replayed to its origin. Other vendors skip it.
 */
export interface NativeBlock {
  readonly type: 'native'
  /** The vendor's own name of the block, e.g. `server_tool_use`. */
  readonly name: string
  readonly metadata: ProviderMetadata
}

/** What a user message may hold (UPP §6.2). */
export type UserContent =
  TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | BinaryBlock

/** What an assistant message may hold (UPP §6.3). */
export type AssistantContent =
  TextBlock | ReasoningBlock | ImageBlock | AudioBlock | VideoBlock | NativeBlock

/** Any block of any message (UPP §6.5). */
export type ContentBlock = UserContent | AssistantContent

/** What a wire stores per block, message or call under `metadata[provider]`. */
export interface NativeMetadata extends JsonObject {
  /** The wire that produced it: replay happens only to the same provider and wire. */
  readonly api: string
}

/** The types of blocks by name. */
export const ContentBlockType = {
  Text: 'text',
  Reasoning: 'reasoning',
  Image: 'image',
  Document: 'document',
  Audio: 'audio',
  Video: 'video',
  Binary: 'binary',
  Native: 'native',
} as const
export type ContentBlockType = (typeof ContentBlockType)[keyof typeof ContentBlockType]
