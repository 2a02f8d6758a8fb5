import { manualClock, type Clock } from '@skein/base'
import type { Timer } from '../../src/governor/options.ts'

/** A clock whose timers fire when it is moved. */
export interface TestTime extends Clock {
  readonly timer: Timer
  /** Moves the time and lets what became due happen, in order. */
  advance(ms: number): Promise<void>
}

export function manualTime(start: number = Date.UTC(2026, 0, 1)): TestTime {
  const clock = manualClock(start)
  const due = new Set<{ at: number; fire: () => void }>()
  return {
    now: () => clock.now(),
    timer: (ms, fire) => {
      const entry = { at: clock.now() + ms, fire }
      due.add(entry)
      return () => void due.delete(entry)
    },
    async advance(ms) {
      const end = clock.now() + ms
      for (;;) {
        await settled()
        const next = [...due].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!next) break
        due.delete(next)
        clock.advance(Math.max(0, next.at - clock.now()))
        next.fire()
      }
      clock.advance(Math.max(0, end - clock.now()))
      await settled()
    },
  }
}

/** Lets everything that waits for promises only run on. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
}
