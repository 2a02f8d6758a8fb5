import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'

/**
 * Returns the value if it is an object. The functions in this file read untrusted JSON: a field of the
 * wrong type is treated as missing.
 */
export function objectOf(value: unknown): JsonObject | undefined {
  // an object from JSON.parse contains only JSON
  return isPlainObject(value) ? (value as JsonObject) : undefined
}

/** Returns the value if it is a list, otherwise an empty list. */
export function listOf(value: unknown): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : []
}

/** Returns the value if it is a text, even an empty one. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Returns the texts of a list of parts, '' for a part without one. */
export function textsOf(parts: unknown): string[] {
  return listOf(parts).map((part) => stringOf(objectOf(part)?.['text']) ?? '')
}

/** Returns the value if it is a text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * Checks whether a text has one phrase and, somewhere after it, another, ignoring case. A regular
 * expression `/first.*second/` would take quadratic time on a long text that repeats the first phrase.
 */
export function hasWords(text: string, first: string, second: string): boolean {
  const lower = text.toLowerCase()
  const start = lower.indexOf(first)
  return start >= 0 && lower.includes(second, start + first.length)
}

/** Returns the value if it is a finite number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** Returns a copy without the named fields and without null fields. */
export function without(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const rest: Record<string, JsonValue> = {}
  for (const key of Object.keys(object)) {
    const value = object[key]
    // Assigning `__proto__` would set the prototype instead of a field.
    if (value === null || value === undefined || key === '__proto__' || names.has(key)) continue
    rest[key] = value
  }
  return rest
}

/** Checks whether an object has no fields. */
export function isEmpty(object: JsonObject): boolean {
  for (const _key in object) return false
  return true
}

/** Returns the value if it is a finite number, otherwise 0. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
