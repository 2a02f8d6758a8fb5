import type { Clock } from '@skein/base'

/** How long, and for how many actions, work on threads may continue before timers and sockets get their turn. */
const MAX_BUSY_MS = 10
const MAX_BUSY_ACTIONS = 100

/**
 * Makes the work on threads pause for timers, sockets and other threads from time to time. With a store in
 * memory and a model that answers without delay, that work runs in microtasks only, and no timer would ever fire.
 */
export class EventLoopYield {
  readonly #clock: Clock
  /** The actions since the event loop last turned: time of the first, their number, a promise for the next turn. */
  #busy: { readonly since: number; actions: number; readonly turn: Promise<void> } | undefined

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock
  }

  /** Called before each action. Returns a promise if it is time for a pause; the caller waits for it. */
  due(): Promise<void> | undefined {
    const now = this.#clock.now()
    this.#busy ??= { since: now, actions: 0, turn: this.#nextTurn() }
    const { since, turn } = this.#busy
    const isLong = Math.abs(now - since) >= MAX_BUSY_MS || ++this.#busy.actions > MAX_BUSY_ACTIONS
    return isLong ? turn : undefined
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#busy = undefined
        resolve()
      })
    })
  }
}
