import { createHash } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { systemClock, type Clock } from '@skein/base'
import { syncFolder } from '../audit/folder-node.ts'
import type { SpentStore } from '../contract/spent-store.ts'

/** A store of spent tokens in a folder. `prune` removes expired tokens. */
export interface FileSpentStore extends SpentStore {
  /** Deletes the tokens whose `exp` has passed and returns their number. */
  prune(): number
}

/**
 * Creates a store of spent tokens as files in a folder that processes on one machine share. Creating a
 * new file is atomic in the file system, so `spend` returns true to exactly one caller per token. The
 * file and its name are on disk before `spend` resolves.
 */
export function fileSpent({
  dir,
  clock = systemClock,
}: {
  readonly dir: string
  readonly clock?: Clock
}): FileSpentStore {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  return {
    async spend(jti, exp) {
      if (exp < prunedUntil(dir)) return false
      let file: number
      try {
        // The file name is a hash, because a token id could contain a path.
        const name = createHash('sha256').update(jti).digest('hex')
        file = openSync(join(dir, name), 'wx', 0o600)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
        throw error
      }
      try {
        writeSync(file, `${exp}\n`)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      await syncFolder(dir)
      return true
    },
    prune: () => prune(dir, clock.now()),
  }
}

/**
 * Returns the latest time at which expired tokens were deleted. A token that had expired by that time may
 * have been spent and deleted, so it is refused, even if the clock was set back later.
 */
function prunedUntil(dir: string): number {
  try {
    return Number.parseFloat(readFileSync(join(dir, PRUNED), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return -Infinity
    throw error
  }
}

const PRUNED = 'pruned'

function prune(dir: string, now: number): number {
  let count = 0
  // This time is written before the first token is deleted. Its file is replaced as a whole, so that no
  // reader finds the file empty.
  const next = join(dir, `${PRUNED}.${process.pid}`)
  writeFileSync(next, `${Math.max(now, prunedUntil(dir))}\n`, { mode: 0o600, flush: true })
  renameSync(next, join(dir, PRUNED))
  for (const name of readdirSync(dir)) {
    if (!/^[0-9a-f]{64}$/.test(name)) continue
    // An empty file (NaN) is just being written by another process, so it is kept.
    const exp = Number.parseFloat(readFileSync(join(dir, name), 'utf8'))
    if (!(exp < now)) continue
    unlinkSync(join(dir, name))
    count++
  }
  return count
}
