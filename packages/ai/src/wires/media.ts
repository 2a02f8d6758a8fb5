import { encodeBase64 } from '@skein/base'
import type { DocumentBlock, ImageBlock } from '../contract/content.ts'

/** Media in the two forms that vendors accept: inline as base64, or by address. */
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
interface DataUrl {
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
