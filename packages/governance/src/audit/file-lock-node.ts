import { closeSync, openSync, readFileSync, realpathSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { SkeinError } from '@skein/base'

const held = new Set<string>()

/**
 * Takes a folder for this process alone, on one machine; returns what gives it back. A lock whose
 * process is gone is taken over, so that a killed process leaves nothing to clean up.
 */
export function lockFolder(dir: string): () => void {
  const path = join(realpathSync(dir), 'lock')
  if (held.has(path)) throw locked(dir, process.pid)
  for (let tries = 0; !create(path); tries++) {
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

function create(path: string): boolean {
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
    return undefined // Removed in between: nobody's.
  }
}

/** Our own id in a lock that we do not hold is one from before a restart, as in a container. */
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
    hint: 'One process writes a log. If that one is not a writer of it, remove the file "lock".',
  })
}
