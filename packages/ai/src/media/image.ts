import { decodeBase64, encodeBase64 } from '@skein/base'
import type { ImageBlock, ImageSource, ProviderMetadata } from '../content.ts'
import { ErrorCode, UPPError } from '../error.ts'
import { readFileBytes } from './read-file-node.ts'
import { imageTypeOf, imageTypeOfName } from './image-type.ts'

/** An image from any source. It is an `ImageBlock` itself, so it can stand in a message as it is. */
export class Image implements ImageBlock {
  readonly type = 'image'
  readonly source: ImageSource
  readonly mimeType: string
  readonly metadata?: ProviderMetadata

  private constructor(source: ImageSource, mimeType: string, metadata?: ProviderMetadata) {
    this.source = source
    this.mimeType = mimeType
    if (metadata) this.metadata = metadata
    Object.freeze(this)
  }

  /** The type is read from the bytes where it is not given. */
  static fromBytes(data: Uint8Array, mimeType?: string): Image {
    return new Image({ type: 'bytes', data }, mimeType ?? imageTypeOf(data) ?? unknownType())
  }

  static fromBase64(base64: string, mimeType?: string): Image {
    const type = mimeType ?? imageTypeOf(decodeBase64(base64.slice(0, 64))) ?? unknownType()
    return new Image({ type: 'base64', data: base64 }, type)
  }

  /** Nothing is downloaded: the vendor gets the address. */
  static fromUrl(url: string, mimeType?: string): Image {
    const type = mimeType ?? imageTypeOfName(URL.parse(url)?.pathname ?? url) ?? 'image/*'
    return new Image({ type: 'url', url }, type)
  }

  static fromBlock({ source, mimeType, metadata }: ImageBlock): Image {
    return new Image(source, mimeType, metadata)
  }

  /** Reads a file, where the platform has files. */
  static async fromPath(path: string, mimeType?: string): Promise<Image> {
    const data = await readFileBytes(path)
    const type = mimeType ?? imageTypeOf(data) ?? imageTypeOfName(path) ?? unknownType()
    return new Image({ type: 'bytes', data }, type)
  }

  /** The bytes. An image that is only known by its address has none. */
  toBytes(): Uint8Array {
    if (this.source.type === 'bytes') return this.source.data
    if (this.source.type === 'base64') return decodeBase64(this.source.data)
    throw invalid(
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

function unknownType(): never {
  throw invalid('The type of the image cannot be told from its data.', 'Pass its MIME type.')
}

function invalid(message: string, hint: string): UPPError {
  return new UPPError(message, {
    code: ErrorCode.InvalidRequest,
    provider: 'skein',
    modality: 'image',
    hint,
  })
}
