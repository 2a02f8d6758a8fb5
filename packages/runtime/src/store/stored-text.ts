import { isPlainObject } from '@skein/base'
import { StoreError } from './store-error.ts'

/** The maximum depth of JSON; deeper values would overflow the stack of recursive code. */
const MAX_DEPTH = 1000

/**
 * Encodes a value as JSON. Throws `NOT_JSON` for anything that the store would return differently, such as a
 * Date or NaN. Undefined members are omitted, as by `JSON.stringify`. `what` names the value in the error.
 */
export function storedText(value: unknown, what: string): string {
  const problem = findProblem(value, [])
  if (problem)
    throw new StoreError(`${what} is not JSON: it has ${problem}.`, {
      code: 'NOT_JSON',
      hint: 'Convert it to plain objects, lists, text, finite numbers, true, false or null first.',
    })
  return JSON.stringify(value)
}

/**
 * Returns the path and kind of a part that is not JSON. `above` contains the objects around the value, to
 * find cycles.
 */
function findProblem(value: unknown, above: object[]): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : `the number ${value}`
    case 'object':
      if (value === null) return undefined
      break
    default:
      return `a value of type ${typeof value}`
  }
  if (above.includes(value)) return 'a cycle'
  if (above.length >= MAX_DEPTH) return `more than ${MAX_DEPTH} levels`
  const isList = Array.isArray(value)
  if (!isList && !isPlainObject(value)) return `a ${value.constructor?.name ?? 'special object'}`
  if ('toJSON' in value && typeof value.toJSON === 'function') return 'a method toJSON'
  above.push(value)
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined && !isList) continue
    const problem = findProblem(member, above)
    if (problem) return above.length > 20 ? problem : `${problem} in ${JSON.stringify(key)}`
  }
  above.pop()
  return undefined
}
