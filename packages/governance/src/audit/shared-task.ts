/**
 * A task that callers share. Each call is answered by a run that began after it: callers that come
 * while one runs wait together for the next. This is what makes group commit.
 */
export class SharedTask<T> {
  readonly #task: () => Promise<T>
  #running: Promise<unknown> | undefined
  #next: Promise<T> | undefined

  constructor(task: () => Promise<T>) {
    this.#task = task
  }

  run(): Promise<T> {
    return (this.#next ??= this.#runAfter(this.#running))
  }

  async #runAfter(before: Promise<unknown> | undefined): Promise<T> {
    // Its failure belongs to its own callers.
    await before?.catch(() => undefined)
    // Callers of the same tick come along.
    await undefined
    this.#next = undefined
    const running = this.#task()
    this.#running = running
    return running
  }
}
