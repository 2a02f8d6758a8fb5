import type { JsonObject } from '@skein/base'

/** Vendor data, with one key per provider name (UPP §5.6.5). Unknown fields are kept unchanged. */
export type ProviderMetadata = Readonly<Record<string, JsonObject>>

interface BlockBase {
  /**
   * Vendor data of this block that has no UPP field. The code of a vendor format stores the unchanged vendor
   * block here as `{ [provider]: { api, native } }` and sends it back to the same vendor.
   */
  readonly metadata?: ProviderMetadata
}

/** Plain text. */
export interface TextBlock extends BlockBase {
  readonly type: 'text'
  readonly text: string
}

/** The reasoning that a model produced before its answer. */
export interface ReasoningBlock extends BlockBase {
  readonly type: 'reasoning'
  /** Empty when the vendor returned the reasoning only redacted or encrypted. */
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

/** An audio recording; `Audio` makes one from any source. */
export interface AudioBlock extends BlockBase {
  readonly type: 'audio'
  readonly data: Uint8Array
  readonly mimeType: string
}

/** A video; `Video` makes one from any source. */
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
 * A vendor block with no UPP equivalent (a server tool call, its result, a compaction …). It keeps its
 * position so that the conversation can be sent back to the same vendor. Other vendors skip it.
 */
export interface NativeBlock {
  readonly type: 'native'
  /** The vendor's own name of the block, e.g. `server_tool_use`. */
  readonly name: string
  readonly metadata: ProviderMetadata
}

/** The blocks that a user message may contain (UPP §6.2). */
export type UserContent =
  TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | BinaryBlock

/** The blocks that an assistant message may contain (UPP §6.3). */
export type AssistantContent =
  TextBlock | ReasoningBlock | ImageBlock | AudioBlock | VideoBlock | NativeBlock

/** Any block of any message (UPP §6.5). */
export type ContentBlock = UserContent | AssistantContent

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

/** The type of a block. */
export type ContentBlockType = (typeof ContentBlockType)[keyof typeof ContentBlockType]
