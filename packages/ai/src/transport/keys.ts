import type { Random } from '@skein/base'
import type { KeyStrategy } from '../contract/provider.ts'
import { invalidValue, type UPPError } from '../contract/error.ts'

/** Uses the keys in turn, one per attempt, also across concurrent calls. */
export class RoundRobinKeys implements KeyStrategy {
  readonly #keys: readonly string[]
  #next = 0

  constructor(keys: readonly string[]) {
    if (!Array.isArray(keys) || keys.length === 0) throw invalidKey('RoundRobinKeys', 'no keys')
    keys.forEach((key, index) => checkKey('RoundRobinKeys', key, index))
    this.#keys = [...keys]
  }

  getKey(): string {
    const key = this.#keys[this.#next]!
    this.#next = (this.#next + 1) % this.#keys.length
    return key
  }
}

/** One key and how often it is chosen, relative to the others. */
export interface WeightedKey {
  readonly key: string
  readonly weight: number
}

/** Chooses a key at random by weight. A key with weight 0 is never chosen. */
export class WeightedKeys implements KeyStrategy {
  readonly #entries: readonly WeightedKey[]
  readonly #total: number
  readonly #random: Random

  constructor(entries: readonly WeightedKey[], { random = Math.random }: { random?: Random } = {}) {
    if (!Array.isArray(entries) || entries.length === 0)
      throw invalidKey('WeightedKeys', 'no entries')
    entries.forEach((entry, index) => {
      checkKey('WeightedKeys', entry?.key, index)
      const { weight } = entry as { weight: unknown }
      if (typeof weight === 'number' && weight >= 0 && Number.isFinite(weight)) return
      throw invalidKey(
        'WeightedKeys',
        `the weight ${String(weight)} (${typeof weight}) at ${index}`,
      )
    })
    this.#entries = entries.filter(({ weight }) => weight > 0)
    this.#total = this.#entries.reduce((sum, { weight }) => sum + weight, 0)
    this.#random = random
    if (this.#entries.length === 0)
      throw invalidKey('WeightedKeys', 'no entry with a weight above 0')
    if (!Number.isFinite(this.#total))
      throw invalidKey('WeightedKeys', 'weights too large to add up')
  }

  getKey(): string {
    let rest = this.#random() * this.#total
    for (const { key, weight } of this.#entries) {
      rest -= weight
      if (rest < 0) return key
    }
    return this.#entries.at(-1)!.key // reached only through rounding errors
  }
}

/** Calls a function for the key of each attempt, e.g. to read a vault or request a token. */
export class DynamicKey implements KeyStrategy {
  readonly #ask: () => string | Promise<string>

  constructor(ask: () => string | Promise<string>) {
    if (typeof ask !== 'function')
      throw invalidKey('DynamicKey', `a ${typeof ask} for its function`)
    this.#ask = ask
  }

  getKey(): string | Promise<string> {
    return this.#ask()
  }
}

/** Throws if a key is empty or not a text. The error names the key's index and type, never its value. */
function checkKey(owner: string, key: unknown, index: number): void {
  if (typeof key === 'string' && key.trim() !== '') return
  const what = typeof key === 'string' ? 'an empty key' : `a ${typeof key} for a key`
  throw invalidKey(owner, `${what} at ${index}`)
}

function invalidKey(owner: string, what: string): UPPError {
  return invalidValue(
    `${owner} was given ${what}.`,
    'Keys are non-empty strings; weights are numbers from 0, at least one above it.',
  )
}
interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>
}
/**
 * Reads an environment variable. Undefined if it is unset or empty, or if there is no environment (a
 * browser). The only place in this package that reads the environment.
 */
export function environment(name: string): string | undefined {
  try {
    const value = (globalThis as { process?: ProcessLike }).process?.env?.[name]
    return value === '' ? undefined : value
  } catch {
    return undefined // Deno throws without permission to read the variable: treated as unset
  }
}
