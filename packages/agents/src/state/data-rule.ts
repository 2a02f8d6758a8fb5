import { isPlainObject } from '@skein/base'

/**
 * What a part of stored data must be: a name of `typeof`, a list of such parts, an object with these members
 * (`name?` may be absent), or a function that returns what is expected if the value is something else.
 */
export type DataRule =
  | 'string'
  | 'number'
  | 'boolean'
  | readonly [DataRule]
  | { readonly [member: string]: DataRule }
  | ((value: unknown) => string | undefined)

/** Returns the first fault of JSON data: its path, what is there, what was expected. Undefined if there is none. */
export function misfit(value: unknown, rule: DataRule, path = ''): string | undefined {
  const not = (expected: string): string =>
    `${path || 'it'} is ${kindOfValue(value)}, not ${expected}`
  if (typeof rule === 'string') return typeof value === rule ? undefined : not(`a ${rule}`)
  if (typeof rule === 'function') {
    const expected = rule(value)
    return expected && not(expected)
  }
  let problem: string | undefined
  if (Array.isArray(rule)) {
    if (!Array.isArray(value)) return not('a list')
    value.some((item, index) => (problem = misfit(item, rule[0] as DataRule, `${path}[${index}]`)))
    return problem
  }
  if (!isPlainObject(value)) return not('an object')
  Object.entries(rule).some(([member, inner]) => {
    const name = member.replace('?', '')
    const isAbsent = name !== member && value[name] === undefined
    return !isAbsent && (problem = misfit(value[name], inner, path ? `${path}.${name}` : name))
  })
  return problem
}

/** Names what a value is; numbers and booleans are shown, texts are not, because they may be private. */
function kindOfValue(value: unknown): string {
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'string' ? 'a string' : String(value)
}

/** The rule of an id: a string that is not empty. */
export function anId(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? undefined : 'an id'
}
