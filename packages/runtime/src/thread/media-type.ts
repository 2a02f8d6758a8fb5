const DEFAULT = 'application/octet-stream'

/** How many bytes of a file are examined to tell text from binary data. */
const SAMPLE_BYTES = 8192

const byExtension: Readonly<Record<string, string>> = {
  aac: 'audio/aac',
  avif: 'image/avif',
  bmp: 'image/bmp',
  css: 'text/css',
  csv: 'text/csv',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  flac: 'audio/flac',
  gif: 'image/gif',
  gz: 'application/gzip',
  heic: 'image/heic',
  htm: 'text/html',
  html: 'text/html',
  ico: 'image/x-icon',
  ics: 'text/calendar',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/jsonl',
  log: 'text/plain',
  m4a: 'audio/mp4',
  md: 'text/markdown',
  mjs: 'text/javascript',
  mov: 'video/quicktime',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  ogg: 'audio/ogg',
  otf: 'font/otf',
  pdf: 'application/pdf',
  png: 'image/png',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  py: 'text/x-python',
  sql: 'application/sql',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  toml: 'application/toml',
  ts: 'text/x-typescript',
  tsv: 'text/tab-separated-values',
  ttf: 'font/ttf',
  txt: 'text/plain',
  wasm: 'application/wasm',
  wav: 'audio/wav',
  webm: 'video/webm',
  webp: 'image/webp',
  woff2: 'font/woff2',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
}

/** Bytes that identify a format: the bytes as a Latin-1 text, their offset in the file, and the media type. */
const signatures: readonly (readonly [string, number, string])[] = [
  ['\x89PNG\r\n\x1a\n', 0, 'image/png'],
  ['\xff\xd8\xff', 0, 'image/jpeg'],
  ['GIF87a', 0, 'image/gif'],
  ['GIF89a', 0, 'image/gif'],
  ['WEBP', 8, 'image/webp'],
  ['WAVE', 8, 'audio/wav'],
  ['%PDF-', 0, 'application/pdf'],
  ['PK\x03\x04', 0, 'application/zip'],
  ['\x1f\x8b', 0, 'application/gzip'],
  ['OggS', 0, 'audio/ogg'],
  ['fLaC', 0, 'audio/flac'],
  ['ID3', 0, 'audio/mpeg'],
  ['ftyp', 4, 'video/mp4'],
  ['\x1a\x45\xdf\xa3', 0, 'video/webm'],
  ['\0asm', 0, 'application/wasm'],
]

/** Returns the media type of a file: by its extension, else by its first bytes, else `text/plain` or the default. */
export function fileMediaType(path: string, bytes: Uint8Array): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const extension = name.includes('.') ? name.slice(name.lastIndexOf('.') + 1).toLowerCase() : ''
  if (Object.hasOwn(byExtension, extension)) return byExtension[extension]!
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1')
  const match = signatures.find(([signature, offset]) => head.startsWith(signature, offset))
  if (match) return match[2]
  return bytes.length > 0 && isTextFile(bytes) ? 'text/plain' : DEFAULT
}

/** Returns the file extension for a media type, with its dot; `.bin` if none is known. */
export function fileExtension(mediaType: string): string {
  const type = mediaType.split(';')[0]!.trim().toLowerCase()
  if (type === 'text/plain') return '.txt'
  const name = Object.keys(byExtension).find((extension) => byExtension[extension] === type)
  return `.${name ?? 'bin'}`
}

/** Whether the beginning of the file is UTF-8 without zero bytes. */
export function isTextFile(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, SAMPLE_BYTES)
  if (sample.includes(0)) return false
  try {
    // With `stream`, the decoder accepts a sample that ends in the middle of a character.
    new TextDecoder('utf-8', { fatal: true }).decode(sample, {
      stream: bytes.length > SAMPLE_BYTES,
    })
    return true
  } catch {
    return false
  }
}
