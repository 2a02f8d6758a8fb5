import { encodeBase64 } from '@skein/base'
import type { ImageBlock, ImageSource, ProviderMetadata } from '../contract/content.ts'
import { invalidValue } from '../contract/error.ts'
import { strictBase64 } from './bytes.ts'
import {
  base64Bytes,
  checkedType,
  checkedUrl,
  inFamily,
  type MediaReadOptions,
  mediaTypeOfName,
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
