/**
 * The content blocks of UPP messages (UPP 1.3.1 §6.5). They exist in two forms that differ only in how bytes are
 * held: `Bytes` is `Uint8Array` in a running program and `BytesJSON` in JSON.
 */

import type { JsonObject } from './json.ts'

/** Vendor data, with one key per provider name (UPP §5.6.5). Unknown fields are kept unchanged. */
export type UppMetadata = Readonly<Record<string, JsonObject>>

interface UppBlock {
  /**
   * Vendor data of this block that has no UPP field. The code of a vendor format stores the unchanged vendor
   * block here as `{ [provider]: { api, native } }` and sends it back to the same vendor.
   */
  readonly metadata?: UppMetadata
}

/** Plain text. */
export interface UppTextBlock extends UppBlock {
  readonly type: 'text'
  readonly text: string
}

/** The reasoning that a model produced before its answer. */
export interface UppReasoningBlock extends UppBlock {
  readonly type: 'reasoning'
  /** Empty when the vendor returned the reasoning only redacted or encrypted. */
  readonly text: string
}

/** Where the data of an image is. */
export type UppImageSource<Bytes> =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'bytes'; readonly data: Bytes }

/** An image. */
export interface UppImageBlock<Bytes> extends UppBlock {
  readonly type: 'image'
  readonly source: UppImageSource<Bytes>
  readonly mimeType: string
}

/** Where the data of a document is. */
export type UppDocumentSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'text'; readonly data: string }

/** A document, such as a PDF or a page of text. */
export interface UppDocumentBlock extends UppBlock {
  readonly type: 'document'
  readonly source: UppDocumentSource
  readonly mimeType: string
  readonly title?: string
}

/** Audio, video or any other bytes. Only users may send `binary` (UPP §6.5). */
export interface UppMediaBlock<
  Bytes,
  Type extends 'audio' | 'video' | 'binary' = 'audio' | 'video' | 'binary',
> extends UppBlock {
  readonly type: Type
  readonly data: Bytes
  readonly mimeType: string
}

/**
 * A vendor block with no UPP equivalent (a server tool call, its result, a compaction …). It keeps its
 * position so that the conversation can be sent back to the same vendor. Other vendors skip it.
 */
export interface UppNativeBlock {
  readonly type: 'native'
  /** The vendor's own name of the block, e.g. `server_tool_use`. */
  readonly name: string
  readonly metadata: UppMetadata
}
