import { type MaybePromise } from '@skein/base'
/**
 * Hands events to the reader of a run. Returns a promise if the run has to wait until the reader asks for more; it
 * rejects with `readerLeft` if the reader leaves instead.
 */
export type EmitEvents<Item> = (events: readonly Item[]) => MaybePromise<void>

/** What `emit` rejects with when the reader has left. The run cleans up and throws it again. */
export const readerLeft: Error = new Error('The reader of the events has left.')

/** A call of `next`, `return` or `throw` that has no answer yet. */
interface ReaderRequest<Item, Result> {
  readonly type: 'next' | 'return' | 'throw'
  /** The value of `return`, or the error of `throw`. */
  readonly value?: unknown
  readonly resolve: (step: IteratorResult<readonly Item[], Result>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Reads the events of an async function that reports them with `emit`. It behaves as an async generator would: the
 * function starts with the first `next`, and runs on only while the reader waits for events. One function can so serve
 * a reader and, without `emit`, a caller that waits for the result alone and pays for no generator.
 */
export class EventReader<Item, Result> implements AsyncGenerator<
  readonly Item[],
  Result,
  undefined
> {
  #run: ((emit: EmitEvents<Item>) => Promise<Result>) | undefined
  /** The requests of the reader in order; the run continues while there is one. */
  readonly #requests: ReaderRequest<Item, Result>[] = []
  /** Continues a run that waits for a request. */
  #resume: (() => void) | undefined
  #isOver = false

  constructor(run: (emit: EmitEvents<Item>) => Promise<Result>) {
    this.#run = run
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<readonly Item[], Result>> {
    return this.#request('next')
  }

  return(value: Result | PromiseLike<Result>): Promise<IteratorResult<readonly Item[], Result>> {
    return this.#request('return', value)
  }

  throw(error: unknown): Promise<IteratorResult<readonly Item[], Result>> {
    return this.#request('throw', error)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#request('return')
  }

  #request(
    type: ReaderRequest<Item, Result>['type'],
    value?: unknown,
  ): Promise<IteratorResult<readonly Item[], Result>> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ type, value, resolve, reject })
      const run = this.#run
      this.#run = undefined
      if (run && type === 'next') {
        run(this.#emit).then(
          (result) => this.#end((first) => first.resolve({ value: result, done: true })),
          (error: unknown) => this.#end((first) => fail(first, error)),
        )
      } else if (run || this.#isOver) this.#end()
      else this.#resume?.()
    })
  }

  readonly #emit = (events: readonly Item[]): MaybePromise<void> => {
    this.#requests.shift()?.resolve({ value: events, done: false })
    if (this.#requests[0]?.type === 'next') return
    return new Promise((resolve, reject) => {
      this.#resume = () => {
        const request = this.#requests[0]
        if (!request) return
        this.#resume = undefined
        if (request.type === 'next') resolve()
        else reject(request.type === 'throw' ? request.value : readerLeft)
      }
      this.#resume()
    })
  }

  /** Answers the request for which the run ended, and all later ones: nothing comes after the end. */
  #end(answer: (first: ReaderRequest<Item, Result>) => void = close): void {
    this.#isOver = true
    const [first, ...others] = this.#requests.splice(0)
    if (first) answer(first)
    others.forEach(close)
  }
}

/** Answers a request to a run that has failed. A reader that has left gets the value it left with. */
function fail<Item, Result>(request: ReaderRequest<Item, Result>, error: unknown): void {
  if (request.type === 'return' && error === readerLeft) close(request)
  else request.reject(error)
}

/** Answers a request after the end. */
function close<Item, Result>({ type, value, resolve, reject }: ReaderRequest<Item, Result>): void {
  if (type === 'throw') return reject(value)
  // As in a generator, a promise of the value is awaited. `next` has no value.
  Promise.resolve(value).then((result) => resolve({ value: result as Result, done: true }), reject)
}
