import { ErrorCode, UPPError } from '../contract/error.ts'
import { decodeLooseBase64 } from './bytes.ts'

/** Returns the MIME type recognised by the first bytes; undefined when they match no known format. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  for (const [start, type] of signatures) if (head.startsWith(start)) return type
  if (isBitmap.test(head)) return 'image/bmp'
  if (isTagged.test(head)) return 'audio/mpeg'
  if (head.startsWith('RIFF')) return riffTypes[head.slice(8, 12)]
  if (head.slice(4, 8) === 'ftyp') return brandTypes[head.slice(8, 12)] ?? 'video/mp4'
  if (head.startsWith('OggS')) return head.includes('\x80theora') ? 'video/ogg' : 'audio/ogg'
  if (isAudioFrame(bytes)) return (bytes[1]! & 0x06) === 0 ? 'audio/aac' : 'audio/mpeg'
  return /^\s*<(svg|\?xml[^>]*>\s*<svg)/.test(head) ? 'image/svg+xml' : undefined
}

const signatures: readonly (readonly [string, string])[] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['%PDF-', 'application/pdf'],
  ['fLaC', 'audio/flac'],
  ['\x1a\x45\xdf\xa3', 'video/webm'],
]

const riffTypes: Readonly<Record<string, string>> = { WEBP: 'image/webp', WAVE: 'audio/wav' }

const brandTypes: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  avis: 'image/avif',
  heic: 'image/heic',
  heix: 'image/heic',
  mif1: 'image/heic',
  msf1: 'image/heic',
  'M4A ': 'audio/mp4',
  'M4B ': 'audio/mp4',
  'qt  ': 'video/quicktime',
}

// Texts may begin with "BM" or "ID3" too, so a field that no text has is read as well: the size of the second
// header of a bitmap, and the version of an ID3 tag.
const isBitmap = /^BM.{12}[\x0c\x10(48@l|]\0\0\0/s
const isTagged = /^ID3[\x02-\x04]/

/**
 * Recognises MPEG audio (layers 2 and 3) and AAC in ADTS framing, which have no signature, by the header of the
 * first frame. Layer 1 is left out: it is not used any more, and UTF-16 text and quiet raw audio begin like it.
 */
function isAudioFrame([first, second = 0, third = 0]: Uint8Array): boolean {
  if (first !== 0xff) return false
  // AAC has 0 as its layer, and one of thirteen sample rates.
  if ((second & 0xf6) === 0xf0) return (third & 0x3c) < 0x34
  const hasVersion = (second & 0xe0) === 0xe0 && (second & 0x18) !== 0x08
  const layer = second & 0x06
  const rates = third & 0xfc
  const hasRates = rates >= 0x10 && rates < 0xf0 && (rates & 0x0c) !== 0x0c
  return hasVersion && (layer === 2 || layer === 4) && hasRates
}

/** Returns the MIME type for the extension of a file name or path. */
export function mediaTypeOfName(name: string): string | undefined {
  const ending = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase()
  return ending !== undefined && Object.hasOwn(nameTypes, ending) ? nameTypes[ending] : undefined
}

const nameTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  avif: 'image/avif',
  heic: 'image/heic',
  heif: 'image/heic',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  htm: 'text/html',
  xml: 'text/xml',
  json: 'application/json',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  ogg: 'audio/ogg',
  oga: 'audio/ogg',
  opus: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
  m4a: 'audio/mp4',
  mp4: 'video/mp4',
  m4v: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  ogv: 'video/ogg',
}

/** True when the bytes are recognised as another type than the declared one (UPP §17.3). */
export function isMismatch(bytes: Uint8Array, declared: string): boolean {
  const told = mediaTypeOf(bytes)
  const type = canonical(declared)
  if (told === undefined || canonical(told) === type) return false
  if (told === 'image/svg+xml') return !/^text\/|xml$/.test(type) // its source may be sent as text
  // Raw samples may begin like a frame by chance, so a frame only contradicts types that have a signature.
  return !isAudioFrame(bytes) || Object.values(nameTypes).some((known) => canonical(known) === type)
}

/**
 * Maps other names of a format to one name. A container may contain only audio, so its audio and video names
 * count as the same format.
 */
const aliases: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/heif': 'image/heic',
  'image/x-ms-bmp': 'image/bmp',
  'audio/mp3': 'audio/mpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/x-flac': 'audio/flac',
  'audio/aacp': 'audio/aac',
  'audio/x-m4a': 'video/mp4',
  'audio/m4a': 'video/mp4',
  'audio/mp4': 'video/mp4',
  'audio/ogg': 'video/ogg',
  'audio/opus': 'video/ogg',
  'application/ogg': 'video/ogg',
  'audio/webm': 'video/webm',
  'video/x-matroska': 'video/webm',
}

function canonical(type: string): string {
  const plain = type.split(';')[0]!.trim().toLowerCase()
  return aliases[plain] ?? plain
}

/** Options of the helpers that read files. */
export interface MediaReadOptions {
  /** Default: recognised from the bytes, then from the file name. */
  readonly mimeType?: string
  /** The largest accepted file in bytes. Default 50 MiB. */
  readonly maxBytes?: number
}

/** Creates the error of a media helper that was called with an invalid value. */
export function invalidMedia(message: string, hint: string, cause?: unknown): UPPError {
  return new UPPError(message, {
    code: ErrorCode.InvalidRequest,
    provider: 'skein',
    modality: 'llm',
    hint,
    cause,
  })
}

/** Decodes the caller's base64 in any of its usual forms. */
export function base64Bytes(base64: string): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = decodeLooseBase64(base64)
  } catch (cause) {
    throw invalidMedia('The data is not base64.', 'Pass bytes as they are with fromBytes.', cause)
  }
  if (bytes.length === 0) throw emptyMedia('The data')
  return bytes
}

/** Creates the error for media without data, because a vendor's own error would be less clear. */
export function emptyMedia(what: string): UPPError {
  return invalidMedia(`${what} is empty.`, 'Check where it comes from; there is nothing to send.')
}

/**
 * Returns the declared type, or without one the type recognised from the bytes or the file name. Throws
 * if the bytes contradict the declared type, or if the type is not in `family`, e.g. `image`.
 */
export function checkedType(
  bytes: Uint8Array,
  family: 'image' | 'audio' | 'video',
  { mimeType, name = '' }: { mimeType?: string | undefined; name?: string },
): string {
  if (!ArrayBuffer.isView(bytes))
    throw invalidMedia(`The data of the ${family} is ${typeof bytes}.`, 'Pass a Uint8Array.')
  if (bytes.length === 0) throw emptyMedia(`The ${family}`)
  if (mimeType === undefined) {
    const told = mediaTypeOf(bytes) ?? mediaTypeOfName(name)
    if (told === undefined)
      throw invalidMedia(
        `The type of the ${family} cannot be told from its data.`,
        'Pass its MIME type.',
      )
    return inFamily(told, family)
  }
  if (!belongs(mimeType, family)) return wrongFamily(mimeType, family)
  if (isMismatch(bytes, mimeType))
    throw invalidMedia(
      `The data is ${mediaTypeOf(bytes)}, but it was declared to be ${mimeType}.`,
      'Leave the MIME type out to have it read from the data.',
    )
  return mimeType
}

/** Returns a type of this family, e.g. `image`; throws for others. */
export function inFamily(type: string, family: 'image' | 'audio' | 'video'): string {
  return belongs(type, family) ? type : wrongFamily(type, family)
}

function belongs(type: string, family: string): boolean {
  // MP4, Ogg and WebM files start with the same bytes with and without video, so they also pass as audio.
  return (
    type.startsWith(`${family}/`) || (family === 'audio' && /^video\/(mp4|ogg|webm)/.test(type))
  )
}

function wrongFamily(type: string, family: string): never {
  throw invalidMedia(`${JSON.stringify(type)} is not an ${family} type.`, `Expected ${family}/….`)
}

/** Returns the address if a vendor can fetch it; throws for others, such as `file:` addresses. */
export function checkedUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'https:' || parsed?.protocol === 'http:') return url
  // Google Cloud Storage addresses (`gs:`) are accepted too.
  if (parsed?.protocol === 'gs:') return url
  throw invalidMedia(
    `${JSON.stringify(url.slice(0, 80))} is not an address that a vendor can fetch.`,
    'Use an http(s) URL, or fromPath, fromBytes or fromBase64 for data of your own.',
  )
}
