import { encodeBase64 } from '@skein/base'
import type { DocumentBlock, ImageBlock } from '../contract/content.ts'
import { parseDataUrl } from './data-url.ts'

/** Media as every vendor takes it: inline as base64, or by address. */
export type MediaSource =
  | { readonly base64: string; readonly mimeType: string; readonly url?: never }
  | { readonly url: string; readonly mimeType: string; readonly base64?: never }

/** An image's source. A `data:` address is what it holds. */
export function imageSource({ source, mimeType }: ImageBlock): MediaSource {
  if (source.type === 'bytes') return { base64: encodeBase64(source.data), mimeType }
  if (source.type === 'base64') return { base64: source.data, mimeType }
  return addressed(source.url, mimeType)
}

/** A document's source; `text` where it is text already. */
export function documentSource({
  source,
  mimeType,
}: DocumentBlock): MediaSource | { readonly text: string; readonly mimeType: string } {
  if (source.type === 'text') return { text: source.data, mimeType }
  if (source.type === 'base64') return { base64: source.data, mimeType }
  return addressed(source.url, mimeType)
}

function addressed(url: string, mimeType: string): MediaSource {
  const inline = parseDataUrl(url)
  return inline ? { base64: inline.data, mimeType: inline.mimeType } : { url, mimeType }
}
