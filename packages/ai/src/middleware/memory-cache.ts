import { systemClock, type Clock } from '@skein/base'
import type { CacheStore } from './cache.ts'

export interface MemoryCacheOptions {
  /** Beyond it, what was not used for longest is dropped. Default 1000. */
  readonly maxEntries?: number
  /** Characters of all entries together. Default 64 million. */
  readonly maxCharacters?: number
  readonly clock?: Clock
}

interface Entry {
  readonly value: string
  readonly expiresAt: number
}

/** A store in the memory of this process. */
export class MemoryCache implements CacheStore {
  readonly #maxEntries: number
  readonly #maxCharacters: number
  readonly #clock: Clock
  /** In order of use, oldest first. */
  readonly #entries = new Map<string, Entry>()
  #characters = 0

  constructor(options: MemoryCacheOptions = {}) {
    const { maxEntries = 1000, maxCharacters = 64_000_000, clock = systemClock } = options
    this.#maxEntries = maxEntries
    this.#maxCharacters = maxCharacters
    this.#clock = clock
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): string | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#delete(key)
    if (entry.expiresAt <= this.#clock.now()) return undefined
    this.#add(key, entry)
    return entry.value
  }

  set(key: string, value: string, ttlMs: number = Infinity): void {
    this.#delete(key)
    if (value.length > this.#maxCharacters) return
    this.#add(key, { value, expiresAt: this.#clock.now() + ttlMs })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#characters <= this.#maxCharacters) return
      this.#delete(oldest)
    }
  }

  #add(key: string, entry: Entry): void {
    this.#entries.set(key, entry)
    this.#characters += entry.value.length
  }

  #delete(key: string): void {
    this.#characters -= this.#entries.get(key)?.value.length ?? 0
    this.#entries.delete(key)
  }
}
