import { type Clock, systemClock } from '@skein/base'

/** Stores the ids of approval tokens that were spent, so that no token is used twice. */
export interface SpentStore {
  /**
   * Marks a token as spent, atomically. Returns true only for the first caller among all processes that
   * share the store. `exp` is the time, in milliseconds since 1970, after which the store may delete the
   * token's id.
   */
  spend(jti: string, exp: number): Promise<boolean>
}

/**
 * Creates a store of spent tokens in memory, for tests and for systems with a single process whose tokens
 * need not stay spent after it ends.
 */
export function memorySpent({ clock = systemClock }: { readonly clock?: Clock } = {}): SpentStore {
  const ends = new Map<string, number>()
  let sweptAt = -Infinity
  return {
    async spend(jti, exp) {
      const now = clock.now()
      if (now >= sweptAt + 60_000) {
        for (const [key, end] of ends) if (end < now) ends.delete(key)
        sweptAt = now
      }
      // A token that had expired when expired tokens were last deleted may have been spent. If the clock was
      // set back later, the token looks valid again.
      if (exp < sweptAt || ends.has(jti)) return false
      ends.set(jti, exp)
      return true
    },
  }
}
