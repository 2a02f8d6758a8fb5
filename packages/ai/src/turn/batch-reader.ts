import { PartialJson } from '@skein/base'
import { type ErrorOrigin, invalidRequest } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Claimed, DeepPartial } from '../contract/structure.ts'
import type { ToolTypes } from '../contract/tool-types.ts'
import type { Turn } from '../contract/turn.ts'

/** The call whose batches a `BatchReader` reads. */
export interface BatchSource<Item, Result> {
  /** The batches of the call, which starts when the first batch is read. */
  readonly batches: AsyncGenerator<readonly Item[], Result>
  readonly controller: AbortController
  /** True when only the end hooks are left to run; leaving the loop then does not abort the call. */
  readonly isFinal?: () => boolean
  readonly origin: ErrorOrigin
}

/**
 * Reads a call that produces batches of items and then a result. The call starts when the items or the
 * `result` are first read.
 *
 * - It can be iterated once; leaving the loop early aborts the call.
 * - `result` runs the call to its end even if no one reads the items; they are kept for a later reader.
 * - A failure is thrown to the reader. An unused `result` never causes an unhandled rejection.
 */
export class BatchReader<Item extends object, Result> implements AsyncIterable<Item> {
  readonly #source: BatchSource<Item, Result>
  readonly #result: Promise<Result>
  #resolve!: (result: Result) => void
  #reject!: (error: unknown) => void
  /** Batches that have not been read yet, starting at `#head`. */
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
    // Prevents an unhandled rejection; callers of `result` still get the rejection.
    this.#result.catch(() => {})
  }

  /** The result of the call. Rejects with the failure of the call, `CANCELLED` after an abort. */
  get result(): Promise<Result> {
    void this.#drain()
    return this.#result
  }

  /** Aborts the call with `CANCELLED`, unless it has ended. */
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

  /** Returns the next queued item, and waits for a batch only if the queue is empty. */
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

  /** Ends the iteration. A failure is thrown once; after that the stream is done. */
  #finish(): IteratorResult<Item, undefined> {
    const failure = this.#outcome && 'error' in this.#outcome ? this.#outcome : undefined
    if (!failure || this.#isClosed) return { value: undefined, done: true }
    this.#isClosed = true
    throw failure.error
  }

  /** Called when the reader leaves its loop early. */
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

  /** Reads one batch; concurrent readers share the same promise. Never rejects. */
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
 * A streamed answer (UPP §9.1). The call starts when the events or `turn` are first read.
 *
 * - It can be iterated once; leaving the loop early aborts the call.
 * - `turn` runs the call to its end even if no one reads the events; they are kept for a later reader.
 * - A failure is thrown to the reader. An unused `turn` never causes an unhandled rejection.
 */
export class StreamResult<
  Data = unknown,
  Calls extends ToolTypes = ToolTypes,
> implements AsyncIterable<StreamEvent> {
  readonly #reader: BatchReader<StreamEvent, Turn>
  /** Converts the parsed beginning of a structured answer to data of its schema; `partials` uses it. */
  readonly readPartial: (data: unknown) => unknown

  constructor(
    source: BatchSource<StreamEvent, Turn>,
    readPartial: (data: unknown) => unknown = (data) => data,
  ) {
    this.#reader = new BatchReader(source)
    this.readPartial = readPartial
  }

  /** The complete turn. Rejects with the failure of the call, `CANCELLED` after an abort. */
  get turn(): Promise<Turn<Data, Calls>> {
    // The caller of the constructor declares the types of the data and of the tools.
    return this.#reader.result as Promise<Turn<Data, Calls>>
  }

  /**
   * The text of the answer, piece by piece as it arrives. It reads the events of the stream, so the stream cannot also
   * be iterated; `turn` can be awaited.
   *
   *     for await (const text of model.stream('Hello').textStream) process.stdout.write(text)
   */
  get textStream(): AsyncIterable<string> {
    return textOf(this)
  }

  /** Stops the model and all tools. `turn` settles immediately, even if a tool ignores its signal. */
  abort(reason?: unknown): void {
    this.#reader.abort(reason)
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamEvent<Calls>, undefined> {
    return this.#reader[Symbol.asyncIterator]() as AsyncIterator<StreamEvent<Calls>, undefined>
  }
}

async function* textOf(events: AsyncIterable<StreamEvent>): AsyncGenerator<string, void> {
  for await (const event of events)
    if (event.type === 'text_delta' && event.delta.text !== '') yield event.delta.text
}

/** A `BatchReader` over a call that yields its items one by one: embeddings in chunks, images. */
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

/**
 * Reads the data of a streamed, structured answer as far as it has arrived, after each piece of it:
 *
 *     for await (const partial of partials(model.stream('…'))) show(partial.title)
 *
 * It reads the stream's events, so the stream cannot also be iterated; `stream.turn` can be awaited. After a
 * repair the partial data starts again from nothing.
 */
export async function* partials<Data>(
  stream: StreamResult<Data>,
): AsyncGenerator<DeepPartial<Claimed<Data>>, void> {
  const { readPartial } = stream
  let parser = new PartialJson()
  for await (const event of stream) {
    if (event.type === 'message_start') parser = new PartialJson()
    if (event.type !== 'object_delta' || event.delta.text === '') continue
    parser.push(event.delta.text)
    const value = parser.value()
    if (value === undefined) continue
    // UPP §12.2: the type comes from the schema; the data is not validated against it.
    yield readPartial(value) as DeepPartial<Claimed<Data>>
  }
}
