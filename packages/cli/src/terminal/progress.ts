import { formatDuration } from './format.ts'
import type { Output } from './output.ts'

/** Is called again and again while a command works, with the bytes that are done and, if it is known, their total. */
export type OnProgress = (doneBytes: number, totalBytes?: number) => void

/** Time between two updates, in ms. A command may report each row, of which there may be millions. */
const UPDATE_MS = 200
/** The time left is shown after this time, in ms: the speed of the first moments says little. */
const GUESS_MS = 1000

/**
 * Shows on a terminal how far a command is, in one line that is updated: `reading the store: 1.2 GB of 8.6 GB, 3 min
 * 20 s left`. The next line that the command writes replaces it. Without a terminal nothing is shown.
 */
export function showProgress(
  output: Pick<Output, 'status'>,
  what: string,
  now: () => number = () => performance.now(),
): OnProgress {
  const start = now()
  let shownAt = -Infinity
  return (done, total) => {
    const at = now()
    if (at - shownAt < UPDATE_MS) return
    const isFirst = shownAt === -Infinity
    shownAt = at
    output.status(`${what}: ${progressText(done, total, at - start)}`, isFirst)
  }
}

function progressText(done: number, total: number | undefined, ms: number): string {
  if (total === undefined) return byteText(done)
  // A total is the size of a file, which may be a little more or less than what is in it.
  const part = Math.min(done / Math.max(total, 1), 1)
  const text = `${byteText(Math.min(done, total))} of ${byteText(total)}`
  if (ms < GUESS_MS || part === 0) return text
  return `${text}, ${formatDuration((ms * (1 - part)) / part)} left`
}

/** Formats a number of bytes, e.g. `1.2 GB`. */
export function byteText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const unit = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1)
  const value = bytes / 1000 ** unit
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${units[unit]}`
}
