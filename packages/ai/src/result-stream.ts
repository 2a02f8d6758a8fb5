import { invalidRequest, type ErrorOrigin } from './to-upp-error.ts'

/**
 * A call that gives something on its way to its result. It starts with the first read.
 *
 * - Iterate it once; leaving the loop early aborts the call.
 * - `result` runs it to its end even if nobody iterates; what came on the way waits for its reader.
 * - A failure reaches whoever reads; a `result` that nobody looks at is never an unhandled rejection.
 */
export class ResultStream<Item, Result> implements AsyncIterable<Item> {
  readonly #steps: AsyncGenerator<Item, Result>
  readonly #controller: AbortController
  readonly #origin: ErrorOrigin
  readonly #result: Promise<Result>
  #resolve!: (result: Result) => void
  #reject!: (error: unknown) => void
  #queue: Item[] = []
  #pull: Promise<void> | undefined
  #outcome: { readonly error?: unknown } | undefined
  #isIterated = false
  #isLeft = false

  constructor(
    steps: AsyncGenerator<Item, Result>,
    controller: AbortController,
    origin: ErrorOrigin,
  ) {
    this.#steps = steps
    this.#controller = controller
    this.#origin = origin
    this.#result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#result.catch(() => {}) // whoever asks for `result` gets the rejection
  }

  get result(): Promise<Result> {
    void this.#drain()
    return this.#result
  }

  /** Ends the call with CANCELLED. */
  abort(reason?: unknown): void {
    if (this.#outcome) return
    this.#controller.abort(reason)
    this.#queue = []
    void this.#drain()
  }

  [Symbol.asyncIterator](): AsyncIterator<Item, undefined> {
    if (this.#isIterated) {
      const hint = 'It can be read once; make the call again, or read `result`.'
      throw invalidRequest('This stream has been iterated already.', this.#origin, hint)
    }
    this.#isIterated = true
    return { next: () => this.#next(), return: () => this.#leave() }
  }

  async #next(): Promise<IteratorResult<Item, undefined>> {
    while (this.#queue.length === 0 && !this.#outcome) await this.#pullOnce()
    const item = this.#queue.shift()
    if (item !== undefined) return { value: item, done: false }
    const failed = this.#outcome && 'error' in this.#outcome ? this.#outcome : undefined
    if (!failed || this.#isLeft) return { value: undefined, done: true }
    this.#isLeft = true // thrown once; after that it is simply over
    throw failed.error
  }

  async #leave(): Promise<IteratorResult<Item, undefined>> {
    this.#isLeft = true
    if (!this.#outcome) this.#controller.abort()
    await this.#drain()
    return { value: undefined, done: true }
  }

  async #drain(): Promise<void> {
    while (!this.#outcome) await this.#pullOnce()
  }

  /** One step for everyone who waits. Never rejects. */
  #pullOnce(): Promise<void> {
    return (this.#pull ??= this.#step())
  }

  async #step(): Promise<void> {
    try {
      const step = await this.#steps.next()
      if (!step.done) this.#queue.push(step.value)
      else {
        this.#outcome = {}
        this.#resolve(step.value)
      }
    } catch (error) {
      this.#outcome = { error }
      this.#reject(error)
    }
    this.#pull = undefined
  }
}
