import type {
  UppDocumentBlock,
  UppDocumentSource,
  UppImageBlock,
  UppImageSource,
  UppMediaBlock,
  UppMetadata,
  UppNativeBlock,
  UppReasoningBlock,
  UppTextBlock,
} from '@skein/base'

/** Vendor data, with one key per provider name (UPP §5.6.5). Unknown fields are kept unchanged. */
export type ProviderMetadata = UppMetadata

/** Plain text. */
export type TextBlock = UppTextBlock

/** The reasoning that a model produced before its answer. */
export type ReasoningBlock = UppReasoningBlock

/** Where the data of an image is. */
export type ImageSource = UppImageSource<Uint8Array>

/** An image; `Image` makes one from any source. */
export type ImageBlock = UppImageBlock<Uint8Array>

/** Where the data of a document is. */
export type DocumentSource = UppDocumentSource

/** A document; `Document` makes one from any source. */
export type DocumentBlock = UppDocumentBlock

/** An audio recording; `Audio` makes one from any source. */
export type AudioBlock = UppMediaBlock<Uint8Array, 'audio'>

/** A video; `Video` makes one from any source. */
export type VideoBlock = UppMediaBlock<Uint8Array, 'video'>

/** Arbitrary bytes. Allowed in user content only (UPP §6.5). */
export type BinaryBlock = UppMediaBlock<Uint8Array, 'binary'>

/** A vendor block with no UPP equivalent. */
export type NativeBlock = UppNativeBlock

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
