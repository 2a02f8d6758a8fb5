import type { Clock } from '@skein/base'

/** A value that is good until a time; undefined if it does not end. */
export interface Expiring {
  readonly expiresAt?: number | undefined
}

/**
 * Keeps a value and renews it before it ends. Concurrent callers share one renewal. While the value is still good, a
 * renewal that fails does no harm: the next call tries again.
 */
export class ExpiringValue<T extends Expiring> {
  readonly #load: () => Promise<T>
  readonly #clock: Clock
  readonly #earlyMs: number
  #value: T | undefined
  /** The value before, which requests that are under way may still use. */
  #previous: T | undefined
  #loading: Promise<T> | undefined

  constructor(load: () => Promise<T>, clock: Clock, earlyMs: number) {
    this.#load = load
    this.#clock = clock
    this.#earlyMs = earlyMs
  }

  /** The value, if there is one, good or not. */
  get current(): T | undefined {
    return this.#value
  }

  /** The values that requests may be using. */
  get inUse(): readonly T[] {
    return [this.#previous, this.#value].filter((value) => value !== undefined)
  }

  async get(): Promise<T> {
    const value = this.#value
    if (value && this.#msLeft(value) > this.#earlyMs) return value
    try {
      return await (this.#loading ??= this.#renew())
    } catch (error) {
      if (value && this.#msLeft(value) > 0) return value
      throw error
    }
  }

  /** Forgets a value that was refused. */
  drop(): void {
    this.#previous = this.#value
    this.#value = undefined
  }

  async #renew(): Promise<T> {
    // A loader may throw before it returns a promise; `#loading` must be set before it is cleared.
    await Promise.resolve()
    try {
      const value = await this.#load()
      this.#previous = this.#value ?? this.#previous
      return (this.#value = value)
    } finally {
      this.#loading = undefined
    }
  }

  #msLeft({ expiresAt = Infinity }: T): number {
    return expiresAt - this.#clock.now()
  }
}
