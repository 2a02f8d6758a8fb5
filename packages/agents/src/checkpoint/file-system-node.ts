import type * as Files from 'node:fs/promises'
import type * as Path from 'node:path'
import type * as Zlib from 'node:zlib'
import { invalidUse } from '../contract/agent-error.ts'

interface ProcessLike {
  getBuiltinModule?(name: 'node:fs/promises'): typeof Files
  getBuiltinModule?(name: 'node:path'): typeof Path
  getBuiltinModule?(name: 'node:zlib'): typeof Zlib
}

/** The built-in modules that file checkpoints use. */
export interface FileSystem {
  readonly files: typeof Files
  readonly path: typeof Path
  readonly zlib: typeof Zlib
}

/**
 * Returns the built-in modules of Node, Bun or Deno. They are looked up on use, so that this file can be
 * imported everywhere.
 */
export function fileSystem(): FileSystem {
  const { process } = globalThis as { process?: ProcessLike }
  const files = process?.getBuiltinModule?.('node:fs/promises')
  const path = process?.getBuiltinModule?.('node:path')
  const zlib = process?.getBuiltinModule?.('node:zlib')
  if (files && path && zlib) return { files, path, zlib }
  throw invalidUse(
    'This platform has no file system for checkpoints.',
    'Use memoryCheckpoints(), or write a CheckpointStore over the storage of this platform.',
  )
}

/**
 * Replaces a file atomically: a reader sees the whole old content or the whole new one. With `fsync`, the new
 * one is on the disk.
 */
export async function writeWhole(
  { files, path }: FileSystem,
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
  if (fsync) await syncFolder(files, path.dirname(file))
}

/** Syncs a folder to disk. That a file was replaced survives a power cut only if its folder was synced. */
async function syncFolder(files: typeof Files, dir: string): Promise<void> {
  try {
    const folder = await files.open(dir, 'r')
    await folder.sync()
    await folder.close()
  } catch {
    // Windows cannot open folders and does not need this sync.
  }
}

/** Returns the bytes of a file, or undefined if it does not exist. */
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

/** True for the error of a file that does not exist. */
export function isMissing(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** The largest unpacked size of a checkpoint file in bytes: the length of the longest string in V8. */
const MAX_BYTES = 2 ** 29 - 24

/** Compresses a text. */
export function gzip({ zlib }: FileSystem, text: string): Promise<Uint8Array> {
  return new Promise((resolve, reject) =>
    zlib.gzip(text, (error, bytes) => (error ? reject(error) : resolve(bytes))),
  )
}

/** Decompresses bytes. */
export function gunzip({ zlib }: FileSystem, bytes: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) =>
    zlib.gunzip(bytes, { maxOutputLength: MAX_BYTES }, (error, unpacked) =>
      error ? reject(error) : resolve(unpacked),
    ),
  )
}

/** True for gzip data. Checks the content, because a file may have been renamed. */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}
