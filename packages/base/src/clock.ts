/** A source of the current time. */
export interface Clock {
  /** Milliseconds since 1970, as `Date.now()`. */
  now(): number
}

/** The clock of the machine. */
export const systemClock: Clock = { now: () => Date.now() }

/** A clock that changes only when `advance` is called. */
export interface ManualClock extends Clock {
  advance(ms: number): void
}

/** Creates a clock for tests and simulation; it starts at `start`, 0 by default. */
export function manualClock(start = 0): ManualClock {
  let time = start
  return {
    now: () => time,
    advance(ms) {
      time += ms
    },
  }
}
