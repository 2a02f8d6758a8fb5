import type * as Files from 'node:fs/promises'
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
    size = (await files.stat(path)).size
    // Copied to a plain Uint8Array, because a Buffer has its own JSON form and may share a memory pool.
    bytes = size > maxBytes ? new Uint8Array() : Uint8Array.from(await files.readFile(path))
  } catch (error) {
    throw unreadable(path, (error as { code?: string }).code ?? 'it cannot be read', error)
  }
  if (Math.max(size, bytes.length) === 0) throw emptyMedia(`The file ${JSON.stringify(path)}`)
  if (Math.max(size, bytes.length) <= maxBytes) return bytes
  throw invalidMedia(
    `The file ${JSON.stringify(path)} has ${size} bytes; the limit is ${maxBytes}.`,
    'Raise maxBytes if it may be that large.',
  )
}

function unreadable(path: string, reason: string, cause: unknown): Error {
  return invalidMedia(
    `The file ${JSON.stringify(path)} was not read: ${reason}.`,
    'Check the path. Data that you have already goes in with fromBase64.',
    cause,
  )
}
