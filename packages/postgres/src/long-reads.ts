/** How many reads of many rows run at the same time. */
const MOST_AT_ONCE = 3
/** Reads of more rows than this are long. */
const MANY_ROWS = 200

/**
 * Lets few reads of many rows run at the same time. The driver converts the rows of all answers that have arrived in one
 * turn of the event loop, so many long answers together would block the process.
 */
export class LongReads {
  readonly #waiting: (() => void)[] = []
  #running = 0

  async run<T>(rows: number, read: () => Promise<T>): Promise<T> {
    if (rows <= MANY_ROWS) return read()
    if (this.#running < MOST_AT_ONCE) this.#running++
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve))
    try {
      return await read()
    } finally {
      const next = this.#waiting.shift() // takes the place of this read
      if (next) next()
      else this.#running--
    }
  }
}
