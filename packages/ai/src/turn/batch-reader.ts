import { type ErrorOrigin, invalidRequest } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Turn } from '../contract/turn.ts'

/** The call behind a reader. */
export interface BatchSource<Item, Result> {
  /** Starts nothing before it is first read. */
  readonly batches: AsyncGenerator<readonly Item[], Result>
  readonly controller: AbortController
  /** True when only the end hooks are left to run: leaving then is no abort. */
  readonly isFinal?: () => boolean
  readonly origin: ErrorOrigin
}

/**
 * Reads a call that gives items, in batches, on its way to a result. It starts with the first read of
 * either.
 *
 * - Iterate it once; leaving the loop early aborts the call.
 * - `result` runs it to its end even if nobody reads the items; those wait for their reader.
 * - A failure reaches whoever reads. A `result` nobody looks at never becomes an unhandled rejection.
 */
export class BatchReader<Item extends object, Result> implements AsyncIterable<Item> {
  readonly #source: BatchSource<Item, Result>
  readonly #result: Promise<Result>
  #resolve!: (result: Result) => void
  #reject!: (error: unknown) => void
  /** Batches that nobody has read yet, from `#head`. */
  #queue: (readonly Item[])[] = []
  #head = 0
  #position = 0
  #pull: Promise<void> | undefined
  #outcome: { readonly error?: unknown } | undefined
  #isIterated = false
  #isClosed = false

  constructor(source: BatchSource<Item, Result>) {
    this.#source = source
    this.#result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#result.catch(() => {}) // whoever asks for `result` gets the rejection
  }

  /** Rejects with the failure of the call, `CANCELLED` after an abort. */
  get result(): Promise<Result> {
    void this.#drain()
    return this.#result
  }

  /** Ends the call with `CANCELLED`, unless it is over. */
  abort(reason?: unknown): void {
    if (this.#outcome) return
    this.#source.controller.abort(reason)
    this.#queue = []
    this.#head = this.#position = 0
    void this.#drain()
  }

  [Symbol.asyncIterator](): AsyncIterator<Item, undefined> {
    if (this.#isIterated)
      throw invalidRequest(
        'This stream has been iterated already.',
        this.#source.origin,
        'It can be read once; make the call again, or wait for its result.',
      )
    this.#isIterated = true
    return { next: () => this.#next(), return: () => this.#leave() }
  }

  /** Served from the batch at hand; only an empty hand costs a wait. */
  #next(): Promise<IteratorResult<Item, undefined>> {
    const item = this.#take()
    return item ? Promise.resolve({ value: item, done: false }) : this.#nextAfterPull()
  }

  async #nextAfterPull(): Promise<IteratorResult<Item, undefined>> {
    for (;;) {
      const item = this.#take()
      if (item) return { value: item, done: false }
      if (this.#outcome) return this.#finish()
      await this.#pullOnce()
    }
  }

  /** The failure is thrown once; after that the stream is simply over. */
  #finish(): IteratorResult<Item, undefined> {
    const failed = this.#outcome && 'error' in this.#outcome ? this.#outcome : undefined
    if (!failed || this.#isClosed) return { value: undefined, done: true }
    this.#isClosed = true
    throw failed.error
  }

  /** The reader broke out of its loop. */
  async #leave(): Promise<IteratorResult<Item, undefined>> {
    this.#isClosed = true
    this.#queue = []
    this.#head = 0
    if (!this.#outcome && !this.#source.isFinal?.()) this.#source.controller.abort()
    await this.#drain()
    return { value: undefined, done: true }
  }

  #take(): Item | undefined {
    for (let batch = this.#queue[this.#head]; batch; batch = this.#queue[this.#head]) {
      const item = batch[this.#position++]
      if (item) return item
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

  #end(result: Result): void {
    this.#outcome = {}
    this.#resolve(result)
  }
}

/**
 * A running answer (UPP §9.1). It starts with the first read of events or of `turn`.
 *
 * - Iterate it once; leaving the loop early aborts the call.
 * - `turn` runs it to its end even if nobody reads the events; those wait for their reader.
 * - A failure reaches whoever reads. A `turn` nobody looks at never becomes an unhandled rejection.
 */
export class StreamResult<Data = unknown> implements AsyncIterable<StreamEvent> {
  readonly #reader: BatchReader<StreamEvent, Turn<Data>>

  constructor(source: BatchSource<StreamEvent, Turn<Data>>) {
    this.#reader = new BatchReader(source)
  }

  /** The complete turn. Rejects with the failure of the call, `CANCELLED` after an abort. */
  get turn(): Promise<Turn<Data>> {
    return this.#reader.result
  }

  /** Stops the model and all tools. Settles at once, also when a tool does not listen. */
  abort(reason?: unknown): void {
    this.#reader.abort(reason)
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamEvent, undefined> {
    return this.#reader[Symbol.asyncIterator]()
  }
}

/** A `BatchReader` over a call that gives its items one by one: embeddings in chunks, images. */
export class ResultStream<Item extends object, Result> extends BatchReader<Item, Result> {
  constructor(
    steps: AsyncGenerator<Item, Result>,
    controller: AbortController,
    origin: ErrorOrigin,
  ) {
    super({ batches: inBatches(steps), controller, origin })
  }
}

async function* inBatches<Item, Result>(
  steps: AsyncGenerator<Item, Result>,
): AsyncGenerator<readonly Item[], Result> {
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
    yield [step.value]
  }
}
