import type { StreamEvent } from './event.ts'
import { invalidRequest, type ErrorOrigin } from './to-upp-error.ts'
import type { Turn } from './turn.ts'

/** What a stream needs of the call behind it. */
export interface StreamSource<Data> {
  /** Starts nothing before it is first read. */
  readonly batches: AsyncGenerator<readonly StreamEvent[], Turn<Data>>
  readonly controller: AbortController
  /** True when only the end hooks are left to run. */
  readonly isFinal: () => boolean
  readonly origin: ErrorOrigin
}

/**
 * A running answer (UPP §9.1). It starts with the first read of events or of `turn`.
 *
 * - Iterate it once; leaving the loop early aborts the call.
 * - `turn` runs it to its end even if nobody reads the events; those wait for their reader.
 * - A failure reaches whoever reads. `turn` that nobody looks at never becomes an unhandled rejection.
 */
export class StreamResult<Data = unknown> implements AsyncIterable<StreamEvent> {
  readonly #source: StreamSource<Data>
  readonly #turn: Promise<Turn<Data>>
  #resolve!: (turn: Turn<Data>) => void
  #reject!: (error: unknown) => void
  /** Batches that nobody has read yet, from `#head`. */
  #queue: (readonly StreamEvent[])[] = []
  #head = 0
  #position = 0
  #pull: Promise<void> | undefined
  #outcome: { readonly error?: unknown } | undefined
  #isIterated = false
  #isClosed = false

  constructor(source: StreamSource<Data>) {
    this.#source = source
    this.#turn = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#turn.catch(() => {}) // whoever asks for `turn` gets the rejection
  }

  /** The complete turn. Rejects with the failure of the call, `CANCELLED` after an abort. */
  get turn(): Promise<Turn<Data>> {
    void this.#drain()
    return this.#turn
  }

  /** Stops the model and all tools. Settles at once, also when a tool does not listen. */
  abort(reason?: unknown): void {
    if (this.#outcome) return
    this.#source.controller.abort(reason)
    this.#queue = []
    this.#head = this.#position = 0
    void this.#drain()
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamEvent, undefined> {
    if (this.#isIterated)
      throw invalidRequest(
        'This stream has been iterated already.',
        this.#source.origin,
        'A stream can be read once; call stream() again, or read `turn`.',
      )
    this.#isIterated = true
    return { next: () => this.#next(), return: () => this.#leave() }
  }

  /** Served from the batch at hand; only an empty hand costs a wait. */
  #next(): Promise<IteratorResult<StreamEvent, undefined>> {
    const event = this.#take()
    return event ? Promise.resolve({ value: event, done: false }) : this.#nextAfterPull()
  }

  async #nextAfterPull(): Promise<IteratorResult<StreamEvent, undefined>> {
    for (;;) {
      const event = this.#take()
      if (event) return { value: event, done: false }
      if (this.#outcome) return this.#finish()
      await this.#pullOnce()
    }
  }

  /** The failure is thrown once; after that the stream is simply over. */
  #finish(): IteratorResult<StreamEvent, undefined> {
    const failed = this.#outcome && 'error' in this.#outcome ? this.#outcome : undefined
    if (!failed || this.#isClosed) return { value: undefined, done: true }
    this.#isClosed = true
    throw failed.error
  }

  /** The reader broke out of its loop. */
  async #leave(): Promise<IteratorResult<StreamEvent, undefined>> {
    this.#isClosed = true
    if (!this.#outcome && !this.#source.isFinal()) this.#source.controller.abort()
    await this.#drain()
    return { value: undefined, done: true }
  }

  #take(): StreamEvent | undefined {
    for (let batch = this.#queue[this.#head]; batch; batch = this.#queue[this.#head]) {
      const event = batch[this.#position++]
      if (event) return event
      this.#position = 0
      if (++this.#head === this.#queue.length) {
        this.#queue = []
        this.#head = 0
      }
    }
    return undefined
  }

  async #drain(): Promise<void> {
    while (!this.#outcome) await this.#pullOnce()
  }

  /** One batch for everyone who waits. Never rejects. */
  #pullOnce(): Promise<void> {
    return (this.#pull ??= this.#pullBatch())
  }

  async #pullBatch(): Promise<void> {
    try {
      const step = await this.#source.batches.next()
      if (step.done) this.#end(step.value)
      else if (!this.#isClosed) this.#queue.push(step.value)
    } catch (error) {
      this.#outcome = { error }
      this.#reject(error)
    }
    this.#pull = undefined
  }

  #end(turn: Turn<Data>): void {
    this.#outcome = {}
    this.#resolve(turn)
  }
}
