import { encodeBase64 } from '@skein/base'
import type { DocumentBlock, DocumentSource } from '../contract/content.ts'
import { invalidValue } from '../contract/error.ts'
import { strictBase64 } from './bytes.ts'
import {
  base64Bytes,
  checkDeclared,
  checkedUrl,
  emptyMedia,
  type MediaReadOptions,
  mediaTypeOf,
  mediaTypeOfName,
} from './media-type.ts'
import { readFileBytes } from './read-file-node.ts'
import { fileAddress, type VendorFile } from './vendor-file.ts'

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
      throw invalidValue(`The type of the document ${path} is unknown.`, 'Pass its MIME type.')
    }
    checkDeclared(bytes, type)
    if (type.startsWith('text/') || type === 'application/json')
      return new Document({ type: 'text', data: utf8TextOf(bytes, path) }, type, title)
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

function utf8TextOf(bytes: Uint8Array, path: string): string {
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
