/** A value, or a promise of it. A caller awaits only a promise, because each wait costs time even without one. */
export type MaybePromise<T> = T | Promise<T>

/** True for a value that has to be awaited, also for promises that are no instances of this `Promise`. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'
}
