/** Any JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

/** A JSON object. A member that is undefined is left out, as `JSON.stringify` does. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

/** A JSON Schema object of any draft. Its keywords are kept as they are and not checked. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** True for objects with named fields, including class instances, but not for arrays and null. */
export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * True for objects made by a literal, `JSON.parse` or `Object.create(null)`, also in another realm (such as a
 * frame or a VM context).
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  // Only the Object.prototype of another realm has no prototype itself and the tag `[object Object]`.
  return (
    Object.getPrototypeOf(prototype) === null &&
    Object.prototype.toString.call(value) === '[object Object]'
  )
}

/** Parses JSON, or returns undefined when the text is not JSON. Use it for text that is often not JSON. */
export function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue // JSON.parse returns only JSON values
  } catch {
    return undefined
  }
}
