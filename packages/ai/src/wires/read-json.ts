import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'

/** Vendor JSON is read through these: a field of the wrong kind is the same as no field. */
export function objectOf(value: unknown): JsonObject | undefined {
  return isPlainObject(value) ? (value as JsonObject) : undefined // parsed JSON holds only JSON
}

/** A list, empty where there is none. */
export function listOf(value: unknown): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : []
}

/** A text, also an empty one. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** A text with something in it. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** A finite number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** A copy without the named fields and without those that say nothing (null). */
export function without(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const rest: Record<string, JsonValue> = {}
  for (const key of Object.keys(object)) {
    const value = object[key]
    // Assigning `__proto__` would set a prototype instead of keeping data.
    if (value === null || value === undefined || key === '__proto__' || names.has(key)) continue
    rest[key] = value
  }
  return rest
}

/** True without any field. */
export function isEmpty(object: JsonObject): boolean {
  for (const _key in object) return false
  return true
}

/** A count; 0 where the vendor sent none. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
