import { linkAbort } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { Claim, ClaimOptions, HeldThread, Store } from '../store/store.ts'
import type { TimerHandle, Timers, Suspect, Trial, GatePlace } from '../dispatch/dispatcher.ts'

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

/**
 * After a crash, lets the suspects (threads on which the dead process worked) work one at a time. A suspect
 * that works alone in its process when that process dies is to blame; nobody else is.
 * docs/decisions/0010-blame.md explains the rules.
 */
export interface TrialGate {
  /** Announces that work on a thread is about to begin, before the thread is claimed. */
  arrive(): GatePlace
}

/** How long a thread that may have caused a death first works alone (on trial); each trial it survives doubles it. */
const TRIAL_MS = 500
const LONGEST_TRIAL_MS = 60_000
/**
 * How long a thread that was blamed for the death of a process waits before its next trial; it doubles with
 * each further death.
 */
const BACKOFF_MS = 1_000
const LONGEST_BACKOFF_MS = 30_000
/** How long threads that need no trial wait while suspects are on trial. */
const PATIENCE_MS = 5_000
/** How many processes may die during a thread's work before it has to work alone (on trial); 0 if a call was open. */
const FREE_DEATHS = 2

/** Creates the gate of a process. */
export function createTrialGate(timers: Timers): TrialGate {
  return new Gate(timers)
}

interface Waiting {
  /** Undefined for a thread that needs no trial. */
  readonly suspect: Suspect | undefined
  readonly admit: (trial: Trial | undefined) => void
}

class Gate implements TrialGate {
  readonly #timers: Timers
  readonly #waiting = new Set<Waiting>()
  /** How many threads were announced (`arrive`) and have not asked yet whether work may begin (`enter`). */
  #undecided = 0
  /**
   * Whether the threads that were announced when the process began have all asked to enter. Until then no
   * thread is worked on, because the first suspect would not be alone.
   */
  #isOpen = false
  #working = 0
  #isOnTrial = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  arrive(): GatePlace {
    this.#undecided++
    let isUndecided = true
    let isWorking = false
    let given: Trial | undefined
    const decide = (): void => {
      if (isUndecided) this.#undecided--
      isUndecided = false
      this.#isOpen ||= this.#undecided === 0
    }
    return {
      enter: async (suspect, signal) => {
        if (suspect && suspect.charges > 0) {
          decide()
          this.#admit()
          const ms = BACKOFF_MS * 2 ** (suspect.charges - 1)
          await this.#sleep(Math.min(ms, LONGEST_BACKOFF_MS), signal)
        }
        const trial = this.#wait(suspect && needsTrial(suspect) ? suspect : undefined, signal)
        decide()
        this.#admit()
        given = await trial
        isWorking = true
        return given
      },
      leave: () => {
        decide()
        if (isWorking) this.#working--
        isWorking = false
        given?.end()
        this.#admit()
      },
    }
  }

  #wait(suspect: Suspect | undefined, signal: AbortSignal): Promise<Trial | undefined> {
    return new Promise((resolve) => {
      let patience: TimerHandle | undefined
      const admit = (trial: Trial | undefined): void => {
        if (!this.#waiting.delete(waiting)) return
        if (patience !== undefined) this.#timers.clear(patience)
        signal.removeEventListener('abort', leave)
        this.#working++
        resolve(trial)
      }
      const leave = (): void => admit(undefined)
      const waiting: Waiting = { suspect, admit }
      this.#waiting.add(waiting)
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave)
      if (!suspect) patience = this.#timers.set(PATIENCE_MS, leave)
    })
  }

  #admit(): void {
    if (!this.#isOpen || this.#isOnTrial) return
    const next = this.#nextSuspect()
    if (next?.suspect) next.admit(this.#trial(next.suspect))
    else for (const { admit } of this.#waiting) admit(undefined)
  }

  /** Suspects (see `TrialGate`) with an open call come first, then those that have survived the fewest trials. */
  #nextSuspect(): Waiting | undefined {
    const rank = ({ open, survived }: Suspect): number => (open === 'call' ? 0 : 1e6) + survived
    let first: Waiting | undefined
    for (const waiting of this.#waiting)
      if (waiting.suspect && (!first?.suspect || rank(waiting.suspect) < rank(first.suspect)))
        first = waiting
    return first
  }

  #trial({ charges, survived }: Suspect): Trial {
    this.#isOnTrial = true
    let isOver = false
    return {
      isCharged: this.#working === 0 || charges > 0,
      ms: Math.min(TRIAL_MS * 2 ** survived, LONGEST_TRIAL_MS),
      end: () => {
        if (isOver) return
        isOver = true
        this.#isOnTrial = false
        this.#admit()
      },
    }
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#timers.clear(handle)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const handle = this.#timers.set(ms, wake)
      if (signal.aborted) wake()
      else signal.addEventListener('abort', wake)
    })
  }
}

function needsTrial({ open, deaths, charges }: Suspect): boolean {
  return open === 'call' || charges > 0 || deaths > FREE_DEATHS
}
