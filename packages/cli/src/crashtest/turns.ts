/** How long a request waits for earlier ones. A request that streams, or waits for another, must not stop the program. */
const HOLD_MS = 250

/**
 * Lets requests pass one after another, in the order in which the program sent them. So what the world has received when
 * the program dies is the same in each run, also if the program sends several requests at the same time.
 */
export class Turns {
  readonly #done = new Set<number>()
  readonly #earlier: (number: number) => readonly number[]
  readonly #waiting = new Set<() => void>()

  /** `earlier` returns the numbers of all requests before one. */
  constructor(earlier: (number: number) => readonly number[]) {
    this.#earlier = earlier
  }

  async wait(number: number): Promise<void> {
    const before = this.#earlier(number)
    const isNext = (): boolean => before.every((one) => this.#done.has(one))
    if (isNext()) return
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!isNext()) return
        clearTimeout(timer)
        this.#waiting.delete(look)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(look)
        resolve()
      }, HOLD_MS)
      this.#waiting.add(look)
    })
  }

  end(number: number): void {
    this.#done.add(number)
    for (const look of this.#waiting) look()
  }
}
