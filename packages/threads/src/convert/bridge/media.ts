import { sha256Hex } from '@skein/base'
import type { BinaryContent, UrlContent } from '../../document/part.ts'

/**
 * Returns base64 as a `data:` URL. URL-safe base64, as Pydantic AI writes it, is converted, because no
 * browser reads it in a URL.
 */
export function dataUrl(mediaType: string, base64: string): string {
  return `data:${mediaType};base64,${toStandardAlphabet(base64)}`
}

/** Converts base64 of either alphabet to the standard alphabet. */
export function toStandardAlphabet(base64: string): string {
  return base64.replaceAll('-', '+').replaceAll('_', '/')
}

/** Returns the base64 text of a `data:` URL, or undefined when the URL has none. */
export function dataUrlBody(url: string): string | undefined {
  if (!url.startsWith('data:')) return undefined
  const comma = url.indexOf(',')
  return comma > 0 && url.slice(0, comma).endsWith(';base64') ? url.slice(comma + 1) : undefined
}

/** Returns the content object for a file given by URL. */
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

/**
 * Returns the media type of a content object. If it has none, returns `image`, `audio` or `video` by its
 * kind, which the AI SDK also accepts, and `application/octet-stream` for other kinds.
 */
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
