import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Dispatcher, Drain } from '@skein/runtime'
import type { PlayedStore } from './played-store.ts'
import type { VirtualTime } from './virtual-time.ts'

/** Starts the work on threads in virtual time. It knows which threads are worked on, so the player knows when all rest. */
export class PlayedDispatcher implements Dispatcher {
  /** The threads that are worked on. */
  readonly running: Map<string, AbortController> = new Map()
  readonly #again = new Set<string>()
  readonly #parts: DispatcherParts
  #drain: Drain | undefined
  #isStopped = false

  constructor(parts: DispatcherParts) {
    this.#parts = parts
  }

  async start(drain: Drain): Promise<void> {
    this.#drain = drain
  }

  wake(id: string, at?: number): void {
    const { played, time } = this.#parts
    const threadId = played.recordedId(id)
    if (this.#isStopped) return
    if (at !== undefined && at > time.now()) {
      time.set(at - time.now(), () => this.wake(threadId))
      return
    }
    if (this.running.has(threadId)) this.#again.add(threadId)
    else void this.#run(threadId)
  }

  interrupt(id: string, reason: unknown): void {
    this.running.get(this.#parts.played.recordedId(id))?.abort(reason)
  }

  async settled(): Promise<void> {}

  async idle(): Promise<void> {}

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const controller of this.running.values())
      controller.abort(new Error('The played run has ended.'))
  }

  async #run(threadId: string): Promise<void> {
    const { played, thread, onError } = this.#parts
    const controller = new AbortController()
    this.running.set(threadId, controller)
    this.#again.delete(threadId)
    played.changes++
    const work = thread
      .run(threadId, async () => this.#drain?.(threadId, controller.signal))
      .then(
        (end) => {
          if (end && end.type === 'failed') onError(end.error)
        },
        (error: unknown) => {
          if (!this.#isStopped) onError(error)
        },
      )
    await work
    this.running.delete(threadId)
    played.changes++
    if (this.#again.delete(threadId)) this.wake(threadId)
  }
}

interface DispatcherParts {
  readonly played: PlayedStore
  readonly time: VirtualTime
  /** The thread that the running code works on. */
  readonly thread: AsyncLocalStorage<string>
  readonly onError: (error: unknown) => void
}
