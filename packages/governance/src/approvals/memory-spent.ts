import { systemClock, type Clock } from '@skein/base'
import type { SpentStore } from '../approval.ts'

/** Spent tokens of one process. For tests, and where one process does everything and forgets all at its end. */
export function memorySpent({ clock = systemClock }: { readonly clock?: Clock } = {}): SpentStore {
  const spent = new Map<string, number>()
  let nextSweep = 0
  return {
    async spend(jti, exp) {
      const now = clock.now()
      if (now >= nextSweep) {
        for (const [key, end] of spent) if (end < now) spent.delete(key)
        nextSweep = now + 60_000
      }
      if (spent.has(jti)) return false
      spent.set(jti, exp)
      return true
    },
  }
}
