import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import { invalidRequest } from './agent-error.ts'

/** Deeper data is refused: nothing an agent keeps is that deep, and JSON readers overflow. */
export const MAX_DEPTH = 256

/** A frozen copy of plain data. What JSON cannot say is copied as it is; `toJSON` refuses it. */
export function frozenCopy<T>(value: T): T {
  return copy(value, new Map(), 0) as T // a copy has the shape of its original
}

/** An object with one entry set or, with `undefined`, removed. */
export function withEntry(
  object: JsonObject,
  name: string,
  value: JsonValue | undefined,
): JsonObject {
  const { [name]: _, ...rest } = object
  if (value === undefined || name === '__proto__') return Object.freeze(rest)
  return Object.freeze({ ...rest, [name]: frozenCopy(value) })
}

function copy(value: unknown, seen: Map<object, unknown>, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  if (depth > MAX_DEPTH) throw invalidRequest(`Data is nested deeper than ${MAX_DEPTH} levels.`)
  const known = seen.get(value)
  if (known !== undefined) return known
  if (Array.isArray(value)) {
    const list: unknown[] = []
    seen.set(value, list)
    for (const item of value) list.push(copy(item, seen, depth + 1))
    return Object.freeze(list)
  }
  if (!isPlainObject(value)) return value
  const object: Record<string, unknown> = {}
  seen.set(value, object)
  // As JSON would: entries without a value are no entries. `__proto__` is never data of ours.
  for (const [name, item] of Object.entries(value))
    if (item !== undefined && name !== '__proto__') object[name] = copy(item, seen, depth + 1)
  return Object.freeze(object)
}

/** Throws INVALID_REQUEST with the path of the first thing that would not survive JSON. */
export function checkJson(value: unknown, path: string): void {
  visit(value, path, new Set(), 0)
}

function visit(value: unknown, path: string, above: Set<object>, depth: number): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number' && Number.isFinite(value)) return
  if (typeof value !== 'object') throw notJson(path, describe(value))
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

function describe(value: unknown): string {
  if (typeof value === 'number') return String(value)
  return value === undefined ? 'undefined' : `a ${typeof value}`
}

function notJson(path: string, what: string): Error {
  return invalidRequest(
    `The state cannot be written as JSON: ${path} is ${what}.`,
    'Keep strings, finite numbers, booleans, null, lists and plain objects in a state.',
  )
}
