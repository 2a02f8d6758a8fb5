/** Jobs one after the other for each key, those of different keys side by side. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>()

  /** Starts the job when all earlier ones of its key are over, however they ended. */
  run<T>(key: string, job: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const result = before ? before.then(job) : runNow(job)
    const tail = result.then(nothing, nothing).then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    this.#tails.set(key, tail)
    return result
  }

  /** When all jobs that are known now are over: of one key, or of all. */
  async idle(key?: string): Promise<void> {
    if (key === undefined) await Promise.all(this.#tails.values())
    else await this.#tails.get(key)
  }
}

/** A job that throws at once fails like one that rejects. */
async function runNow<T>(job: () => Promise<T>): Promise<T> {
  return job()
}

function nothing(): void {}
