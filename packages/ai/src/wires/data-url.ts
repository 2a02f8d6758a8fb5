import { encodeBase64 } from '@skein/base'
import type { ImageBlock } from '../contract/content.ts'

/** Bytes or base64 as an address. */
export function toDataUrl(mimeType: string, data: Uint8Array | string): string {
  const base64 = typeof data === 'string' ? data : encodeBase64(data)
  return `data:${mimeType};base64,${base64}`
}

/** The address of an image: its own, or its bytes as a data URL. */
export function imageUrl({ source, mimeType }: ImageBlock): string {
  return source.type === 'url' ? source.url : toDataUrl(mimeType, source.data)
}

/** The parts of a data URL. */
export interface DataUrl {
  readonly mimeType: string
  /** Base64. */
  readonly data: string
}

/** Reads a base64 data URL; undefined for any other address. */
export function parseDataUrl(url: string): DataUrl | undefined {
  if (!url.startsWith('data:')) return undefined
  const comma = url.indexOf(',')
  const head = url.slice(5, comma)
  if (comma < 0 || !head.endsWith(';base64')) return undefined
  const mimeType = head.slice(0, -';base64'.length).split(';')[0]!
  return { mimeType: mimeType || 'application/octet-stream', data: url.slice(comma + 1) }
}

const audioFormats: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/wave': 'wav',
  'audio/vnd.wave': 'wav',
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
  'audio/L16': 'pcm16',
  'audio/pcm': 'pcm16',
}

/** OpenAI's word for an audio type; the subtype for those it has none for. */
export function audioFormat(mimeType: string): string {
  return audioFormats[mimeType] ?? mimeType.replace(/^audio\/(x-)?/, '')
}

/** The type of OpenAI's word for an audio format. */
export function audioMimeType(format: string): string {
  if (format === 'mp3') return 'audio/mpeg'
  return format === 'pcm16' ? 'audio/pcm' : `audio/${format}`
}
