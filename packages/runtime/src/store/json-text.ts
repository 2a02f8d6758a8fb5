import { isPlainObject } from '@skein/base'
import { StoreError } from './store.ts'

/**
 * The JSON of a value, which must be nothing but JSON: what comes back from a store is then what went
 * in. Members that are undefined are left out, as `JSON.stringify` does; `what` names it in the error.
 */
export function jsonText(value: unknown, what: string): string {
  const problem = findProblem(value, '', [])
  if (problem)
    throw new StoreError(`${what} is not JSON: ${problem}.`, {
      code: 'NOT_JSON',
      hint: 'Convert it to plain objects, lists, text, finite numbers, true, false or null first.',
    })
  return JSON.stringify(value)
}

function findProblem(value: unknown, path: string, above: readonly object[]): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : `${value} at ${path || 'the top'}`
    case 'object':
      return value === null ? undefined : findBelow(value, path, above)
    default:
      return `${typeof value} at ${path || 'the top'}`
  }
}

function findBelow(value: object, path: string, above: readonly object[]): string | undefined {
  if (above.includes(value)) return `a cycle at ${path || 'the top'}`
  const isList = Array.isArray(value)
  if (!isList && !isPlainObject(value))
    return `a ${value.constructor?.name ?? 'special object'} at ${path || 'the top'}`
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return `toJSON at ${path || 'the top'}`
  const inside = [...above, value]
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined && !isList) continue
    const problem = findProblem(member, `${path}/${key}`, inside)
    if (problem) return problem
  }
  return undefined
}
