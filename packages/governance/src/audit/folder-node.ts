import { randomUUID } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SkeinError } from '@skein/base'
import { lockFile } from '@skein/base/file-lock/node'
import type { Hash } from '../contract/envelope.ts'
import type { PayloadStore } from '../contract/evidence.ts'

/**
 * Locks a folder for this process and returns the function that unlocks it. The lock of a process that no longer
 * runs is taken over.
 */
export function lockFolder(dir: string): () => void {
  const lock = lockFile(join(realpathSync(dir), 'lock'))
  if ('heldBy' in lock) throw locked(dir, lock.heldBy)
  return () => lock.unlock()
}

function locked(dir: string, pid: number | undefined): SkeinError {
  return new SkeinError(`The log in "${dir}" is in use by process ${pid ?? 'unknown'}.`, {
    code: 'LOG_LOCKED',
    hint: 'Only one process may write a log. If that process does not write it, delete the file "lock".',
  })
}

/** Syncs a folder to disk. The name of a new file survives a crash only if its folder was synced. */
export async function syncFolder(dir: string): Promise<void> {
  try {
    const folder = await open(dir, 'r')
    await folder.sync()
    await folder.close()
  } catch {
    // Windows cannot open folders and does not need this sync.
  }
}

/**
 * Runs a task for several callers together. Every caller gets the result of a run that started after its
 * call; callers that arrive during a run share the next one. The file log uses it to sync many entries to
 * disk together (group commit).
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
    // An error of the previous run is ignored here, because the callers of that run get it.
    await before?.catch(() => undefined)
    // Waits one more microtask, so that all callers of the same tick share this run.
    await undefined
    this.#next = undefined
    const running = this.#task()
    this.#running = running
    return running
  }
}

/** A payload store whose payloads can be erased one by one. */
export interface ErasablePayloads extends PayloadStore {
  /** Deletes a payload and returns whether it existed. The log can still be verified afterwards. */
  erase(hash: Hash): Promise<boolean>
}

/**
 * Creates a payload store with one file per payload in a folder, separate from the log. Equal payloads
 * are stored once.
 */
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
