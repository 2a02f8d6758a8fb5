/** The MIME type that the first bytes tell, undefined where they tell nothing. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  const head = latin1(bytes.subarray(0, 64))
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

/** MPEG audio and AAC have no signature, only the eleven bits that open each frame. */
function isAudioFrame(bytes: Uint8Array): boolean {
  const [first, second, third] = bytes
  if (first !== 0xff || second === undefined || third === undefined) return false
  // Layer "reserved" is AAC in ADTS framing; a bit rate of 15 does not exist.
  return (second & 0xe0) === 0xe0 && (third & 0xf0) !== 0xf0
}

/** The MIME type that the ending of a file name or path suggests. */
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

/** True when the bytes are known to be something else than declared (UPP §17.3). */
export function isMismatch(bytes: Uint8Array, declared: string): boolean {
  const told = mediaTypeOf(bytes)
  return told !== undefined && canonical(told) !== canonical(declared)
}

/** Other names in use for one format. A container may hold sound alone, so those count as one too. */
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

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
