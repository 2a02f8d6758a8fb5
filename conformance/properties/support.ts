/** What the property tests share: how many cases they try, and places in a JSON document. */
import { vi } from 'vitest'

export type Json = Record<string, unknown>
export type Path = readonly (string | number)[]

/** A change of a valid input, with the rule of the specification that it touches. */
export interface Mutation<T> {
  readonly rule: string
  readonly result: T
}

// Twenty times as many cases need more than the usual time.
if (process.env['SKEIN_DEEP']) vi.setConfig({ testTimeout: 600_000 })

/** The number of cases of a property; `npm run test:deep` tries twenty times as many. */
export function runs(count: number): { readonly numRuns: number } {
  return { numRuns: process.env['SKEIN_DEEP'] ? count * 20 : count }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function valueAt(document: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Json)[key], document)
}

/** A copy of the document in which the object at the path was changed. */
export function changedAt<T>(document: T, path: Path, change: (place: Json) => void): T {
  const copy = structuredClone(document)
  change(valueAt(copy, path) as Json)
  return copy
}
