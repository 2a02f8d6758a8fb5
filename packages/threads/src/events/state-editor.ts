/** `T` with writable properties. The properties of nested objects stay read-only. */
export type Writable<T> = T extends readonly (infer E)[] ? E[] : { -readonly [K in keyof T]: T[K] }

/**
 * Creates a changed state without changing the objects of the original state. One editor is used for one
 * batch of events: the first time the batch writes to an object, the object is copied; later writes of the
 * same batch change that copy. So a fold over n events takes linear time, and a state that was returned
 * earlier never changes.
 */
export class StateEditor {
  readonly #owned = new Set<object>()

  /**
   * Returns a copy of `value` that this editor may change, or `value` itself when it is such a copy already.
   */
  own<T extends object>(value: T): Writable<T> {
    if (this.#owned.has(value)) return value as Writable<T>
    const copy = (Array.isArray(value) ? value.slice() : { ...value }) as Writable<T>
    this.#owned.add(copy)
    return copy
  }

  /**
   * Replaces `holder[key]` by a writable copy and returns the copy. `holder` itself must be writable already.
   */
  at<T extends object, K extends keyof T>(holder: T, key: K): Writable<NonNullable<T[K]>> {
    const child = this.own(holder[key] as object)
    holder[key] = child as T[K]
    return child as Writable<NonNullable<T[K]>>
  }

  /** Marks an object that was created in this batch as writable, so that it is not copied. */
  adopt<T extends object>(value: T): T {
    this.#owned.add(value)
    return value
  }
}

/** Reads an own key of a record, so that an id such as `constructor` does not find an inherited property. */
export function getKey<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
