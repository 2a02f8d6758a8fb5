/**
 * An immutable list that is cheap to append to. All versions that grew from each other share one
 * array and differ in how much of it is theirs; appending to the newest only pushes, appending to an
 * older one copies first. So n appends cost n, and each version still reads as a frozen array, which
 * is made when it is first asked for.
 */
export class SharedList<T> {
  readonly length: number
  readonly #items: T[]
  #view: readonly T[] | undefined

  private constructor(items: T[], length: number) {
    this.#items = items
    this.length = length
  }

  static of<T>(items: readonly T[]): SharedList<T> {
    return new SharedList([...items], items.length)
  }

  append(more: readonly T[]): SharedList<T> {
    const isNewest = this.#items.length === this.length
    const items = isNewest ? this.#items : this.#items.slice(0, this.length)
    for (const item of more) items.push(item)
    return new SharedList(items, items.length)
  }

  last(): T | undefined {
    return this.#items[this.length - 1]
  }

  /** Frozen, and the same array each time. */
  get view(): readonly T[] {
    return (this.#view ??= Object.freeze(this.#items.slice(0, this.length)))
  }
}
