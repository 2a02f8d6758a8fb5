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
