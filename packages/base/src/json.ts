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

/**
 * Returns a frozen copy of plain data, for values that the caller may still change. Objects that are frozen
 * already, instances of classes and objects for which `keep` returns true are not copied. Cycles and shared
 * references are preserved in the copy.
 */
export function frozenCopy<T>(value: T, keep: (value: object) => boolean = () => false): T {
  const copies = new Map<object, unknown>()
  const copy = (source: unknown): unknown => {
    if (typeof source !== 'object' || source === null || Object.isFrozen(source)) return source
    if (copies.has(source)) return copies.get(source)
    if (Array.isArray(source)) {
      const list: unknown[] = []
      copies.set(source, list)
      for (const item of source) list.push(copy(item))
      return Object.freeze(list)
    }
    if (!isPlainObject(source) || keep(source)) return source
    const object: Record<string, unknown> = {}
    copies.set(source, object)
    for (const [key, item] of Object.entries(source)) {
      // `defineProperty` and not an assignment, because a key named `__proto__` must be copied like any
      // other.
      Object.defineProperty(object, key, { value: copy(item), enumerable: true })
    }
    return Object.freeze(object)
  }
  return copy(value) as T // a copy has the type of its original
}

/** Checks whether a value has the type that JSON Schema gives this name (JSON Schema validation §6.1.1). */
export function isOfType(name: unknown, value: unknown): boolean {
  switch (name) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    default:
      return typeof value === name
  }
}
