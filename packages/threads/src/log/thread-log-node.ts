import {
  closeSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  realpathSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { type FileLock, lockFile } from '@skein/base/file-lock/node'
import { ThreadError } from '../issue.ts'
import { openThreadLog, type OpenThreadLogOptions, type ThreadLog } from './thread-log.ts'
import type { LogStorage } from './log-storage.ts'

/**
 * Opens the log in a file, or creates it. Any number of processes may read it; only one may write. The first
 * append takes a lock (the file `<path>.lock`), which is held until `close` or until the process ends. While
 * another process holds the lock, or when it has written since this one read the file, an append throws
 * `LogConflictError`.
 */
export async function openThreadLogFile(
  path: string,
  options?: OpenThreadLogOptions,
): Promise<ThreadLog> {
  const storage = new FileLogStorage(path)
  try {
    return await openThreadLog(storage, options)
  } catch (error) {
    storage.close()
    throw error
  }
}

/**
 * Stores a log in a file that only its owner can read. An append is one synchronous write, because for one
 * line that is faster than an asynchronous write.
 */
export class FileLogStorage implements LogStorage {
  readonly #path: string
  readonly #file: number
  readonly #lockPath: string
  #lock: FileLock | undefined
  #isNameSafe = false

  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, 'a+', 0o600)
    this.#lockPath = `${realpathSync(path)}.lock`
  }

  read(): Uint8Array {
    const bytes = new Uint8Array(fstatSync(this.#file).size)
    let at = 0
    while (at < bytes.length) {
      const count = readSync(this.#file, bytes, at, bytes.length - at, at)
      if (count === 0) return bytes.subarray(0, at)
      at += count
    }
    return bytes
  }

  append(bytes: Uint8Array, size: number): boolean {
    if (!this.#takeLock()) return false
    // Order matters: only under the lock does the size stay the same until the write.
    if (fstatSync(this.#file).size !== size) return false
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(this.#file, bytes, at)
      return true
    } catch (cause) {
      ftruncateSync(this.#file, size)
      throw new ThreadError(`The thread log could not be written: ${(cause as Error).message}`, {
        code: 'LOG_WRITE_FAILED',
        hint: 'Nothing was added. Check free space and permissions, then append again.',
        cause,
      })
    }
  }

  truncate(size: number, read: number): boolean {
    const hadLock = this.#lock !== undefined
    if (!this.#takeLock()) return false
    try {
      if (fstatSync(this.#file).size !== read) return false
      ftruncateSync(this.#file, size)
      return true
    } finally {
      // Opening a log does not make this process its writer; the first append does.
      if (!hadLock) this.#releaseLock()
    }
  }

  async sync(): Promise<void> {
    await promisify(fdatasync)(this.#file)
    if (this.#isNameSafe) return
    // The name of a new file survives a power cut only when its folder is synced too.
    try {
      const folder = openSync(dirname(this.#path), 'r')
      fsyncSync(folder)
      closeSync(folder)
    } catch {
      // Windows cannot open a folder, and does not need the folder to be synced.
    }
    this.#isNameSafe = true
  }

  close(): void {
    this.#releaseLock()
    closeSync(this.#file)
  }

  #takeLock(): boolean {
    if (this.#lock) return true
    const lock = lockFile(this.#lockPath)
    if ('heldBy' in lock) return false
    this.#lock = lock
    return true
  }

  #releaseLock(): void {
    this.#lock?.unlock()
    this.#lock = undefined
  }
}
