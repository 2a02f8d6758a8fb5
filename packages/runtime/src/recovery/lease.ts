import { linkAbort } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { Claim, ClaimOptions, HeldThread, Store } from '../store/store.ts'
import type { TimerHandle, Timers } from '../dispatch/dispatcher.ts'

/** A claimed thread whose lease (the sole right to work on it) is renewed until `end` is called. */
export interface KeptLease {
  readonly claim: Claim
  /**
   * Aborts when the work on the thread is aborted, and when the lease could not be renewed for two thirds of its
   * length. The running calls then end before another process may take the thread.
   */
  readonly signal: AbortSignal
  /** Stops renewing the lease. */
  end(): void
}

/** Claims threads for one process, and renews their leases while the process works on them. */
export interface LeaseKeeper {
  claim(threadId: string, signal: AbortSignal): Promise<KeptLease | HeldThread | undefined>
  /** Gives a lease back, if this process has it. */
  release(threadId: string): Promise<void>
}

/** Options of `createLeaseKeeper`. */
export interface LeaseKeeperOptions extends ClaimOptions {
  readonly store: Pick<Store, 'claim' | 'renew' | 'release'>
  readonly timers: Timers
}

/**
 * Creates the keeper of a process's leases. All leases are renewed together, in one call of the store after
 * each third of their length. Only durations are measured here, by timers, which a change of the wall clock
 * does not affect; when a lease ends is decided by the store's clock.
 */
export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  return new Keeper(options)
}

interface Held {
  readonly controller: AbortController
  /** The timer that fires when two thirds of the lease have passed since it was claimed or renewed. */
  deadline: TimerHandle
}

class Keeper implements LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #held = new Map<string, Held>()
  #renewal: TimerHandle | undefined

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
  }

  async claim(threadId: string, signal: AbortSignal): Promise<KeptLease | HeldThread | undefined> {
    const { store, owner, leaseMs, address } = this.#options
    const controller = new AbortController()
    // The deadline begins before the store is asked, so it is never later than two thirds of the lease.
    const held: Held = { controller, deadline: this.#deadline(threadId, controller) }
    let claim: Claim | HeldThread | undefined
    try {
      claim = await store.claim(threadId, { owner, leaseMs, address })
    } finally {
      if (!claim || 'heldBy' in claim) this.#options.timers.clear(held.deadline)
    }
    if (!claim || 'heldBy' in claim) return claim
    this.#held.set(threadId, held)
    this.#arm()
    const unlink = linkAbort([signal], controller)
    const end = (): void => {
      unlink()
      this.#options.timers.clear(held.deadline)
      if (this.#held.get(threadId) === held) this.#held.delete(threadId)
      this.#arm()
    }
    return { claim, signal: controller.signal, end }
  }

  release(threadId: string): Promise<void> {
    return this.#options.store.release(this.#options.owner, [threadId])
  }

  /** Sets the timer of the next renewal; clears it when there is nothing to renew. */
  #arm(): void {
    const { timers, leaseMs } = this.#options
    if (this.#held.size === 0) {
      if (this.#renewal !== undefined) timers.clear(this.#renewal)
      this.#renewal = undefined
    } else this.#renewal ??= timers.set(leaseMs / 3, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    const { store, timers, owner, leaseMs } = this.#options
    this.#renewal = undefined
    const asked = [...this.#held]
    // The new deadlines begin before the store is asked, so they are never later than two thirds of the
    // lease.
    const deadlines = asked.map(([id, { controller }]) => this.#deadline(id, controller))
    this.#arm()
    let renewed: ReadonlySet<string> | undefined
    try {
      const ids = asked.map(([id]) => id)
      renewed = new Set(await store.renew(ids, { owner, leaseMs }))
    } catch {
      // The store cannot be reached at the moment. The next renewal tries again; until then the old deadlines
      // hold.
    }
    for (const [index, [id, held]] of asked.entries()) {
      const isHeld = this.#held.get(id) === held
      if (renewed?.has(id) && isHeld) {
        timers.clear(held.deadline)
        held.deadline = deadlines[index]
      } else timers.clear(deadlines[index])
      if (renewed && !renewed.has(id) && isHeld) held.controller.abort(lostLease(id))
    }
  }

  #deadline(threadId: string, controller: AbortController): TimerHandle {
    const { timers, leaseMs } = this.#options
    return timers.set((leaseMs * 2) / 3, () => controller.abort(lostLease(threadId)))
  }
}

function lostLease(threadId: string): RuntimeError {
  return new RuntimeError(`The lease of thread ${threadId} could not be renewed in time.`, {
    code: 'LEASE_LOST',
    hint: 'Another process continues the thread. Look at the connection to the store.',
  })
}
