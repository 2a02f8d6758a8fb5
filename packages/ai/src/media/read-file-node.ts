import type * as Files from 'node:fs'
import { invalidValue } from '../contract/error.ts'
import { joinBytes } from './bytes.ts'
import { emptyMedia } from './media-type.ts'

interface ProcessLike {
  getBuiltinModule?(name: 'node:fs'): typeof Files
}

const DEFAULT_MAX_BYTES = 50 * 1024 * 1024

/** Reads a file on Node, Bun and Deno. On other platforms it throws an error that says so. */
export async function readFileBytes(
  path: string,
  maxBytes: number = DEFAULT_MAX_BYTES,
): Promise<Uint8Array> {
  const { process } = globalThis as { process?: ProcessLike }
  const files = process?.getBuiltinModule?.('node:fs')
  if (!files) throw unreadable(path, 'this platform has no files', undefined)
  const pieces: Uint8Array[] = []
  let size: number
  try {
    size = (await files.promises.stat(path)).size
    // Reads at most one byte more than the limit, because a device or a pipe has a size of 0 and may never end.
    const end = Math.floor(maxBytes)
    if (size <= end)
      for await (const piece of files.createReadStream(path, { end })) pieces.push(piece)
  } catch (error) {
    throw unreadable(path, (error as { code?: string }).code ?? 'it cannot be read', error)
  }
  // Copied to a plain Uint8Array, because a Buffer has its own JSON form and may share a memory pool.
  const bytes = new Uint8Array(joinBytes(pieces))
  if (Math.max(size, bytes.length) === 0) throw emptyMedia(`The file ${JSON.stringify(path)}`)
  if (Math.max(size, bytes.length) <= maxBytes) return bytes
  throw invalidValue(
    `The file ${JSON.stringify(path)} has at least ${Math.max(size, bytes.length)} bytes; the limit is ${maxBytes}.`,
    'Raise maxBytes if it may be that large.',
  )
}

function unreadable(path: string, reason: string, cause: unknown): Error {
  return invalidValue(
    `The file ${JSON.stringify(path)} was not read: ${reason}.`,
    'Check the path. Data that you have already goes in with fromBase64.',
    cause,
  )
}
