import { sha256Hex, type ContentBlockJSON } from '@skein/base'
import type { BinaryContent, UrlContent, MultiModalContent } from '../../document/part.ts'
import { joinPointer } from '../../issue.ts'
import { Losses } from './walk.ts'

export const NO_PLACE = 'UPP has no field for it'

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

/** Converts media of a thread to a UPP block; undefined when UPP has no block for it. */
export function mediaBlock(content: MultiModalContent): ContentBlockJSON | undefined {
  switch (content.kind) {
    case 'image-url':
      return {
        type: 'image',
        source: { type: 'url', url: content.url },
        mimeType: content.media_type ?? 'image/*',
      }
    case 'document-url':
      return {
        type: 'document',
        source: { type: 'url', url: content.url },
        mimeType: content.media_type ?? 'application/octet-stream',
      }
    case 'binary': {
      const { media_type: mimeType } = content
      const base64 = toStandardAlphabet(content.data)
      const [type] = mimeType.split('/')
      if (type === 'audio' || type === 'video') return { type, data: { $bytes: base64 }, mimeType }
      const source = { type: 'base64', data: base64 } as const
      return { type: type === 'image' ? 'image' : 'document', source, mimeType }
    }
    case 'audio-url':
    case 'video-url':
    case 'text-content':
    case 'uploaded-file':
    case 'cache-point':
      return undefined
    default:
      return content satisfies never
  }
}

export function mediaLosses(content: MultiModalContent, pointer: string, losses: Losses): void {
  losses.rest(content, pointer, ['kind', 'data', 'url', 'media_type'], NO_PLACE)
  if (content.kind === 'binary' && /[-_]/.test(content.data))
    losses.add(joinPointer(pointer, 'data'), 'the URL-safe alphabet is not kept')
}
