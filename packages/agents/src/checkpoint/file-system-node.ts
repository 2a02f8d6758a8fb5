import type * as Files from 'node:fs/promises'
import type * as Path from 'node:path'
import type * as Zlib from 'node:zlib'
import { invalidRequest } from '../agent-error.ts'

interface ProcessLike {
  getBuiltinModule?(name: 'node:fs/promises'): typeof Files
  getBuiltinModule?(name: 'node:path'): typeof Path
  getBuiltinModule?(name: 'node:zlib'): typeof Zlib
}

export interface FileSystem {
  readonly files: typeof Files
  readonly path: typeof Path
  readonly zlib: typeof Zlib
}

/** What Node, Bun and Deno have. Asked for when it is used, so that importing works everywhere. */
export function fileSystem(): FileSystem {
  const { process } = globalThis as { process?: ProcessLike }
  const files = process?.getBuiltinModule?.('node:fs/promises')
  const path = process?.getBuiltinModule?.('node:path')
  const zlib = process?.getBuiltinModule?.('node:zlib')
  if (files && path && zlib) return { files, path, zlib }
  throw invalidRequest(
    'This platform has no files for checkpoints.',
    'Use memoryCheckpoints(), or a CheckpointStore over the storage that it has.',
  )
}

/** Replaces a file in one go: who reads sees the old text or the new one, whole. */
export async function writeWhole(
  { files }: FileSystem,
  file: string,
  data: string | Uint8Array,
  { fsync, unique }: { fsync: boolean; unique: string },
): Promise<void> {
  const temporary = `${file}.${unique}.tmp`
  try {
    const handle = await files.open(temporary, 'wx', 0o600)
    try {
      await handle.writeFile(data)
      if (fsync) await handle.sync()
    } finally {
      await handle.close()
    }
    await files.rename(temporary, file)
  } catch (error) {
    await files.rm(temporary, { force: true })
    throw error
  }
}

/** The bytes of a file, undefined if there is none. */
export async function readIfThere(
  { files }: FileSystem,
  file: string,
): Promise<Uint8Array | undefined> {
  try {
    return await files.readFile(file)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export function isMissing(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ENOENT' || code === 'ENOTDIR'
}
