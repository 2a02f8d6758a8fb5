import { sha256Hex } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { FileStat } from '../contract/thread-state.ts'

const MAX_PATH_BYTES = 1024
const MAX_SEGMENT_BYTES = 255
const MAX_STEM_BYTES = 100
const MAX_EXTENSION_BYTES = 16

/**
 * Returns the normal form of a path in a thread: absolute, in Unicode NFC, without empty segments.
 * Throws for paths that another program could take for a different file.
 */
export function normalisePath(path: string): string {
  if (typeof path !== 'string') throw refused(String(path), 'it is not a text')
  if (/[\ud800-\udfff]/u.test(path))
    throw refused('with a broken character', 'it is not well-formed text')
  // oxlint-disable-next-line no-control-regex -- control characters are what this line rejects
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(path)) {
    throw refused(JSON.stringify(path.slice(0, 100)), 'it has a control character')
  }
  const name = JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path)
  if (path.includes('\\')) throw refused(name, 'it has a backslash')
  if (!path.startsWith('/')) throw refused(name, 'it does not begin with "/"')
  if (path.endsWith('/')) throw refused(name, 'it ends with "/"')
  const segments = path.normalize('NFC').split('/').filter(Boolean)
  for (const segment of segments) {
    // Browsers and some file systems drop spaces at the end of a name, so they take ".. " for "..".
    const read = segment.trim()
    if (read === '.' || read === '..') throw refused(name, `it has a segment "${segment}"`)
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
 * Returns the path for the copy of a file in another thread. The same source and salt give the same path, so
 * that repeating the copy after a crash does not create a second file.
 */
export function attachmentPath(sourcePath: string, salt: string): string {
  const name = normalisePath(sourcePath).split('/').at(-1)!
  // A dot at the beginning, or a very long ending, makes no extension: it belongs to the name.
  const dot = name.lastIndexOf('.')
  const ending = name.slice(dot)
  const isPlain = dot <= 0 || ending.length < 2 || Buffer.byteLength(ending) > MAX_EXTENSION_BYTES
  const stem = isPlain ? name : name.slice(0, dot)
  const extension = isPlain ? '' : ending
  const hash = sha256Hex(salt).slice(0, 8)
  return `/attachments/${cutBytes(stem, MAX_STEM_BYTES)}-${hash}${extension}`
}

/** Returns the longest prefix of at most `maxBytes` bytes that does not split a character. */
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
 * Returns a function that tests whether a path matches a pattern. `*` matches any text and `?` any character
 * within a segment; `**` as a whole segment matches any number of segments. All other characters match
 * themselves. A pattern begins at the root, with or without a leading `/`. No regular expression is used, so
 * no pattern can take exponential time.
 */
export function createGlob(pattern: string): (path: string) => boolean {
  const segments = pattern.normalize('NFC').split('/').filter(Boolean)
  // `/a/**` matches everything below `/a`, but not a file named `/a`.
  if (segments.at(-1) === '**') segments.push('*')
  const wanted = segments.map((segment) =>
    segment === '**' ? ANY : [...segment].map((one) => (one === '*' ? ANY : one)),
  )
  return (path) =>
    matches(path.split('/').filter(Boolean), wanted, (segment, characters) =>
      matches([...segment], characters, (character, one) => one === '?' || one === character),
    )
}

/** The item of a pattern that matches any number of items (`*` or `**`). */
const ANY = Symbol('any')

/**
 * Matches items greedily and backtracks only to the last `ANY`: if an item does not fit, that `ANY`
 * takes one more item. An earlier `ANY` need not be tried again, because the last one can take every
 * item that an earlier one could.
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
      // The cast is safe: `one` is not `ANY` and is inside the pattern.
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
  const known = signatures.find(([signature, offset]) => head.startsWith(signature, offset))
  if (known) return known[2]
  return bytes.length > 0 && isTextFile(bytes) ? 'text/plain' : DEFAULT
}

/** Returns the file extension for a media type, with its dot; `.bin` if none is known. */
export function fileExtension(mediaType: string): string {
  const type = mediaType.split(';')[0]!.trim().toLowerCase()
  if (type === 'text/plain') return '.txt'
  const found = Object.keys(byExtension).find((extension) => byExtension[extension] === type)
  return `.${found ?? 'bin'}`
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

/**
 * Copies of files for another thread. The copies refer to the same stored content and have new paths in that
 * thread.
 */
export interface CopiedFiles {
  readonly paths: readonly string[]
  readonly events: readonly RuntimeEvent[]
}

/**
 * Returns the files of this thread with these paths. `pending` contains events of the same call that
 * are not committed yet; files that these events write are found too.
 */
export function findFiles(
  { state }: { readonly state: KernelState },
  paths: readonly string[],
  pending: readonly RuntimeEvent[] = [],
): readonly FileStat[] {
  return paths.map((given) => {
    const path = normalisePath(given)
    for (const event of pending.toReversed()) {
      if (event.type !== 'file_written' || event.path !== path) continue
      const { mediaType, sizeBytes, hash = '', at: writtenAt } = event
      return { path, mediaType, sizeBytes, hash, writtenAt }
    }
    const file = state.files.get(path)
    if (!file) throw new Error(`There is no file ${given} in this thread; nothing was sent.`)
    return file
  })
}

/**
 * Returns copies of files for another thread; they refer to the same content by its hash. `salt` names
 * the message or report with which they are sent: the same salt gives the same paths, so if sending is
 * repeated after a crash, nothing is copied twice.
 */
export function copyFiles(
  context: { at(): string },
  sources: readonly FileStat[],
  salt: string,
): CopiedFiles {
  const paths: string[] = []
  const events = sources.map((file, place): RuntimeEvent => {
    const path = attachmentPath(file.path, `${salt}/${place}/${file.path}/${file.hash}`)
    paths.push(path)
    const { mediaType, sizeBytes, hash } = file
    return { type: 'file_written', at: context.at(), path, mediaType, sizeBytes, hash }
  })
  return { paths, events }
}
