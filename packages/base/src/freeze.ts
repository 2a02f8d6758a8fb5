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

/** True when `deepFreeze` would change nothing. */
export function isDeepFrozen(value: unknown): boolean {
  return countNodes(value, 0, Object.isFrozen) <= MAX_TREE || walk(value, Object.isFrozen)
}

/**
 * Visits every object that is not known to be deeply frozen, without recursion, and adds them to `deepFrozen`
 * at the end. When `visit` returns false or a getter throws, the walk stops and nothing is added.
 */
function walk(root: unknown, visit: (node: object) => unknown): boolean {
  const pending: unknown[] = [root]
  const visited = new Set<object>()
  while (pending.length > 0) {
    const node = pending.pop()
    if (!isFreezable(node) || deepFrozen.has(node) || visited.has(node)) continue
    if (!visit(node)) return false
    visited.add(node)
    for (const child of Object.values(node)) pending.push(child)
  }
  for (const node of visited) deepFrozen.add(node)
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
