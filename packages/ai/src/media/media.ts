import { encodeBase64 } from '@skein/base'
import type {
  AudioBlock,
  DocumentBlock,
  DocumentSource,
  ImageBlock,
  ImageSource,
  ProviderMetadata,
  VideoBlock,
} from '../contract/content.ts'
import { invalidValue } from '../contract/error.ts'
import { strictBase64 } from './bytes.ts'
import {
  base64Bytes,
  checkDeclared,
  checkedType,
  checkedUrl,
  emptyMedia,
  inFamily,
  mediaTypeOf,
  mediaTypeOfName,
  type MediaReadOptions,
} from './media-type.ts'
import { readFileBytes } from './read-file-node.ts'
import { fileAddress, type VendorFile } from './vendor-file.ts'

/** An image from any source. It is an `ImageBlock` itself, so it can be used directly in a message. */
export class Image implements ImageBlock {
  readonly type = 'image'
  readonly source: ImageSource
  readonly mimeType: string
  declare readonly metadata?: ProviderMetadata

  private constructor(source: ImageSource, mimeType: string, metadata?: ProviderMetadata) {
    this.source = source
    this.mimeType = mimeType
    if (metadata) this.metadata = metadata
    Object.freeze(this)
  }

  /** Without `mimeType` the type is read from the bytes; a given type must match them. */
  static fromBytes(data: Uint8Array, mimeType?: string): Image {
    return new Image({ type: 'bytes', data }, checkedType(data, 'image', { mimeType }))
  }

  static fromBase64(base64: string, mimeType?: string): Image {
    const type = checkedType(base64Bytes(base64), 'image', { mimeType })
    return new Image({ type: 'base64', data: strictBase64(base64) }, type)
  }

  /** Downloads nothing: the vendor gets the address. Without `mimeType` the type is read from its path. */
  static fromUrl(url: string, mimeType?: string): Image {
    const type = mimeType ?? mediaTypeOfName(new URL(checkedUrl(url)).pathname) ?? 'image/*'
    return new Image({ type: 'url', url: checkedUrl(url) }, inFamily(type, 'image'))
  }

  /** An image that was uploaded to a vendor. A request to another vendor fails with a hint. */
  static fromUpload(
    file: VendorFile,
    { mimeType = 'image/*' }: { readonly mimeType?: string } = {},
  ): Image {
    return new Image({ type: 'url', url: fileAddress(file) }, inFamily(mimeType, 'image'))
  }

  static fromBlock({ source, mimeType, metadata }: ImageBlock): Image {
    return new Image(source, mimeType, metadata)
  }

  /** Reads a file, on platforms that have files. */
  static async fromPath(
    path: string,
    { mimeType, maxBytes }: MediaReadOptions = {},
  ): Promise<Image> {
    const data = await readFileBytes(path, maxBytes)
    return new Image({ type: 'bytes', data }, checkedType(data, 'image', { mimeType, name: path }))
  }

  /** Returns the bytes. Throws for an image that has only an address. */
  toBytes(): Uint8Array {
    if (this.source.type === 'bytes') return this.source.data
    if (this.source.type === 'base64') return base64Bytes(this.source.data)
    throw invalidValue(
      'The image is known by its address only; its bytes were not downloaded.',
      'Fetch image.source.url yourself, and mind that the address may expire.',
    )
  }

  toBase64(): string {
    return this.source.type === 'base64' ? this.source.data : encodeBase64(this.toBytes())
  }

  /** Returns a plain block. */
  toBlock(): ImageBlock {
    const { type, source, mimeType, metadata } = this
    return { type, source, mimeType, metadata }
  }
}

/** A document (PDF, text …). It is a `DocumentBlock` itself, so it can be used directly in a message. */
export class Document implements DocumentBlock {
  readonly type = 'document'
  readonly source: DocumentSource
  readonly mimeType: string
  declare readonly title?: string

  private constructor(source: DocumentSource, mimeType: string, title?: string) {
    this.source = source
    this.mimeType = mimeType
    if (title !== undefined) this.title = title
    Object.freeze(this)
  }

  /** Reads a file. Text formats are stored as text, everything else as base64. */
  static async fromPath(
    path: string,
    title?: string,
    { mimeType, maxBytes }: MediaReadOptions = {},
  ): Promise<Document> {
    const bytes = await readFileBytes(path, maxBytes)
    const type = mimeType ?? mediaTypeOf(bytes) ?? mediaTypeOfName(path)
    if (type === undefined) {
      throw invalidValue(`The type of the document ${path} cannot be told.`, 'Pass its MIME type.')
    }
    checkDeclared(bytes, type)
    if (type.startsWith('text/') || type === 'application/json')
      return new Document({ type: 'text', data: textOf(bytes, path) }, type, title)
    return new Document({ type: 'base64', data: encodeBase64(bytes) }, type, title)
  }

  /** Downloads nothing: the vendor gets the address. */
  static fromUrl(url: string, title?: string): Document {
    const address = checkedUrl(url)
    const type = mediaTypeOfName(new URL(address).pathname) ?? 'application/pdf'
    return new Document({ type: 'url', url: address }, type, title)
  }

  /** A document that was uploaded to a vendor. A request to another vendor fails with a hint. */
  static fromUpload(
    file: VendorFile,
    {
      title,
      mimeType = 'application/pdf',
    }: { readonly title?: string; readonly mimeType?: string } = {},
  ): Document {
    return new Document({ type: 'url', url: fileAddress(file) }, mimeType, title)
  }

  static fromBase64(base64: string, mimeType: string, title?: string): Document {
    checkDeclared(base64Bytes(base64), mimeType)
    return new Document({ type: 'base64', data: strictBase64(base64) }, mimeType, title)
  }

  static fromText(text: string, title?: string): Document {
    if (text === '') throw emptyMedia('The text of the document')
    return new Document({ type: 'text', data: text }, 'text/plain', title)
  }

  /** Returns a plain block. */
  toBlock(): DocumentBlock {
    const { type, source, mimeType, title } = this
    return { type, source, mimeType, title }
  }
}

function textOf(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw invalidValue(
      `The document ${path} is not UTF-8 text.`,
      'Convert it, or pass the MIME type of a binary format.',
      cause,
    )
  }
}

/** The common part of `Audio` and `Video`: bytes of a checked type. Frozen. */
abstract class ByteMedia<Kind extends 'audio' | 'video'> {
  readonly type: Kind
  readonly data: Uint8Array
  readonly mimeType: string

  constructor(
    type: Kind,
    data: Uint8Array,
    options: { mimeType?: string | undefined; name?: string },
  ) {
    this.type = type
    this.data = data
    this.mimeType = checkedType(data, type, options)
    Object.freeze(this)
  }

  toBytes(): Uint8Array {
    return this.data
  }

  toBase64(): string {
    return encodeBase64(this.data)
  }

  /** Returns a plain block. */
  toBlock(): { readonly type: Kind; readonly data: Uint8Array; readonly mimeType: string } {
    const { type, data, mimeType } = this
    return { type, data, mimeType }
  }
}

/** Reads a media file, on platforms that have files. */
async function readMedia(
  path: string,
  { mimeType, maxBytes }: MediaReadOptions = {},
): Promise<[Uint8Array, { mimeType: string | undefined; name: string }]> {
  return [await readFileBytes(path, maxBytes), { mimeType, name: path }]
}

/** Audio data. It is an `AudioBlock` itself, so it can be used directly in a message. */
export class Audio extends ByteMedia<'audio'> implements AudioBlock {
  /** Without `mimeType` the type is read from the bytes; a given type must match them. */
  static fromBytes(data: Uint8Array, mimeType?: string): Audio {
    return new Audio('audio', data, { mimeType })
  }

  static fromBase64(base64: string, mimeType?: string): Audio {
    return Audio.fromBytes(base64Bytes(base64), mimeType)
  }

  static async fromPath(path: string, options?: MediaReadOptions): Promise<Audio> {
    return new Audio('audio', ...(await readMedia(path, options)))
  }
}

/** Video data. It is a `VideoBlock` itself, so it can be used directly in a message. */
export class Video extends ByteMedia<'video'> implements VideoBlock {
  /** Without `mimeType` the type is read from the bytes; a given type must match them. */
  static fromBytes(data: Uint8Array, mimeType?: string): Video {
    return new Video('video', data, { mimeType })
  }

  static fromBase64(base64: string, mimeType?: string): Video {
    return Video.fromBytes(base64Bytes(base64), mimeType)
  }

  static async fromPath(path: string, options?: MediaReadOptions): Promise<Video> {
    return new Video('video', ...(await readMedia(path, options)))
  }
}
