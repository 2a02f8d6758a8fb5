import type { TimelineRow } from './bars.ts'

/** A part of the timeline's time scale. Idle parts have a small fixed width. */
export interface ClockPiece {
  readonly from: number
  readonly to: number
  /** The position and the width of this part, in units of the scale. */
  readonly start: number
  readonly width: number
  readonly isIdle: boolean
}

/** A time scale on which long idle periods are shortened. */
export interface TimelineClock {
  readonly pieces: readonly ClockPiece[]
  readonly width: number
  /** Returns the position of a time, in units of the scale. */
  at(time: number): number
  /** The time at a place. */
  timeAt(place: number): number
}

/** An idle period is shortened if it is longer than this fraction of the whole time. */
const IDLE_PART = 0.08
const MIN_IDLE_MS = 1000
/** The width of a shortened period, as a fraction of the whole width. */
const FOLD_PART = 0.035

/**
 * Creates the time scale for rows. Periods in which nothing runs are shortened; waiting for a person counts as idle.
 */
export function clockOf(rows: readonly TimelineRow[]): TimelineClock {
  const busy = rows
    .flatMap(({ stretches, kind }) =>
      stretches.filter((one) => one.kind === 'run' || (one.kind === 'queue' && kind !== 'person')),
    )
    .toSorted((a, b) => a.from - b.from)
  const first = Math.min(...rows.slice(0, 1).map(({ from }) => from), busy[0]?.from ?? Infinity)
  const last = rows.reduce((end, { to }) => Math.max(end, to), first)
  const gaps: { from: number; to: number }[] = []
  let busyMs = 0
  let until = first
  for (const { from, to } of busy) {
    if (from > until) gaps.push({ from: until, to: from })
    if (to > until) busyMs += to - Math.max(from, until)
    until = Math.max(until, to)
  }
  if (last > until) gaps.push({ from: until, to: last })
  const least = Math.max(MIN_IDLE_MS, busyMs * IDLE_PART)
  const folded = gaps.filter(({ from, to }) => to - from > least)
  const shownMs = last - first - folded.reduce((sum, { from, to }) => sum + to - from, 0)
  const foldWidth = Math.max(shownMs, 1) * FOLD_PART
  const pieces: ClockPiece[] = []
  let [time, place] = [first, 0]
  const add = (to: number, isIdle: boolean): void => {
    if (to <= time) return
    const width = isIdle ? foldWidth : to - time
    pieces.push({ from: time, to, start: place, width, isIdle })
    place += width
    time = to
  }
  for (const gap of folded) {
    add(gap.from, false)
    add(gap.to, true)
  }
  add(last, false)
  if (pieces.length === 0) {
    pieces.push({ from: first, to: first + 1, start: 0, width: 1, isIdle: false })
    place = 1
  }
  const find = (isIn: (piece: ClockPiece) => boolean): ClockPiece => {
    let [low, high] = [0, pieces.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (isIn(pieces[middle]!)) high = middle
      else low = middle + 1
    }
    return pieces[low]!
  }
  return {
    pieces,
    width: place,
    at(wanted) {
      const piece = find(({ to }) => wanted <= to)
      const part = (wanted - piece.from) / (piece.to - piece.from)
      return piece.start + Math.min(1, Math.max(0, part)) * piece.width
    },
    timeAt(wanted) {
      const piece = find(({ start, width }) => wanted <= start + width)
      return piece.from + ((wanted - piece.start) / piece.width) * (piece.to - piece.from)
    },
  }
}
