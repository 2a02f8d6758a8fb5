import { isPlainObject, type JsonObject, type JsonValue, messageOf } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'

/**
 * The largest depth of nested data; deeper data is rejected, because reading it could overflow the stack.
 * The limit leaves space for tool results, which have at most 512 levels.
 */
const MAX_DEPTH = 1024

/** Returns a frozen copy of plain data. Values that JSON cannot express are kept; `toJSON` rejects them. */
export function frozenData<T>(value: T): T {
  return copy(value, new Map(), 0) as T // a copy has the type of its original
}

/** Returns a frozen copy of the object with one entry set, or removed if `value` is undefined. */
export function withEntry(
  object: JsonObject,
  name: string,
  value: JsonValue | undefined,
): JsonObject {
  const { [name]: _, ...rest } = object
  if (value === undefined || name === '__proto__') return Object.freeze(rest)
  return Object.freeze({ ...rest, [name]: frozenData(value) })
}

function copy(value: unknown, seen: Map<object, unknown>, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  if (depth > MAX_DEPTH) throw invalidUse(`Data is nested deeper than ${MAX_DEPTH} levels.`)
  const copyBefore = seen.get(value)
  if (copyBefore !== undefined) return copyBefore
  if (Array.isArray(value)) {
    const list: unknown[] = []
    seen.set(value, list)
    for (const item of value) list.push(copy(item, seen, depth + 1))
    return Object.freeze(list)
  }
  if (!isPlainObject(value)) return value
  const object: Record<string, unknown> = {}
  seen.set(value, object)
  // As in JSON, entries whose value is undefined are left out. `__proto__` is dropped for safety.
  for (const [name, item] of Object.entries(value))
    if (item !== undefined && name !== '__proto__') object[name] = copy(item, seen, depth + 1)
  return Object.freeze(object)
}

/** Throws INVALID_REQUEST with the path of the first value that JSON cannot express. */
export function checkJson(value: unknown, path: string): void {
  visit(value, path, new Set(), 0)
}

function visit(value: unknown, path: string, above: Set<object>, depth: number): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number' && Number.isFinite(value)) return
  if (typeof value === 'number') throw notJson(path, String(value))
  if (value === undefined) throw notJson(path, 'undefined')
  if (typeof value !== 'object') throw notJson(path, `a ${typeof value}`)
  if (above.has(value)) throw notJson(path, 'a value that contains itself')
  if (depth > MAX_DEPTH) throw notJson(path, `nested deeper than ${MAX_DEPTH} levels`)
  if (!Array.isArray(value) && !isPlainObject(value))
    throw notJson(path, `an instance of ${value.constructor?.name ?? 'a class'}`)
  above.add(value)
  if (Array.isArray(value))
    value.forEach((item, index) => visit(item, `${path}[${index}]`, above, depth + 1))
  else
    for (const [name, item] of Object.entries(value))
      visit(item, `${path}.${name}`, above, depth + 1)
  above.delete(value)
}

function notJson(path: string, what: string): Error {
  return invalidUse(
    `The state cannot be written as JSON: ${path} is ${what}.`,
    'Keep strings, finite numbers, booleans, null, lists and plain objects in a state.',
  )
}

/**
 * Copies untrusted data as plain JSON (UAP §15.3). Data that is too deep or not JSON throws INVALID_REQUEST,
 * and `__proto__` is dropped. Each getter is read only once, so that the checked values are the ones used.
 */
export function readData(value: unknown): unknown {
  try {
    return read(value, 0)
  } catch (error) {
    throw invalidUse(`This is not JSON: ${messageOf(error)}`)
  }
}

function read(value: unknown, depth: number): unknown {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${value} is no JSON number`)
    return value
  }
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (depth > MAX_DEPTH) throw new TypeError(`it is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (let index = 0; index < value.length; index++) items.push(read(value[index], depth + 1))
    return items
  }
  if (!isPlainObject(value)) throw new TypeError(`it holds a ${typeof value}`)
  const object: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const item = value[name]
    if (item !== undefined && name !== '__proto__') object[name] = read(item, depth + 1)
  }
  return object
}
