import { manualClock, type ManualClock } from '@skein/base'
import type { Timers } from '../dispatch/timers.ts'

/** Timers that ring only when time is moved by hand. */
export interface ManualTimers extends Timers {
  /** Moves time on, ringing what comes due in order; the work of each is done before the next. */
  advance(ms: number): Promise<void>
  /** Moves time to the next ring. False when there is none. */
  advanceToNext(): Promise<boolean>
  /** Times of the rings to come, the earliest first. */
  pending(): readonly number[]
}

interface Ring {
  readonly at: number
  readonly callback: () => void
}

/** Virtual time for tests and simulations; `clock` is moved along with it. */
export function manualTimers(clock: ManualClock = manualClock()): ManualTimers {
  const rings = new Set<Ring>()
  const next = () => [...rings].toSorted((a, b) => a.at - b.at)[0]
  const ring = async (it: Ring) => {
    rings.delete(it)
    clock.advance(Math.max(it.at - clock.now(), 0))
    it.callback()
    await quiet()
  }
  return {
    now: () => clock.now(),
    set(ms, callback) {
      const it: Ring = { at: clock.now() + Math.max(ms, 0), callback }
      rings.add(it)
      return it
    },
    clear: (handle) => void rings.delete(handle as Ring),
    async advance(ms) {
      const until = clock.now() + ms
      for (let it = next(); it && it.at <= until; it = next()) await ring(it)
      clock.advance(until - clock.now())
      await quiet()
    },
    async advanceToNext() {
      const it = next()
      if (it) await ring(it)
      return it !== undefined
    },
    pending: () => [...rings].map(({ at }) => at).toSorted((a, b) => a - b),
  }
}

/** Lets promises that are resolved already run their course. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
