import type { FailureCause } from '../contract/event.ts'
import type { TimerHandle, Timers } from '../dispatch/dispatcher.ts'
import { type KernelState, openCalls } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/head.ts'
import type { GatePlace, Suspect, Trial } from './trial-gate.ts'

/*
 * After a crash, a thread on which the dead process worked may have caused the death. Such a thread works alone for a
 * while (on trial). If the process dies again meanwhile, the death counts against the thread, like an error of the work
 * on it; a thread with too many of them fails. docs/decisions/0010-blame.md explains the rules.
 */

interface QuarantineParts {
  readonly head: ThreadHead
  readonly place: GatePlace
  readonly timers: Timers
  /** Stores that the trial has begun or was survived. */
  readonly write: (lease: 'quarantined' | 'survived') => Promise<void>
}

/** The part of one thread, during one drain, in finding out which thread crashes its process. */
export class CrashQuarantine {
  /** How many errors and deaths count against the thread. Progress clears them. */
  attempts: number
  readonly #parts: QuarantineParts
  #trial: Trial | undefined
  #timer: TimerHandle | undefined

  constructor(parts: QuarantineParts) {
    this.#parts = parts
    this.attempts = parts.head.attempts
  }

  /**
   * Waits until the thread may work: threads that may have caused a crash (suspects) may have to work alone. Returns
   * whether the thread is one of them: others may then have written to its log while it waited.
   */
  async enter(state: KernelState, signal: AbortSignal): Promise<boolean> {
    const { head, place, timers, write } = this.#parts
    const { deaths = 0, survived = 0 } = head.lease ?? {}
    const suspect: Suspect | undefined =
      deaths > 0 ? { open: openWork(state), deaths, survived, charges: this.attempts } : undefined
    const trial = await place.enter(suspect, signal)
    this.#trial = trial
    if (trial) {
      // `quarantined` is written before the thread works: if the process dies, the next one knows which thread worked.
      await write('quarantined')
      this.#timer = timers.set(trial.ms, () => void this.#survive())
    }
    return suspect !== undefined
  }

  /** Called when the thread has worked alone for long enough: others may work at the same time from now on. */
  async #survive(): Promise<void> {
    try {
      await this.#parts.write('survived')
    } catch {
      // Another process has claimed the thread, or the store failed: the next commit from here throws too.
    }
    this.#endTrial()
  }

  /** Called when the thread has made progress: nothing counts against it any more. */
  clear(): void {
    this.attempts = 0
    this.#endTrial()
  }

  #endTrial(): void {
    this.stop()
    this.#trial?.end()
    this.#trial = undefined
  }

  /** Called when the drain has ended. */
  stop(): void {
    if (this.#timer !== undefined) this.#parts.timers.clear(this.#timer)
    this.#timer = undefined
  }
}

/** Returns what a thread was doing when its log ended: a call or scheduled work, an inference, or nothing. */
function openWork(state: KernelState): Suspect['open'] {
  const { call, effect, step } = workOf(state)
  return call || effect ? 'call' : step ? 'inference' : 'nothing'
}

/** Returns the cause of failure for a thread that was working each time a process died. */
export function deathCause(state: KernelState): FailureCause {
  const { call, effect, step } = workOf(state)
  const what = call
    ? `the tool ${call.call.toolName} ran`
    : effect
      ? `the effect ${effect.scheduled.name} ran`
      : step
        ? 'the thread waited for its model'
        : 'the thread was worked on'
  return {
    code: 'PROCESS_DIED',
    message: `The process died while ${what}.`,
    hint: 'Look for the end of the process in its output or in the system log: memory, a signal, process.exit.',
  }
}

function workOf(state: KernelState) {
  const step = state.session?.turn?.step
  return {
    call: openCalls(state).find(({ startedEpoch }) => startedEpoch !== undefined),
    effect: [...state.effects.values()].find(({ runningEpoch }) => runningEpoch !== undefined),
    step: step?.epoch !== undefined && step.entry === undefined ? step : undefined,
  }
}
