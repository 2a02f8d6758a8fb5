import { invalidValue, type UPPError } from '../contract/error.ts'
import { decodeLooseBase64 } from './bytes.ts'

/** Returns the MIME type recognised by the first bytes; undefined when they match no known format. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  return signatures.find(([start]) => start.test(head))?.[1]
}

/**
 * How files of each type begin. Texts may begin with "BM" or "ID3" too, so a field that no text has is read as
 * well: the size of the second header of a bitmap, and the version of an ID3 tag. AAC and MPEG audio have no
 * signature; they are recognised by the header of a frame: its layer, and its sample rate or its bit rate. MPEG
 * layer 1 is left out, because it is not used any more, and UTF-16 text and quiet raw audio begin like it.
 */
const signatures: readonly (readonly [RegExp, string])[] = [
  [/^\x89PNG\r\n\x1a\n/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8[79]a/, 'image/gif'],
  [/^RIFF.{4}WEBP/s, 'image/webp'],
  [/^BM.{12}[\x0c\x10(48@l|]\0\0\0/s, 'image/bmp'],
  [/^(II\*\0|MM\0\*)/, 'image/tiff'],
  [/^.{4}ftypavi[fs]/s, 'image/avif'],
  [/^.{4}ftyp(hei[cx]|m[is]f1)/s, 'image/heic'],
  [/^\s*<(svg|\?xml[^>]*>\s*<svg)/, 'image/svg+xml'],
  [/^%PDF-/, 'application/pdf'],
  [/^RIFF.{4}WAVE/s, 'audio/wav'],
  [/^ID3[\x02-\x04]/, 'audio/mpeg'],
  [/^fLaC/, 'audio/flac'],
  [/^.{4}ftypM4[AB] /s, 'audio/mp4'],
  [/^.{4}ftypqt {2}/s, 'video/quicktime'],
  [/^.{4}ftyp/s, 'video/mp4'],
  [/^\x1a\x45\xdf\xa3/, 'video/webm'],
  [/^OggS.*\x80theora/s, 'video/ogg'],
  [/^OggS/, 'audio/ogg'],
  [/^\xff[\xf0\xf1\xf8\xf9][^\x34-\x3f\x74-\x7f\xb4-\xbf\xf4-\xff]/, 'audio/aac'],
  [/^\xff[\xe2-\xe5\xf2-\xf5\xfa-\xfd][\x10-\xef]/, 'audio/mpeg'],
]

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

/** Throws when the bytes are recognised as another type than the declared one (UPP §17.3). */
export function checkDeclared(bytes: Uint8Array, declared: string): void {
  const typeInBytes = mediaTypeOf(bytes)
  const type = canonical(declared)
  if (typeInBytes === undefined || canonical(typeInBytes) === type) return
  if (typeInBytes === 'image/svg+xml' && /^text\/|xml$/.test(type)) return // its source may be sent as text
  // Raw samples may begin like a frame by chance, so a frame only contradicts types that are known here.
  const isFrame = bytes[0] === 0xff && typeInBytes.startsWith('audio/')
  if (isFrame && !Object.values(nameTypes).some((known) => canonical(known) === type)) return
  throw invalidValue(
    `The data is ${typeInBytes}, but it was declared to be ${declared}.`,
    'Pass the MIME type of the data.',
  )
}

/**
 * Maps other names of a format to one name. A container may contain only audio, so its audio and video names
 * count as the same format.
 */
const aliases: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/heif': 'image/heic',
  'image/ms-bmp': 'image/bmp',
  'audio/mp3': 'audio/mpeg',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/aacp': 'audio/aac',
  'audio/m4a': 'video/mp4',
  'audio/mp4': 'video/mp4',
  'audio/ogg': 'video/ogg',
  'audio/opus': 'video/ogg',
  'application/ogg': 'video/ogg',
  'audio/webm': 'video/webm',
  'video/matroska': 'video/webm',
}

function canonical(type: string): string {
  // `x-` is the mark of names that were not registered.
  const plain = type.split(';')[0]!.trim().toLowerCase().replace('/x-', '/')
  return aliases[plain] ?? plain
}

/** Options of the helpers that read files. */
export interface MediaReadOptions {
  /** Default: recognised from the bytes, then from the file name. */
  readonly mimeType?: string
  /** The largest accepted file in bytes. Default 50 MiB. */
  readonly maxBytes?: number
}

/** Decodes the caller's base64 in any of its usual forms. */
export function base64Bytes(base64: string): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = decodeLooseBase64(base64)
  } catch (cause) {
    throw invalidValue('The data is not base64.', 'Pass bytes as they are with fromBytes.', cause)
  }
  if (bytes.length === 0) throw emptyMedia('The data')
  return bytes
}

/** Creates the error for media without data, because a vendor's own error would be less clear. */
export function emptyMedia(what: string): UPPError {
  return invalidValue(`${what} is empty.`, 'Check where it comes from; there is nothing to send.')
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
    throw invalidValue(`The data of the ${family} is ${typeof bytes}.`, 'Pass a Uint8Array.')
  if (bytes.length === 0) throw emptyMedia(`The ${family}`)
  const type = mimeType ?? mediaTypeOf(bytes) ?? mediaTypeOfName(name)
  if (type === undefined)
    throw invalidValue(
      `The type of the ${family} is not recognisable from its data.`,
      'Pass its MIME type.',
    )
  inFamily(type, family)
  checkDeclared(bytes, type)
  return type
}

/** Returns a type of this family, e.g. `image`; throws for others. */
export function inFamily(type: string, family: 'image' | 'audio' | 'video'): string {
  if (type.startsWith(`${family}/`)) return type
  // MP4, Ogg and WebM files start with the same bytes with and without video, so they also pass as audio.
  if (family === 'audio' && /^video\/(mp4|ogg|webm)/.test(type)) return type
  throw invalidValue(`${JSON.stringify(type)} is not an ${family} type.`, `Expected ${family}/….`)
}

/** Returns the address if a vendor can fetch it; throws for others, such as `file:` addresses. */
export function checkedUrl(url: string): string {
  // Google Cloud Storage addresses (`gs:`) are accepted too.
  if (URL.canParse(url) && ['https:', 'http:', 'gs:'].includes(new URL(url).protocol)) return url
  throw invalidValue(
    `${JSON.stringify(String(url).slice(0, 80))} is not an address that a vendor can fetch.`,
    'Use an http(s) URL, or fromPath, fromBytes or fromBase64 for data of your own.',
  )
}
