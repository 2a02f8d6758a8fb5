import { encodeBase64 } from '@skein/base'
import type { DocumentBlock, ImageBlock } from '../contract/content.ts'
import type { UPPError } from '../contract/error.ts'
import { type VendorFile, vendorFileOf } from '../media/vendor-file.ts'
import { requestError } from './wire-error.ts'

/** Media in the two forms that vendors accept: inline as base64, or by address. */
export type MediaSource =
  | { readonly base64: string; readonly mimeType: string; readonly url?: never }
  | { readonly url: string; readonly mimeType: string; readonly base64?: never }

/** Returns the source of an image. A `data:` URL is converted to inline data. */
export function imageSource({ source, mimeType }: ImageBlock): MediaSource {
  if (source.type === 'bytes') return { base64: encodeBase64(source.data), mimeType }
  if (source.type === 'base64') return { base64: source.data, mimeType }
  return addressed(source.url, mimeType)
}

/** Returns the source of a document; `text` if the document is given as text. */
export function documentSource({
  source,
  mimeType,
}: DocumentBlock): MediaSource | { readonly text: string; readonly mimeType: string } {
  if (source.type === 'text') return { text: source.data, mimeType }
  if (source.type === 'base64') return { base64: source.data, mimeType }
  return addressed(source.url, mimeType)
}

/** Converts bytes to an inline source. */
export function bytesSource({
  data,
  mimeType,
}: {
  data: Uint8Array
  mimeType: string
}): MediaSource {
  return { base64: encodeBase64(data), mimeType }
}

/**
 * Returns the vendor's id of a block whose data was uploaded to this vendor; undefined for any other block. Throws
 * for a file of another vendor.
 */
export function uploadOf(
  { source }: ImageBlock | DocumentBlock,
  provider: string,
): string | undefined {
  if (source.type !== 'url') return undefined
  const file = vendorFileOf(source.url)
  if (!file) return undefined
  if (file.provider === provider) return file.fileId
  throw foreignUpload(file, provider)
}

/** Returns the error for a block whose data was uploaded to another vendor; undefined for any other block. */
export function refuseForeign(
  { source }: ImageBlock | DocumentBlock,
  provider: string,
): UPPError | undefined {
  const file = source.type === 'url' ? vendorFileOf(source.url) : undefined
  return file && file.provider !== provider ? foreignUpload(file, provider) : undefined
}

function foreignUpload(file: VendorFile, provider: string): UPPError {
  return requestError(
    provider,
    `The file ${JSON.stringify(file.fileId)} was uploaded to ${file.provider}; ${provider} does not have it.`,
    `Upload it to ${provider} too, or send its data (Document.fromPath, Image.fromPath).`,
  )
}

/** Returns the error for an uploaded file, for a place that takes no ids of files. */
export function uploadedError(url: string): UPPError | undefined {
  const file = vendorFileOf(url)
  if (!file) return undefined
  return requestError(
    file.provider,
    `The file ${JSON.stringify(file.fileId)} of ${file.provider} cannot be sent here by its id.`,
    'Upload it to the vendor of this model if that takes ids here, or send its data.',
  )
}

function refuseUpload(url: string): void {
  const error = uploadedError(url)
  if (error) throw error
}

function addressed(url: string, mimeType: string): MediaSource {
  refuseUpload(url)
  const inline = parseDataUrl(url)
  return inline ? { base64: inline.data, mimeType: inline.mimeType } : { url, mimeType }
}

/** Makes a data URL from bytes or base64. */
export function toDataUrl(mimeType: string, data: Uint8Array | string): string {
  const base64 = typeof data === 'string' ? data : encodeBase64(data)
  return `data:${mimeType};base64,${base64}`
}

/** Returns the URL of an image: its own, or a data URL with its bytes. */
export function imageUrl({ source, mimeType }: ImageBlock): string {
  if (source.type !== 'url') return toDataUrl(mimeType, source.data)
  refuseUpload(source.url)
  return source.url
}

/** The parts of a data URL. */
interface DataUrl {
  readonly mimeType: string
  /** The content in base64. */
  readonly data: string
}

/** Parses a base64 data URL; undefined for any other address. */
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

/** Returns OpenAI's name for an audio type; for types without one, the subtype. */
export function audioFormat(mimeType: string): string {
  return audioFormats[mimeType] ?? mimeType.replace(/^audio\/(x-)?/, '')
}

/** Returns the media type for OpenAI's name of an audio format. */
export function audioMimeType(format: string): string {
  if (format === 'mp3') return 'audio/mpeg'
  return format === 'pcm16' ? 'audio/pcm' : `audio/${format}`
}
