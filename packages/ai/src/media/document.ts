import { encodeBase64 } from '@skein/base'
import type { DocumentBlock, DocumentSource } from '../content.ts'
import { strictBase64 } from '../loose-base64.ts'
import { base64Bytes, invalidMedia, type ReadOptions } from './media-error.ts'
import { isMismatch, mediaTypeOf, mediaTypeOfName } from './media-type.ts'
import { readFileBytes } from './read-file-node.ts'
import { checkedUrl } from './remote-url.ts'

/** A document (PDF, text …). It is a `DocumentBlock` itself, so it can stand in a message as it is. */
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

  /** Text formats are kept as text, everything else as base64. */
  static async fromPath(
    path: string,
    title?: string,
    { mimeType, maxBytes }: ReadOptions = {},
  ): Promise<Document> {
    const bytes = await readFileBytes(path, maxBytes)
    const type = mimeType ?? mediaTypeOf(bytes) ?? mediaTypeOfName(path)
    if (type === undefined) {
      throw invalidMedia(`The type of the document ${path} cannot be told.`, 'Pass its MIME type.')
    }
    if (isText(type)) return new Document({ type: 'text', data: textOf(bytes, path) }, type, title)
    return Document.fromBase64(encodeBase64(bytes), type, title)
  }

  /** Nothing is downloaded: the vendor gets the address. */
  static fromUrl(url: string, title?: string): Document {
    const address = checkedUrl(url)
    const type = mediaTypeOfName(new URL(address).pathname) ?? 'application/pdf'
    return new Document({ type: 'url', url: address }, type, title)
  }

  static fromBase64(base64: string, mimeType: string, title?: string): Document {
    if (isMismatch(base64Bytes(base64), mimeType)) {
      throw invalidMedia(
        `The document was declared to be ${mimeType}, but its data is something else.`,
        'Pass the MIME type of the data.',
      )
    }
    return new Document({ type: 'base64', data: strictBase64(base64) }, mimeType, title)
  }

  static fromText(text: string, title?: string): Document {
    return new Document({ type: 'text', data: text }, 'text/plain', title)
  }

  /** A plain block. */
  toBlock(): DocumentBlock {
    const { type, source, mimeType, title } = this
    return { type, source, mimeType, ...(title !== undefined && { title }) }
  }
}

function isText(type: string): boolean {
  return type.startsWith('text/') || type === 'application/json'
}

function textOf(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw invalidMedia(
      `The document ${path} is not UTF-8 text.`,
      'Convert it, or pass the MIME type of a binary format.',
      cause,
    )
  }
}
