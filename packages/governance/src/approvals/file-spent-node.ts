import { createHash } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { systemClock, type Clock } from '@skein/base'
import { syncFolder } from '../audit/folder-node.ts'
import type { SpentStore } from '../contract/approval.ts'

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

function prune(dir: string, now: number): number {
  let removed = 0
  for (const name of readdirSync(dir)) {
    if (!/^[0-9a-f]{64}$/.test(name)) continue
    // The number of an empty file is NaN. Another process is just writing such a file, so it is kept.
    const exp = Number.parseFloat(readFileSync(join(dir, name), 'utf8'))
    if (!(exp < now)) continue
    unlinkSync(join(dir, name))
    removed++
  }
  return removed
}
