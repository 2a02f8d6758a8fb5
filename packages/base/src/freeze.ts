/** Graphs known to be frozen all the way down. Each node is visited once in its life. */
const deepFrozen = new WeakSet<object>()

/**
 * Freezes a value and all it holds, in place, and returns it. Graphs frozen earlier are not walked again,
 * so adding to a frozen history costs only what is new. Arrays, plain objects and class instances are
 * frozen; functions and built-ins with inner state (typed arrays, Map, Set, Date, …) are left as they are,
 * because freezing would throw or not keep them from changing. Getters are not called.
 */
export function deepFreeze<T>(value: T): T {
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const node = pending.pop()
    if (!isFreezable(node) || deepFrozen.has(node)) continue
    Object.freeze(node)
    deepFrozen.add(node)
    pushChildren(node, pending)
  }
  return value
}

/** True when `deepFreeze` would change nothing. */
export function isDeepFrozen(value: unknown): boolean {
  if (!isFreezable(value) || deepFrozen.has(value)) return true
  const seen = new Set<object>()
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const node = pending.pop()
    if (!isFreezable(node) || seen.has(node) || deepFrozen.has(node)) continue
    if (!Object.isFrozen(node)) return false
    seen.add(node)
    pushChildren(node, pending)
  }
  for (const node of seen) deepFrozen.add(node)
  return true
}

function isFreezable(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return Object.prototype.toString.call(value) === '[object Object]'
}

function pushChildren(node: object, pending: unknown[]): void {
  for (const key of Reflect.ownKeys(node)) {
    const child: unknown = Object.getOwnPropertyDescriptor(node, key)?.value
    if (typeof child === 'object' && child !== null) pending.push(child)
  }
}
