import { isPlainObject } from '@skein/base'
import { invalidRequest, messageOf } from './agent-error.ts'
import { MAX_DEPTH } from './state-data.ts'

/**
 * Untrusted data as plain JSON of our own (UAP §15.3): too deep or not JSON at all is a typed error,
 * `__proto__` is dropped, and no getter of the given objects is read a second time.
 */
export function readData(value: unknown): unknown {
  try {
    return read(value, 0)
  } catch (error) {
    throw invalidRequest(`This is not JSON: ${messageOf(error)}`)
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
