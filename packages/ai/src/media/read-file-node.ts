import type * as Files from 'node:fs/promises'
import { joinBytes } from './bytes.ts'
import { emptyMedia, invalidMedia } from './media-type.ts'

interface ProcessLike {
  getBuiltinModule?(name: 'node:fs/promises'): typeof Files
}

const DEFAULT_MAX_BYTES = 50 * 1024 * 1024

/** Reads a file on Node, Bun and Deno. On other platforms it throws an error that says so. */
export async function readFileBytes(
  path: string,
  maxBytes: number = DEFAULT_MAX_BYTES,
): Promise<Uint8Array> {
  const { process } = globalThis as { process?: ProcessLike }
  const files = process?.getBuiltinModule?.('node:fs/promises')
  if (!files) throw unreadable(path, 'this platform has no files', undefined)
  let size: number
  let bytes: Uint8Array
  try {
    const file = await files.open(path)
    try {
      size = (await file.stat()).size
      bytes = size > maxBytes ? new Uint8Array() : await readUpTo(file, size, maxBytes)
    } finally {
      await file.close()
    }
  } catch (error) {
    throw unreadable(path, (error as { code?: string }).code ?? 'it cannot be read', error)
  }
  if (Math.max(size, bytes.length) === 0) throw emptyMedia(`The file ${JSON.stringify(path)}`)
  if (Math.max(size, bytes.length) <= maxBytes) return bytes
  const length = size > maxBytes ? size : `at least ${bytes.length}`
  throw invalidMedia(
    `The file ${JSON.stringify(path)} has ${length} bytes; the limit is ${maxBytes}.`,
    'Raise maxBytes if it may be that large.',
  )
}

/**
 * Reads a file to its end, or until it has more bytes than the limit: a device or a pipe has a size of 0 and may
 * never end, and a file may grow while it is read.
 */
async function readUpTo(
  file: Files.FileHandle,
  size: number,
  maxBytes: number,
): Promise<Uint8Array> {
  const buffer = new Uint8Array(Math.max(size, 65_536))
  const pieces: Uint8Array[] = []
  for (let length = 0; length <= maxBytes;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null)
    if (bytesRead === 0) break
    pieces.push(buffer.slice(0, bytesRead))
    length += bytesRead
  }
  return joinBytes(pieces)
}

function unreadable(path: string, reason: string, cause: unknown): Error {
  return invalidMedia(
    `The file ${JSON.stringify(path)} was not read: ${reason}.`,
    'Check the path. Data that you have already goes in with fromBase64.',
    cause,
  )
}
