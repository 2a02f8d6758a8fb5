import { randomUUID } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SkeinError } from '@skein/base'
import type { Hash } from '../contract/envelope.ts'
import type { PayloadStore } from '../journal/journal.ts'

/** Locks that this process holds, by path. */
const held = new Set<string>()

/**
 * Locks a folder for this process, on one machine; returns the function that unlocks it. A lock file
 * whose process is gone is replaced, so a killed process leaves nothing to clean up by hand.
 */
export function lockFolder(dir: string): () => void {
  const path = join(realpathSync(dir), 'lock')
  if (held.has(path)) throw locked(dir, process.pid)
  for (let tries = 0; !createLock(path); tries++) {
    const owner = ownerOf(path)
    if (tries > 3 || (owner !== undefined && isAlive(owner))) throw locked(dir, owner)
    unlinkSync(path)
  }
  held.add(path)
  return () => {
    held.delete(path)
    if (ownerOf(path) === process.pid) unlinkSync(path)
  }
}

/** False when the lock file exists already. `wx` makes the test and the creation one step. */
function createLock(path: string): boolean {
  try {
    const file = openSync(path, 'wx', 0o600)
    writeSync(file, `${process.pid}\n`)
    closeSync(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function ownerOf(path: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(path, 'utf8'), 10)
    return pid > 0 ? pid : undefined
  } catch {
    return undefined // Removed in between: nobody holds it.
  }
}

/**
 * True when a process with this id runs. Our own id in a lock that we do not hold was written before
 * a restart: in a container, a restarted process often gets the same id.
 */
function isAlive(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function locked(dir: string, pid: number | undefined): SkeinError {
  return new SkeinError(`The log in "${dir}" is in use by process ${pid ?? 'unknown'}.`, {
    code: 'LOG_LOCKED',
    hint: 'Only one process may write a log. If that process does not write it, delete the file "lock".',
  })
}

/** Brings a folder to disk. The name of a new file survives a crash only once its folder is synced. */
export async function syncFolder(dir: string): Promise<void> {
  try {
    const folder = await open(dir, 'r')
    await folder.sync()
    await folder.close()
  } catch {
    // Windows cannot open folders, and needs no such sync.
  }
}

/**
 * A task that callers share. Each call is answered by a run that began after the call: callers that
 * arrive while one run is in progress wait together for the next. This is what makes group commit.
 */
export class SharedTask<T> {
  readonly #task: () => Promise<T>
  #running: Promise<unknown> | undefined
  #next: Promise<T> | undefined

  constructor(task: () => Promise<T>) {
    this.#task = task
  }

  run(): Promise<T> {
    return (this.#next ??= this.#runAfter(this.#running))
  }

  async #runAfter(before: Promise<unknown> | undefined): Promise<T> {
    // A failure of the run before is reported to that run's own callers.
    await before?.catch(() => undefined)
    // One more turn of the queue, so that all callers of the same tick share this run.
    await undefined
    this.#next = undefined
    const running = this.#task()
    this.#running = running
    return running
  }
}

/** Payloads that can be erased one by one. */
export interface ErasablePayloads extends PayloadStore {
  /** Deletes a payload; the log still verifies. True if there was one. */
  erase(hash: Hash): Promise<boolean>
}

/** Payloads as files in a folder, apart from the log. Equal payloads are stored once. */
export function filePayloads({ dir }: { readonly dir: string }): ErasablePayloads {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const pathOf = (hash: Hash): string => join(dir, hash.replace(/^sha256:/, ''))
  return {
    async put(hash, text, { durable = false } = {}) {
      const path = pathOf(hash)
      const draft = `${path}.${randomUUID()}`
      const file = await open(draft, 'wx', 0o600)
      try {
        await file.writeFile(text)
        if (durable) await file.datasync()
      } finally {
        await file.close()
      }
      // Renaming is atomic: a reader never sees half a payload.
      await rename(draft, path)
      if (durable) await syncFolder(dir)
    },
    get: (hash) => unlessAbsent(() => readFile(pathOf(hash), 'utf8'), undefined),
    erase: (hash) => unlessAbsent(() => rm(pathOf(hash)).then(() => true), false),
  }
}

async function unlessAbsent<T, U>(read: () => Promise<T>, absent: U): Promise<T | U> {
  try {
    return await read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return absent
    throw error
  }
}
