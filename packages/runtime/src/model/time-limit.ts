import { ErrorCode, UPPError } from '@skein/ai'
import type { KernelEnvironment } from '../context/environment.ts'
import type { ResolvedModel } from '../definitions/resolved.ts'

/** Aborts a request if its model sends nothing for `modelIdleMs`, or has not finished after `modelMs`. */
export class TimeLimit {
  readonly #environment: KernelEnvironment
  readonly #controller: AbortController
  readonly #startedAt: number
  #movedAt: number
  #timer: unknown
  #message: string | undefined

  constructor(environment: KernelEnvironment, controller: AbortController) {
    this.#environment = environment
    this.#controller = controller
    this.#startedAt = this.#movedAt = environment.clock.now()
    this.#arm()
  }

  /** Called whenever the model sends something; the timer checks how long ago that was. */
  moved(): void {
    this.#movedAt = this.#environment.clock.now()
  }

  end(): void {
    if (this.#timer !== undefined) this.#environment.timers.clear(this.#timer)
    this.#timer = undefined
  }

  /** Returns the error of a request that this limit aborted; undefined if the request ended for another reason. */
  reached({ model }: ResolvedModel, error: unknown): UPPError | undefined {
    if (this.#message === undefined || !(error instanceof UPPError)) return undefined
    const timeout = new UPPError(this.#message, {
      code: ErrorCode.Timeout,
      provider: model.provider.name,
      modality: 'llm',
      hint: 'The limits modelIdleMs and modelMs of createRuntime set the time.',
      cause: error,
    })
    timeout.turn = error.turn
    return timeout
  }

  #arm(): void {
    const { clock, timers, limits } = this.#environment
    const now = clock.now()
    const idleMs = this.#movedAt + limits.modelIdleMs - now
    const leftMs = this.#startedAt + limits.modelMs - now
    if (Math.min(idleMs, leftMs) === Infinity) return
    if (idleMs > 0 && leftMs > 0) {
      this.#timer = timers.set(Math.min(idleMs, leftMs), () => this.#arm())
      return
    }
    this.#message =
      leftMs <= 0
        ? `The model was not done after ${limits.modelMs} ms.`
        : `The model sent nothing for ${limits.modelIdleMs} ms.`
    this.#controller.abort()
  }
}
