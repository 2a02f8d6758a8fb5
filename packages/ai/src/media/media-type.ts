import { ErrorCode, UPPError } from '../contract/error.ts'
import { decodeLooseBase64 } from './bytes.ts'

/** Returns the MIME type recognised by the first bytes; undefined when they match no known format. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  for (const [start, type] of signatures) if (head.startsWith(start)) return type
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
  ['BM', 'image/bmp'],
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['%PDF-', 'application/pdf'],
  ['ID3', 'audio/mpeg'],
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

/** Recognises MPEG audio and AAC, which have no signature, by the eleven bits that start each frame. */
function isAudioFrame(bytes: Uint8Array): boolean {
  const [first, second, third] = bytes
  if (first !== 0xff || second === undefined || third === undefined) return false
  // The layer value "reserved" is allowed, because AAC in ADTS framing uses it. The bit rate value 15 is
  // invalid.
  return (second & 0xe0) === 0xe0 && (third & 0xf0) !== 0xf0
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
  return told !== undefined && canonical(told) !== canonical(declared)
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
    return belongs(told, family) ? told : wrongFamily(told, family)
  }
  if (!belongs(mimeType, family)) return wrongFamily(mimeType, family)
  if (isMismatch(bytes, mimeType))
    throw invalidMedia(
      `The data is ${mediaTypeOf(bytes)}, but it was declared to be ${mimeType}.`,
      'Leave the MIME type out to have it read from the data.',
    )
  return mimeType
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
