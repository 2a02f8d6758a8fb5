import type { TimerHandle, Timers } from '../dispatch/dispatcher.ts'

/**
 * After a crash, lets suspects (threads on which the dead process worked) work alone for a while. A suspect
 * that works alone in its process when that process dies is to blame; no other thread is.
 * docs/decisions/0010-blame.md explains the rules.
 */
export interface TrialGate {
  /** Announces that work on a thread is about to begin, before the thread is claimed. */
  arrive(): GatePlace
}

/** A thread on which a process worked when it died. The thread may have caused the death. */
export interface Suspect {
  /** What the thread was doing when the process died. */
  readonly open: 'call' | 'inference' | 'nothing'
  readonly deaths: number
  readonly survived: number
  /** How many deaths were charged to the thread, i.e. held against it. */
  readonly charges: number
}

/**
 * The time in which a suspect works alone: no other suspect may begin, and other threads only after a while. A death
 * during the trial is charged to the thread.
 */
export interface Trial {
  /** How long the thread has to work before it is no longer on trial. */
  readonly ms: number
  /** Ends the trial, because the thread has made progress or has worked for `ms`. */
  end(): void
}

/** The place of one thread at the gate, which decides when the work on threads may begin after a crash. */
export interface GatePlace {
  /**
   * Waits until the work may begin. Pass the suspect if a process died during the work on this thread; the result is
   * then its trial (time alone), if it needs one. When the signal aborts, the wait ends without a trial.
   */
  enter(suspect: Suspect | undefined, signal: AbortSignal): Promise<Trial | undefined>
  /** The work on the thread has ended, and so has its trial. */
  leave(): void
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
    const next = this.#nextForTrial()
    if (next?.suspect) next.admit(this.#trial(next.suspect))
    else for (const { admit } of this.#waiting) admit(undefined)
  }

  /**
   * Returns the suspect that works alone next: one with an open call first, then the one that has survived the fewest
   * trials, then the one with the most deaths. Beside other work a death is charged only to a thread that was charged
   * before, so there the other suspects need not be alone.
   */
  #nextForTrial(): Waiting | undefined {
    let first: Waiting | undefined
    for (const waiting of this.#waiting) {
      const { suspect } = waiting
      if (!suspect || (this.#working > 0 && suspect.charges === 0)) continue
      if (!first?.suspect || isBefore(suspect, first.suspect)) first = waiting
    }
    return first
  }

  #trial({ survived }: Suspect): Trial {
    this.#isOnTrial = true
    let isOver = false
    return {
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

function isBefore(one: Suspect, other: Suspect): boolean {
  const rank = ({ open, survived }: Suspect): number => (open === 'call' ? 0 : 1e6) + survived
  return rank(one) - rank(other) < 0 || (rank(one) === rank(other) && one.deaths > other.deaths)
}
