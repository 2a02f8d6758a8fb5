import { sha256Hex } from '@skein/base'
import { isObject } from './is-object.ts'

type Fields = { readonly [key: string]: unknown }

/** Message content of 1.0.0, with attachments, as content of 2.0.0. */
export function migrateContent(
  content: unknown,
  attachments: unknown,
  infer: (reason: string) => void,
): unknown {
  const extra: readonly unknown[] = Array.isArray(attachments) ? attachments : []
  if (!Array.isArray(content)) {
    if (extra.length === 0) return typeof content === 'string' ? content : ''
    return [
      ...(typeof content === 'string' ? [content] : []),
      ...extra.map((item) => migrateMedia(item, infer)),
    ]
  }
  return [...content, ...extra].map((item: unknown) => migrateMedia(item, infer))
}

function migrateMedia(item: unknown, infer: (reason: string) => void): unknown {
  if (!isObject(item)) return item
  const { type, text } = item
  if (type === 'text' && typeof text === 'string') return text
  const mediaType = typeof item['media_type'] === 'string' ? item['media_type'] : undefined
  const kind = typeof type === 'string' ? type : (mediaType?.split('/')[0] ?? 'file')
  const url = item[`${kind}_url`] ?? item['url']
  const data = item[`${kind}_base64`] ?? item['data']
  const name = item['name'] === undefined ? {} : { vendor_metadata: describe(item) }
  if (typeof url === 'string') {
    infer('an identifier was made for a URL')
    return {
      kind: URL_KINDS.get(kind) ?? 'document-url',
      url,
      identifier: sha256Hex(url).slice(0, 6),
      ...(mediaType && { media_type: mediaType }),
      ...name,
    }
  }
  if (typeof data === 'string') {
    infer('an identifier was made for binary content')
    return {
      kind: 'binary',
      data,
      media_type: mediaType ?? 'application/octet-stream',
      identifier: sha256Hex(data).slice(0, 6),
      ...name,
    }
  }
  // Kept whole under a kind of its own: 1.0.0 leaves the fields of these open.
  return { ...item, kind: `v1:${kind}` }
}

const URL_KINDS: ReadonlyMap<string, string> = new Map([
  ['image', 'image-url'],
  ['audio', 'audio-url'],
  ['video', 'video-url'],
  ['file', 'document-url'],
])

function describe(item: Fields): Fields {
  const { name, size_bytes } = item
  return size_bytes === undefined ? { name } : { name, size_bytes }
}
