import { encodeBase64 } from '@skein/base'
import type { ImageBlock, ImageSource, ProviderMetadata } from '../content.ts'
import { strictBase64 } from '../loose-base64.ts'
import { base64Bytes, checkedType, invalidMedia, type ReadOptions } from './media-error.ts'
import { mediaTypeOfName } from './media-type.ts'
import { readFileBytes } from './read-file-node.ts'
import { checkedUrl } from './remote-url.ts'

/** An image from any source. It is an `ImageBlock` itself, so it can stand in a message as it is. */
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

  /** The type is read from the bytes where it is not given, and must fit them where it is. */
  static fromBytes(data: Uint8Array, mimeType?: string): Image {
    return new Image({ type: 'bytes', data }, checkedType(data, 'image', { mimeType }))
  }

  static fromBase64(base64: string, mimeType?: string): Image {
    const type = checkedType(base64Bytes(base64), 'image', { mimeType })
    return new Image({ type: 'base64', data: strictBase64(base64) }, type)
  }

  /** Nothing is downloaded: the vendor gets the address. */
  static fromUrl(url: string, mimeType?: string): Image {
    const type = mimeType ?? mediaTypeOfName(new URL(checkedUrl(url)).pathname) ?? 'image/*'
    return new Image({ type: 'url', url: checkedUrl(url) }, type)
  }

  static fromBlock({ source, mimeType, metadata }: ImageBlock): Image {
    return new Image(source, mimeType, metadata)
  }

  /** Reads a file, where the platform has files. */
  static async fromPath(path: string, { mimeType, maxBytes }: ReadOptions = {}): Promise<Image> {
    const data = await readFileBytes(path, maxBytes)
    return new Image({ type: 'bytes', data }, checkedType(data, 'image', { mimeType, name: path }))
  }

  /** The bytes. An image that is only known by its address has none. */
  toBytes(): Uint8Array {
    if (this.source.type === 'bytes') return this.source.data
    if (this.source.type === 'base64') return base64Bytes(this.source.data)
    throw invalidMedia(
      'The image is known by its address only; its bytes were not downloaded.',
      'Fetch image.source.url yourself, and mind that the address may expire.',
    )
  }

  toBase64(): string {
    return this.source.type === 'base64' ? this.source.data : encodeBase64(this.toBytes())
  }

  /** A plain block. */
  toBlock(): ImageBlock {
    const { type, source, mimeType, metadata } = this
    return { type, source, mimeType, ...(metadata && { metadata }) }
  }
}
