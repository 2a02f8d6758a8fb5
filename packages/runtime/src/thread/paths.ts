import { sha256Hex } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'

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
    const text = segment.trim()
    if (text === '.' || text === '..') throw refused(name, `it has a segment "${segment}"`)
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
