/** Anything that JSON can say. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

/** A JSON object. A member that is undefined is left out, as `JSON.stringify` does. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

/** A JSON Schema object of any draft. Keywords are kept as they are; nothing here judges them. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** True for anything with named fields, as opposed to lists and null; also for instances of classes. */
export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** True for objects made by a literal, `JSON.parse` or `Object.create(null)`, in any realm. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  // Another realm's Object.prototype is the only other root that is itself rootless and tagged so.
  return (
    Object.getPrototypeOf(prototype) === null &&
    Object.prototype.toString.call(value) === '[object Object]'
  )
}

/** The value of a JSON text, or undefined when the text is not JSON. For text that may well be something else. */
export function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue // what JSON.parse returns is JSON
  } catch {
    return undefined
  }
}
