import { sha256Hex } from '@skein/base'
import { RuntimeError } from '../error.ts'

const MAX_PATH_BYTES = 1024
const MAX_SEGMENT_BYTES = 255
const MAX_STEM_BYTES = 100
const MAX_EXTENSION_BYTES = 16

/**
 * The one spelling of a path in a thread's tree: absolute, in NFC, without empty segments. Anything that
 * another reader could take for a different file is refused.
 */
export function normalisePath(path: string): string {
  if (typeof path !== 'string') throw refused(String(path), 'it is not a text')
  if (/\p{Surrogate}/u.test(path))
    throw refused('with a broken character', 'it is not well-formed text')
  // oxlint-disable-next-line no-control-regex -- these are what must not get in
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(path)) {
    throw refused(JSON.stringify(path.slice(0, 100)), 'it has a control character')
  }
  const name = JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path)
  if (path.includes('\\')) throw refused(name, 'it has a backslash')
  if (!path.startsWith('/')) throw refused(name, 'it does not begin with "/"')
  if (path.endsWith('/')) throw refused(name, 'it ends with "/"')
  const segments = path.normalize('NFC').split('/').filter(Boolean)
  for (const segment of segments) {
    if (segment === '.' || segment === '..') throw refused(name, `it has a segment "${segment}"`)
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) {
      throw refused(name, `a segment has more than ${MAX_SEGMENT_BYTES} bytes`)
    }
  }
  const normal = `/${segments.join('/')}`
  if (Buffer.byteLength(normal) > MAX_PATH_BYTES) {
    throw refused(name, `it has more than ${MAX_PATH_BYTES} bytes`)
  }
  return normal
}

/**
 * Where the copy of a file goes when it crosses to another thread. The same source and salt give the same
 * path, so that a copy that is made again after a crash is the same copy.
 */
export function attachmentPath(sourcePath: string, salt: string): string {
  const name = normalisePath(sourcePath).split('/').at(-1)!
  const { stem, extension } = splitName(name)
  const hash = sha256Hex(salt).slice(0, 8)
  return `/attachments/${cutBytes(stem, MAX_STEM_BYTES)}-${hash}${extension}`
}

/** The extension with its dot; a leading dot is part of the name, and so is an ending no program knows. */
function splitName(name: string): { stem: string; extension: string } {
  const dot = name.lastIndexOf('.')
  const extension = name.slice(dot)
  if (dot <= 0 || extension.length < 2 || Buffer.byteLength(extension) > MAX_EXTENSION_BYTES) {
    return { stem: name, extension: '' }
  }
  return { stem: name.slice(0, dot), extension }
}

/** The longest beginning with at most so many bytes, without cutting a character. */
function cutBytes(text: string, maxBytes: number): string {
  let result = ''
  let bytes = 0
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > maxBytes) break
    result += character
  }
  return result
}

function refused(path: string, problem: string): RuntimeError {
  return new RuntimeError(`The path ${path} cannot be used: ${problem}.`, {
    code: 'FILE_PATH_INVALID',
    hint: 'Paths are absolute within the thread, such as "/reports/may.md".',
  })
}

/**
 * A test for paths by a pattern: `*` is any text and `?` any character within a segment, `**` as a whole
 * segment is any number of segments. Everything else is itself. A pattern begins at the root, with or
 * without its `/`. There is no regular expression in it, so no pattern can take exponential time.
 */
export function createGlob(pattern: string): (path: string) => boolean {
  const segments = pattern.normalize('NFC').split('/').filter(Boolean)
  // `/a/**` is what is below `/a`, not a file of that name.
  if (segments.at(-1) === '**') segments.push('*')
  const wanted = segments.map((segment) =>
    segment === '**' ? ANY : [...segment].map((one) => (one === '*' ? ANY : one)),
  )
  return (path) =>
    matches(path.split('/').filter(Boolean), wanted, (segment, characters) =>
      matches([...segment], characters, (character, one) => one === '?' || one === character),
    )
}

/** Stands for any number of items. */
const ANY = Symbol('any')

/**
 * Greedy with one way back: when an item does not fit, only the last `ANY` has to take one more, since
 * whatever an earlier one could take instead, the last one can take too.
 */
function matches<Item, One>(
  items: readonly Item[],
  pattern: readonly (One | typeof ANY)[],
  fits: (item: Item, one: One) => boolean,
): boolean {
  let at = 0
  let item = 0
  let lastAny = -1
  let taken = 0
  while (item < items.length) {
    const one = pattern[at]
    if (one === ANY) {
      lastAny = at++
      taken = item
    } else if (at < pattern.length && fits(items[item]!, one as One)) {
      // Not ANY, and within the pattern, so it is a One.
      at++
      item++
    } else if (lastAny >= 0) {
      at = lastAny + 1
      item = ++taken
    } else return false
  }
  while (pattern[at] === ANY) at++
  return at === pattern.length
}

const DEFAULT = 'application/octet-stream'
/** Enough to tell text from bytes. */
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

/** Bytes at an offset by which a format is known; latin-1. */
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

/** The media type of a file: by its extension, else by its first bytes, else text or plain bytes. */
export function mediaTypeOf(path: string, bytes: Uint8Array): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const extension = name.includes('.') ? name.slice(name.lastIndexOf('.') + 1).toLowerCase() : ''
  if (Object.hasOwn(byExtension, extension)) return byExtension[extension]!
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1')
  const known = signatures.find(([signature, offset]) => head.startsWith(signature, offset))
  if (known) return known[2]
  return bytes.length > 0 && isText(bytes) ? 'text/plain' : DEFAULT
}

/** True for UTF-8 without zero bytes, as far as the beginning shows. */
export function isText(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, SAMPLE_BYTES)
  if (sample.includes(0)) return false
  try {
    // A sample may end within a character.
    new TextDecoder('utf-8', { fatal: true }).decode(sample, {
      stream: bytes.length > SAMPLE_BYTES,
    })
    return true
  } catch {
    return false
  }
}
