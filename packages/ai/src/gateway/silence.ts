/**
 * Reads an iterator and reports when nothing has come for a while: proxies end a connection on which nothing is sent,
 * however long the model needs to think.
 */
export class SilenceReader<T> {
  readonly #source: AsyncIterator<T>
  readonly #timer: ReturnType<typeof setInterval> | undefined
  #pending: Promise<IteratorResult<T>> | undefined
  #hasRead = false
  /** Ends the running `next`. */
  #onSilence: (() => void) | undefined

  /** With `ms` of 0 or Infinity, silence is never reported. */
  constructor(source: AsyncIterator<T>, ms: number) {
    this.#source = source
    if (!(ms > 0) || ms === Infinity) return
    // One timer for the whole answer: one for each event would cost more than the event.
    this.#timer = setInterval(() => {
      const wasSilent = !this.#hasRead
      this.#hasRead = false
      if (wasSilent) this.#onSilence?.()
    }, ms)
    const { unref } = this.#timer as { unref?: () => void }
    unref?.call(this.#timer)
  }

  /** Returns the next item, or `silent` after one to two intervals without one. */
  async next(): Promise<IteratorResult<T> | 'silent'> {
    const pending = (this.#pending ??= this.#source.next())
    // No `Promise.race` with one promise for all silences: it would keep every item of the stream.
    const step = await new Promise<IteratorResult<T> | 'silent'>((resolve, reject) => {
      this.#onSilence = () => resolve('silent')
      pending.then(resolve, reject) // an error that comes during silence is thrown by the next call
    })
    if (step !== 'silent') {
      this.#pending = undefined
      this.#hasRead = true
    }
    return step
  }

  /** Closes the iterator. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#source.return?.()
  }
}
