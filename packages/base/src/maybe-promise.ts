/** A value, or a promise of it. A caller awaits only a promise, because each wait costs time even without one. */
export type MaybePromise<T> = T | Promise<T>

/** True for a value that has to be awaited. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return value instanceof Promise
}
