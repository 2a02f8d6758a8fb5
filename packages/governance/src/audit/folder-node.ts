import { randomUUID } from 'node:crypto'
import {
  constants,
  copyFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SkeinError } from '@skein/base'
import type { Hash } from '../contract/envelope.ts'
import type { PayloadStore } from '../contract/evidence.ts'

/** The paths of the lock files that this process holds. */
const held = new Set<string>()

/**
 * Locks a folder for this process and returns the function that unlocks it. The lock works only among
 * processes of the same machine. A lock file whose process no longer runs is replaced, so it need not be
 * removed by hand after a crash.
 */
export function lockFolder(dir: string): () => void {
  const path = join(realpathSync(dir), 'lock')
  if (held.has(path)) throw locked(dir, process.pid)
  const own = `${process.pid} ${randomUUID()}\n`
  const found = takeLock(path, own)
  if (found !== own) throw locked(dir, parseLock(found)?.pid)
  held.add(path)
  return () => {
    held.delete(path)
    if (readLock(path) === own) rmSync(path, { force: true })
  }
}

/**
 * Takes the lock at `path`, unless a running process holds it. Returns the text of the lock: `own` if it was
 * taken, otherwise what its holder wrote; empty if that is not known.
 */
function takeLock(path: string, own: string): string {
  for (let tries = 0; tries < 10; tries++) {
    const found = readLock(path)
    if (found === undefined) {
      if (placeLock(path, own, linkNew)) return own
      continue // Another process was faster.
    }
    const lock = parseLock(found)
    if (!lock || isAlive(lock.pid)) return found
    // Only the holder of a second lock, which is named after the dead one, may replace the dead one.
    // Otherwise a slow process could replace the new lock of a faster one.
    const turn = `${path}.${lock.id}`
    const holder = takeLock(turn, own)
    if (holder !== own) return holder
    try {
      if (readLock(path) === found && placeLock(path, own, renameSync)) return own
    } finally {
      rmSync(turn, { force: true })
    }
  }
  return ''
}

/**
 * Puts a lock file in its place in one atomic step, so that nobody reads half of it. Returns false if there
 * is one already.
 */
function placeLock(
  path: string,
  text: string,
  place: (draft: string, path: string) => void,
): boolean {
  const draft = `${path}.${randomUUID()}.draft`
  try {
    // Without `flush` the file could be empty after a power failure.
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true })
    place(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Gives a file a second name; throws EEXIST if the name is taken. */
function linkNew(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    // Some file systems have no hard links. A copy is empty for a moment; `parseLock` knows such a lock.
    copyFileSync(draft, path, constants.COPYFILE_EXCL)
  }
}

/** Returns the text of a lock file: undefined if there is none, empty if it cannot be read. */
function readLock(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : ''
  }
}

/** Reads who holds a lock; undefined if its text is incomplete. Earlier versions wrote no id. */
function parseLock(text: string): { readonly pid: number; readonly id: string } | undefined {
  const [, pid, id = pid] = /^(\d+)(?: ([\w-]{36}))?\n$/.exec(text) ?? []
  return pid !== undefined && id !== undefined ? { pid: Number(pid), id } : undefined
}

/**
 * True when another process with this id runs. Our own id in a lock that we do not hold was written
 * before a restart, because a restarted process in a container often gets the same id.
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
 * Runs a task for several callers at once. Every caller gets the result of a run that started after its
 * call; callers that arrive during a run share the next one. The file log uses it to sync many entries to
 * disk at once (group commit).
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
