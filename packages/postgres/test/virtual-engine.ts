import type { Dispatcher, DrainEnd, RuntimeOptions, Store, Timers } from '@skein/runtime'

type MakeDispatcher = NonNullable<RuntimeOptions['dispatcher']>

/** An engine that works in real time, for runtimes in virtual time, one after the other on one store. */
export interface VirtualEngine {
  readonly dispatcher: MakeDispatcher
  /** Whether no runtime uses it at the moment. */
  readonly isFree: () => boolean
  /** Resolves when the engine has had every thread run that was woken. */
  settled(): Promise<void>
}

/** How often the store is asked whether a thread has been run. */
const LOOK_MS = 2
/** The engine is late or has lost a wake-up if nothing happens for so long. */
const LOST_MS = 20_000

/**
 * Lets a real engine wake threads in virtual time. A wake-up for later is kept here until its time has come, also
 * over a restart, because the engine would wait in real time; then the engine gets it as one for now.
 */
export function virtualEngine(make: MakeDispatcher): VirtualEngine {
  let current: VirtualDispatcher | undefined
  const wakeLater = (timers: Timers, threadId: string, at: number): void =>
    void timers.set(at - timers.now(), () => current?.wake(threadId))
  return {
    dispatcher(parts) {
      current = new VirtualDispatcher(make, parts, wakeLater)
      return current
    },
    isFree: () => current?.isStopped ?? false,
    settled: async () => current?.woken(),
  }
}

class VirtualDispatcher implements Dispatcher {
  readonly leaseMs?: number
  readonly isShared: boolean
  readonly #inner: Dispatcher
  readonly #store: Pick<Store, 'head' | 'due'>
  readonly #timers: Timers
  readonly #wakeLater: (timers: Timers, threadId: string, at: number) => void
  readonly #running = new Set<string>()
  /** Threads that were woken and have not been run since. */
  readonly #woken = new Set<string>()
  /** Threads whose last drain has left them due. They are run again by the engine. */
  readonly #resting = new Set<string>()
  #isStarted = false
  isStopped = false

  constructor(
    make: MakeDispatcher,
    parts: Parameters<MakeDispatcher>[0],
    wakeLater: (timers: Timers, threadId: string, at: number) => void,
  ) {
    const { store, timers } = parts
    this.#store = store
    this.#timers = timers
    this.#wakeLater = wakeLater
    // What the engine waits for itself takes real time; what is due is decided by the clock of the test.
    this.#inner = make({
      ...parts,
      timers: {
        now: () => timers.now(),
        set: (ms, callback) => setTimeout(callback, ms).unref(),
        clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
      },
    })
    this.isShared = this.#inner.isShared ?? false
    if (this.#inner.leaseMs !== undefined) this.leaseMs = this.#inner.leaseMs
  }

  async start(drain: Parameters<Dispatcher['start']>[0]): Promise<void> {
    await this.#inner.start(async (threadId, signal) => {
      this.#running.add(threadId)
      this.#woken.delete(threadId)
      this.#resting.delete(threadId)
      let end: DrainEnd | void | 'failed' = 'failed'
      try {
        end = await drain(threadId, signal)
        return end
      } finally {
        this.#running.delete(threadId)
        if (end === 'failed' || end !== undefined) this.#resting.add(threadId)
      }
    })
    this.#isStarted = true
  }

  wake(threadId: string, at: number = 0): void {
    if (this.isStopped) return
    if (at > this.#timers.now()) return this.#wakeLater(this.#timers, threadId, at)
    this.#woken.add(threadId)
    this.#inner.wake(threadId)
  }

  interrupt(threadId: string, reason: unknown): void {
    this.#inner.interrupt(threadId, reason)
  }

  settled(threadId: string): Promise<void> {
    return this.#until(async () => !this.#isStarted || !(await this.#isBusy(threadId)))
  }

  idle(): Promise<void> {
    return this.#until(async () => {
      if (!this.#isStarted) return true
      const due = await this.#store.due(this.#timers.now(), 1000)
      // Asked last, because a drain may have begun while the store was asked.
      return this.#running.size === 0 && due.every((threadId) => this.#resting.has(threadId))
    })
  }

  woken(): Promise<void> {
    return this.#until(async () => {
      if (!this.#isStarted) return true
      for (const threadId of this.#woken)
        if (this.#running.has(threadId) || !(await this.#isBusy(threadId)))
          this.#woken.delete(threadId)
      return this.#woken.size === 0
    })
  }

  stop(options?: { readonly graceMs?: number }): Promise<void> {
    this.isStopped = true
    return this.#inner.stop(options)
  }

  async #isBusy(threadId: string): Promise<boolean> {
    const { wakeAt = null } = (await this.#store.head(threadId)) ?? {}
    if (this.#running.has(threadId)) return true
    return wakeAt !== null && wakeAt <= this.#timers.now() && !this.#resting.has(threadId)
  }

  /** Looks again and again, because the engine tells nobody when it has nothing to do. */
  async #until(isTrue: () => Promise<boolean>): Promise<void> {
    let from = performance.now()
    while (!this.isStopped && !(await isTrue())) {
      if (this.#running.size > 0) from = performance.now()
      if (performance.now() - from > LOST_MS)
        throw new Error(`A wake-up was lost: ${[...this.#woken].join()}`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
}
