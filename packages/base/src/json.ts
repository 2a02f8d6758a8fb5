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

/** Objects that are known to be frozen together with everything they contain, so that no object is visited twice. */
const deepFrozen = new WeakSet<object>()

/**
 * Freezes a value and everything it contains, in place, and returns it. Objects that were frozen by an
 * earlier call are not walked again, so adding to a frozen history costs only the new part. Arrays, plain
 * objects and class instances are frozen, through their enumerable properties as in JSON. Functions and
 * built-ins with inner state (typed arrays, Map, Set, Date, …) are left as they are: freezing them would
 * throw, or would not keep them from changing.
 */
export function deepFreeze<T>(value: T): T {
  walk(value, Object.freeze)
  return value
}

/**
 * The base of classes whose instances are deeply frozen once their constructor has returned. `deepFreeze`
 * recognises such an instance by its private field and skips it, without an entry in `deepFrozen`.
 */
export abstract class FrozenData {
  // oxlint-disable-next-line no-unused-private-class-members -- `#mark in value` looks for it
  readonly #mark = true

  static isFrozen(value: object): boolean {
    return #mark in value
  }
}

/** The most objects that `freezeTree` visits; larger values are frozen by `deepFreeze`. */
const MAX_TREE = 1000

/**
 * Does the same as `deepFreeze` for a value that was just made and has no cycle, such as parsed JSON. It does
 * not add the value to `deepFrozen`, because an entry costs time and memory as long as the value lives.
 * Freezing the value a second time therefore walks through it again.
 */
export function freezeTree<T>(value: T): T {
  return countNodes(value, 0, Object.freeze) > MAX_TREE ? deepFreeze(value) : value
}

/**
 * Visits every object after the objects that it contains, and returns how many there are; stops above
 * `MAX_TREE`. NaN when `visit` returns false.
 */
function countNodes(node: unknown, count: number, visit: (node: object) => unknown): number {
  if (!(count <= MAX_TREE) || !isFreezable(node)) return count
  count++
  if (Array.isArray(node)) for (const child of node) count = countNodes(child, count, visit)
  // Faster than `Object.values`, which makes a list.
  else for (const key in node) count = countNodes((node as Fields)[key], count, visit)
  return visit(node) ? count : NaN
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns a frozen copy of plain data, for values that the caller may go on changing. Objects that are frozen
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

/** True when `deepFreeze` would change nothing. */
export function isDeepFrozen(value: unknown): boolean {
  return countNodes(value, 0, Object.isFrozen) <= MAX_TREE || walk(value, Object.isFrozen)
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

/**
 * Visits every object that is not known to be deeply frozen, without recursion, and adds them to `deepFrozen`
 * at the end. When `visit` returns false or a getter throws, the walk stops and nothing is added.
 */
function walk(root: unknown, visit: (node: object) => unknown): boolean {
  const pending: unknown[] = [root]
  const seen = new Set<object>()
  while (pending.length > 0) {
    const node = pending.pop()
    if (!isFreezable(node) || deepFrozen.has(node) || seen.has(node)) continue
    if (!visit(node)) return false
    seen.add(node)
    for (const child of Object.values(node)) pending.push(child)
  }
  for (const node of seen) deepFrozen.add(node)
  return true
}

function isFreezable(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  if (FrozenData.isFrozen(value)) return false
  return Object.prototype.toString.call(value) === '[object Object]'
}
