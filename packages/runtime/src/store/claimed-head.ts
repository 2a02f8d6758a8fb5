import type { ClaimOptions, HeldThread } from './store.ts'
import type { Lease, ThreadHead } from './head.ts'

/**
 * Returns the head after a claim at `now`, by the clock of the store, or who holds the thread. If the lease of another
 * owner expired without a release, that owner counts as dead: the thread is then a suspect and, if it was in
 * quarantine, gets a strike (`attempts`).
 */
export function claimedHead(
  head: ThreadHead,
  { owner, leaseMs, address }: ClaimOptions,
  now: number,
): ThreadHead | HeldThread {
  const { lease } = head
  const isOther = lease !== null && lease.owner !== owner
  if (isOther && lease.until > now)
    return { heldBy: lease.owner, until: lease.until, leftMs: lease.until - now }
  const newLease: Lease = {
    owner,
    until: now + leaseMs,
    deaths: (lease?.deaths ?? 0) + (isOther ? 1 : 0),
    survived: lease?.survived ?? 0,
    isQuarantined: false,
  }
  return {
    ...head,
    epoch: head.epoch + 1,
    attempts: head.attempts + (isOther && lease.isQuarantined ? 1 : 0),
    lease: address === undefined ? newLease : { ...newLease, address },
  }
}
