import {
  closest,
  isPlainObject,
  isStandardSchema,
  type JsonObject,
  SkeinError,
  toJsonSchema,
} from '@skein/base'
import type { ToolSchema } from '@skein/ai'
import type { Problem } from '../definition-error.ts'

/**
 * Reads one unknown value. Returns the value if it is valid; otherwise reports the problem and returns
 * undefined, so that later checks see only valid values.
 */
export type Reader<T> = ((value: unknown, place: Place) => T | undefined) & {
  /** The values that a reader accepts, if they can be listed. */
  readonly choices?: string
}

/** One reader for each field. */
export type Fields<T> = { readonly [Key in keyof T]-?: Reader<NonNullable<T[Key]>> }

/** What is said about fields that do not exist. */
interface FieldNames {
  /** Other names that are suggested for a misspelt field. */
  readonly alsoKnown?: readonly string[]
  /** What to do instead of a field that other libraries have. */
  readonly renamed?: Readonly<Record<string, string>>
}

/** Reads an object field by field. Unknown keys are problems; undefined fields are treated as absent. */
export function readFields<T extends object>(
  fields: Fields<T>,
  required: readonly (keyof T & string)[] = [],
  { alsoKnown = [], renamed = {} }: FieldNames = {},
): Reader<T> {
  const names = [...Object.keys(fields), ...alsoKnown]
  return (value, place) => {
    if (!isPlainObject(value)) return report(place, `must be an object, not ${kindOf(value)}`)
    const result: Record<string, unknown> = {}
    for (const key of Reflect.ownKeys(value)) {
      if (typeof key === 'symbol') continue
      const member = value[key]
      if (member === undefined) continue
      if (!Object.hasOwn(fields, key)) {
        const instead = Object.hasOwn(renamed, key) ? `; ${renamed[key]}` : suggest(key, names)
        report(at(place, key), `is not a known field${instead}`)
        continue
      }
      const field = fields[key as keyof T](member, at(place, key))
      if (field !== undefined) result[key] = field
    }
    for (const key of required) {
      if (value[key] === undefined) report(at(place, key), requiredText(key, fields[key], place))
    }
    return result as T // each field was read by its reader
  }
}

/** Says that a field is missing, and what to write there if that is known. */
function requiredText(
  key: string,
  { choices }: { readonly choices?: string },
  { subject }: Place,
): string {
  const kind = subject.split(' ')[0] ?? ''
  if (key === 'kind') return `is required; ${makerOf(kind)}({ … }) adds it`
  return choices === undefined ? 'is required' : `is required, one of ${choices}`
}

/** The function that makes definitions of a kind: `defineAgent` for `agent`. */
export function makerOf(kind: string): string {
  return `define${kind.charAt(0).toUpperCase()}${kind.slice(1)}`
}

/** Reads a string. */
export const text: Reader<string> = (value, place) =>
  typeof value === 'string' ? value : report(place, `must be a string, not ${kindOf(value)}`)

/** Reads a non-empty string, such as a name. */
export const word: Reader<string> = (value, place) => {
  if (typeof value !== 'string') return report(place, `must be a string, not ${kindOf(value)}`)
  return value.trim() === '' ? report(place, 'must not be empty') : value
}

/** Reads true or false. */
export const flag: Reader<boolean> = (value, place) =>
  typeof value === 'boolean' ? value : report(place, `must be true or false, not ${kindOf(value)}`)

/** Reads a whole number above zero. */
export const count: Reader<number> = (value, place) =>
  Number.isSafeInteger(value) && (value as number) > 0
    ? (value as number)
    : report(place, `must be a whole number above zero, not ${kindOf(value)}`)

/** Reads a number that is not negative. */
export const amount: Reader<number> = (value, place) =>
  typeof value === 'number' && value >= 0 && value < Infinity
    ? value
    : report(place, `must be a number that is not negative, not ${kindOf(value)}`)

/** Creates a reader that accepts only the given values. */
export function oneOf<T extends string | boolean>(...values: readonly T[]): Reader<T> {
  const list = values.map((value) => JSON.stringify(value)).join(', ')
  // A wrong string is quoted, because that helps to find the right value in the list.
  const quote = (value: unknown): string =>
    typeof value === 'string'
      ? JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
      : kindOf(value)
  const words = values.filter((value) => typeof value === 'string')
  const reader: Reader<T> = (value, place) => {
    if (values.includes(value as T)) return value as T
    const likely = typeof value === 'string' ? closest(value, words) : undefined
    const hint = likely === undefined ? '' : `; did you mean "${likely}"?`
    return report(place, `must be one of ${list}, not ${quote(value)}${hint}`)
  }
  return Object.assign(reader, { choices: list })
}

/** Reads a list. An invalid item becomes undefined, so that the indexes in later problems stay correct. */
export function readList<T>(item: Reader<T>): Reader<readonly (T | undefined)[]> {
  return (value, place) => {
    if (!Array.isArray(value)) {
      // Other libraries take tools as an object whose keys are their names.
      const instead = isPlainObject(value) ? `; write [${Object.keys(value).join(', ')}]` : ''
      return report(place, `must be a list, not ${kindOf(value)}${instead}`)
    }
    return Array.from(value, (entry: unknown, index) => item(entry, at(place, index)))
  }
}

/** Reads an object of strings, e.g. variables. Problems never quote a value, because it may be a secret. */
export const textRecord: Reader<Readonly<Record<string, string>>> = (value, place) => {
  if (!isPlainObject(value)) return report(place, `must be an object, not ${kindOf(value)}`)
  for (const [key, entry] of Object.entries(value)) {
    if (typeof entry !== 'string') report(at(place, key), `must be a string, not ${typeof entry}`)
  }
  return value as Readonly<Record<string, string>> // other types were reported above
}

/** Reads an object with any fields. */
export const plainObject: Reader<JsonObject> = (value, place) =>
  isPlainObject(value)
    ? (value as JsonObject)
    : report(place, `must be an object, not ${kindOf(value)}`)

/** Reads a function. Its parameters cannot be checked. */
export function callback<T>(): Reader<T> {
  return (value, place) =>
    typeof value === 'function'
      ? (value as T)
      : report(place, `must be a function, not ${kindOf(value)}`)
}

/** Reads a schema that can validate values and convert itself to JSON Schema. */
export const schema: Reader<ToolSchema<unknown>> = (value, place) => {
  if (!isStandardSchema(value)) {
    return report(place, `must be a Standard Schema, e.g. z.object({ … }), not ${kindOf(value)}`)
  }
  try {
    toJsonSchema(value)
    return value as ToolSchema<unknown> // its JSON Schema was read above
  } catch (error) {
    const hint = SkeinError.is(error) && error.hint !== undefined ? ` ${error.hint}` : ''
    return report(place, `${error instanceof Error ? error.message : 'cannot be described'}${hint}`)
  }
}

/**
 * Describes the type of a value for messages. Strings and object contents are not quoted, because they may be
 * secret.
 */
export function kindOf(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** A place in a definition, and the list to which its problems are added. */
export interface Place {
  /** e.g. `agent "support"`. */
  readonly subject: string
  readonly file: string | undefined
  /** e.g. `sideA.prompt`; empty for the definition itself. */
  readonly field: string
  readonly problems: Problem[]
}

/** Returns the place of a field or an item below a place. */
export function at(place: Place, key: string | number): Place {
  if (typeof key === 'number') return { ...place, field: `${place.field}[${key}]` }
  return { ...place, field: place.field === '' ? key : `${place.field}.${key}` }
}

/** Adds a problem. Returns undefined, so that a reader can write `return report(…)`. */
export function report({ subject, file, field, problems }: Place, message: string): undefined {
  problems.push({ subject, field, message, file })
}

/**
 * Returns `; did you mean "x"?` when a known name is similar, else the known names if they are few, else
 * nothing.
 */
export function suggest(name: string, known: Iterable<string>): string {
  const names = [...known]
  const near = closest(name, names)
  if (near !== undefined) return `; did you mean "${near}"?`
  if (names.length === 0 || names.length > 12) return ''
  return `; there ${names.length === 1 ? 'is' : 'are'}: ${names.join(', ')}`
}
