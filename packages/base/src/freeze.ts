import { isPlainObject } from './json.ts'

/** Graphs known to be frozen all the way down, so that none is walked twice. */
const deepFrozen = new WeakSet<object>()
/** An object this small with nothing below it is looked at again: cheaper than to remember it. */
const SMALL = 8

/**
 * Freezes a value and all it holds, in place, and returns it. Graphs frozen earlier are not walked
 * again, so adding to a frozen history costs only what is new. Arrays, plain objects and class
 * instances are frozen, through their enumerable properties as JSON sees them. Functions and
 * built-ins with inner state (typed arrays, Map, Set, Date, …) are left as they are: freezing would
 * throw, or would not keep them from changing.
 */
export function deepFreeze<T>(value: T): T {
  walk(value, (node) => {
    Object.freeze(node)
    return true
  })
  return value
}

/**
 * A frozen copy of plain data, for values that the caller may go on changing. Objects that are frozen already, instances
 * of classes and whatever `keep` claims stay the same object. Cycles and shared objects are copied as such.
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
      // Not by assignment: a key named __proto__ is data like any other.
      Object.defineProperty(object, key, { value: copy(item), enumerable: true })
    }
    return Object.freeze(object)
  }
  return copy(value) as T // a copy has the type of what it copies
}

/** True when `deepFreeze` would change nothing. */
export function isDeepFrozen(value: unknown): boolean {
  return walk(value, Object.isFrozen)
}

/** Visits what is not known to be frozen, without recursion. False from `visit` stops and forgets. */
function walk(root: unknown, visit: (node: object) => boolean): boolean {
  const pending: unknown[] = [root]
  const marked: object[] = []
  let isComplete = false
  try {
    while (pending.length > 0) {
      const node = pending.pop()
      if (!isFreezable(node) || deepFrozen.has(node)) continue
      if (!visit(node)) return false
      const values: readonly unknown[] = Array.isArray(node) ? node : Object.values(node)
      const before = pending.length
      for (let i = 0; i < values.length; i++) {
        const child = values[i]
        if (typeof child === 'object' && child !== null) pending.push(child)
      }
      if (pending.length === before && values.length <= SMALL) continue
      deepFrozen.add(node)
      marked.push(node)
    }
    isComplete = true
  } finally {
    // Also when a getter throws: a mark must never stand for a graph that was not finished.
    if (!isComplete) for (const node of marked) deepFrozen.delete(node)
  }
  return true
}

function isFreezable(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return Object.prototype.toString.call(value) === '[object Object]'
}
