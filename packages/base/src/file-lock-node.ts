import { randomUUID } from 'node:crypto'
import {
  constants,
  copyFileSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'

/** The paths of the lock files that this copy of the module holds. */
const held = new Set<string>()

/** A lock that this process holds until it calls `unlock`. */
export interface FileLock {
  unlock(): void
}

/** The process that holds a lock; undefined if the lock file does not name it. */
export interface FileLockHolder {
  readonly heldBy: number | undefined
}

/**
 * Takes a lock by creating the file at `path`, or returns who holds it. The lock works only among processes of the
 * same machine. A lock file whose process no longer runs is replaced, so it need not be removed by hand after a
 * crash. The path must be the same text in every process: resolve links in it first.
 */
export function lockFile(path: string): FileLock | FileLockHolder {
  if (held.has(path)) return { heldBy: process.pid }
  const own = `${process.pid} ${randomUUID()}\n`
  const text = takeLock(path, own)
  if (text !== own) return { heldBy: parseLock(text)?.pid }
  held.add(path)
  return {
    unlock() {
      held.delete(path)
      if (readLock(path) === own) rmSync(path, { force: true })
    },
  }
}

/**
 * Takes the lock at `path`, unless a running process holds it. Returns the text of the lock: `own` if it was
 * taken, otherwise what its holder wrote; empty if that is not known.
 */
function takeLock(path: string, own: string): string {
  for (let tries = 0; tries < 10; tries++) {
    const text = readLock(path)
    if (text === undefined) {
      if (placeLock(path, own, linkNew)) return own
      continue // Another process was faster.
    }
    const lock = parseLock(text)
    if (!lock || isAlive(lock.pid, path)) return text
    // Only the holder of a second lock, which is named after the dead one, may replace the dead one.
    // Otherwise a slow process could replace the new lock of a faster one.
    const turn = `${path}.${lock.id}`
    const holder = takeLock(turn, own)
    if (holder !== own) return holder
    try {
      if (readLock(path) === text && placeLock(path, own, renameSync)) return own
    } finally {
      rmSync(turn, { force: true })
    }
  }
  return ''
}

/**
 * Puts a lock file in its place in one atomic step, so that no reader sees half of it. Returns false if there
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
 * True when the process that wrote a lock runs. A lock with our own process id that is not in `held` has two possible
 * origins: a worker thread or a second copy of this module in this process wrote it, or a process that ran before us
 * (a restarted process in a container often gets the same id). The time of the file tells which.
 */
function isAlive(pid: number, path: string): boolean {
  if (pid === process.pid) return isFromThisProcess(path)
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function isFromThisProcess(path: string): boolean {
  try {
    return statSync(path).mtimeMs > Date.now() - process.uptime() * 1000
  } catch {
    return false // The lock is gone, so the next try can take it.
  }
}
