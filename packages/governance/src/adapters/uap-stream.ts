import type { UapResult, UapStream } from './uap-types.ts'

/** Runs a call: tells its events, stops when the signal says so. */
export type StreamedCall = (
  emit: (event: object) => void,
  signal: AbortSignal,
) => Promise<UapResult>

/**
 * The stream of a governed call. It starts with the first read of events or of `result`; leaving the
 * loop early aborts it; a failure that nobody looks at is no unhandled rejection.
 */
export class GovernedStream implements UapStream {
  readonly #call: StreamedCall
  readonly #controller = new AbortController()
  #running: Promise<UapResult> | undefined
  #events: object[] = []
  #isOver = false
  #wake: () => void = () => {}

  constructor(call: StreamedCall) {
    this.#call = call
  }

  get result(): Promise<UapResult> {
    return (this.#running ??= this.#start())
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<object, undefined> {
    const { result } = this
    try {
      for (;;) {
        yield* this.#events.splice(0)
        if (this.#events.length > 0) continue
        if (this.#isOver) break
        await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      if (!this.#isOver) this.abort()
    }
    await result // a failed call fails its reader
    return undefined
  }

  #start(): Promise<UapResult> {
    const emit = (event: object): void => {
      this.#events.push(event)
      this.#wake()
    }
    const running = this.#call(emit, this.#controller.signal)
    const end = (): void => {
      this.#isOver = true
      this.#wake()
    }
    running.then(end, end)
    return running
  }
}
