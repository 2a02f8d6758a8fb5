import { sha256Hex } from '@skein/base'
import type { BinaryContent, UrlContent } from '../../document/part.ts'

/** Bytes as a `data:` URL. Pydantic AI writes URL-safe base64, which no browser reads there. */
export function dataUrl(mediaType: string, base64: string): string {
  return `data:${mediaType};base64,${toStandardAlphabet(base64)}`
}

/** Base64 in the standard alphabet, whichever it was written in. */
export function toStandardAlphabet(base64: string): string {
  return base64.replaceAll('-', '+').replaceAll('_', '/')
}

/** Base64 in the URL-safe alphabet, as Pydantic AI writes it. */
export function toUrlAlphabet(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_')
}

/** The base64 text of a `data:` URL, or undefined when it is none. */
export function dataUrlBody(url: string): string | undefined {
  if (!url.startsWith('data:')) return undefined
  const comma = url.indexOf(',')
  return comma > 0 && url.slice(0, comma).endsWith(';base64') ? url.slice(comma + 1) : undefined
}

/** The content object for a file known by URL. */
export function contentOfUrl(url: string, mediaType: string): BinaryContent | UrlContent {
  const data = dataUrlBody(url)
  const identifier = sha256Hex(data ?? url).slice(0, 6)
  if (data !== undefined) return { kind: 'binary', data, media_type: mediaType, identifier }
  const type = mediaType.split('/')[0]
  const kind =
    type === 'image' || type === 'audio' || type === 'video'
      ? (`${type}-url` as const)
      : 'document-url'
  return { kind, url, media_type: mediaType, identifier }
}

/** A media type for contents that do not say: the AI SDK also takes the first half alone. */
export function contentMediaType(content: {
  readonly kind: string
  readonly media_type?: string | null
}): string {
  if (content.media_type) return content.media_type
  const type = content.kind.replace(/-url$/, '')
  return type === 'image' || type === 'audio' || type === 'video'
    ? type
    : 'application/octet-stream'
}
