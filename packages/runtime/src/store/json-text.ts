import { isPlainObject } from '@skein/base'
import { StoreError } from './store.ts'

/** Deeper JSON would overflow the stack of whoever reads it. */
const MAX_DEPTH = 1000

/**
 * The JSON of a value, which must be nothing but JSON: what comes back from a store is then what went
 * in. Members that are undefined are left out, as `JSON.stringify` does; `what` names it in the error.
 */
export function jsonText(value: unknown, what: string): string {
  const problem = findProblem(value, [])
  if (problem)
    throw new StoreError(`${what} is not JSON: it has ${problem}.`, {
      code: 'NOT_JSON',
      hint: 'Convert it to plain objects, lists, text, finite numbers, true, false or null first.',
    })
  return JSON.stringify(value)
}

/** `above` holds the objects around the value. Its place is added to a problem on the way out. */
function findProblem(value: unknown, above: object[]): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : `the number ${value}`
    case 'object':
      return value === null ? undefined : findBelow(value, above)
    default:
      return `a value of type ${typeof value}`
  }
}

function findBelow(value: object, above: object[]): string | undefined {
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
