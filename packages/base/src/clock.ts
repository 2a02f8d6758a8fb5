/** Where the time comes from. */
export interface Clock {
  /** Milliseconds since 1970, as `Date.now()`. */
  now(): number
}

/** The time of the machine. */
export const systemClock: Clock = { now: () => Date.now() }

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock {
  advance(ms: number): void
}

/** A clock for tests and simulation; starts at `start`, 0 by default. */
export function manualClock(start = 0): ManualClock {
  let time = start
  return {
    now: () => time,
    advance(ms) {
      time += ms
    },
  }
}
