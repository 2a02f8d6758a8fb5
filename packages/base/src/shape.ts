import { isPlainObject, type JsonObject, type JsonSchema, type JsonValue } from './json.ts'

/**
 * A JSON Schema that also has a TypeScript type. So one shape appears in the OpenAPI document, is
 * checked at run time by `checkSchema`, and gives the type of the values in the code.
 *
 *     const fork = shape({ 'upTo?': maxText(200), 'title?': maxText(256) })
 *     type Fork = Infer<typeof fork> // { upTo?: string; title?: string }
 */
export type Shape<T> = JsonSchema & {
  /** Only for the compiler; never present at run time. */
  readonly '~type'?: () => T
}

/** The type of the values that a shape accepts. */
export type Infer<S> = S extends { readonly '~type'?: () => infer T } ? T : never

/** The fields of an object by name. A name that ends in `?` may be missing. */
export type ShapeFields = Readonly<Record<string, Shape<unknown>>>

/** The type of the object that these fields describe. */
export type Shaped<F extends ShapeFields> = {
  readonly [K in keyof F as K extends `${string}?` ? never : K]: Infer<F[K]>
} & {
  readonly [K in keyof F as K extends `${infer Name}?` ? Name : never]?: Infer<F[K]>
}

/** Any text. */
export const string: Shape<string> = { type: 'string' }
/** A whole number. */
export const integer: Shape<number> = { type: 'integer' }
/** Any number. */
export const number: Shape<number> = { type: 'number' }
/** True or false; in a query also `1` and `0`. */
export const boolean: Shape<boolean> = { type: 'boolean' }
/** Any JSON object. */
export const object: Shape<JsonObject> = { type: 'object' }
/** Any JSON value. */
export const anything: Shape<JsonValue> = {}

/** A text of at most `maxLength` characters. */
export function maxText(maxLength: number): Shape<string> {
  return { type: 'string', maxLength }
}

/** A text of 1 to `maxLength` characters. */
export function label(maxLength: number): Shape<string> {
  return { type: 'string', minLength: 1, maxLength }
}

/** A whole number from `minimum` to `maximum`. */
export function between(minimum: number, maximum: number): Shape<number> {
  return { type: 'integer', minimum, maximum }
}

/** One of the given texts. */
export function choice<const T extends string>(...values: readonly T[]): Shape<T> {
  return { type: 'string', enum: values }
}

/** Exactly the text `value`. */
export function exactly<const T extends string>(value: T): Shape<T> {
  return { const: value }
}

/** A value of one of the given shapes. */
export function eitherOf<const S extends readonly Shape<unknown>[]>(
  ...choices: S
): Shape<Infer<S[number]>> {
  return { anyOf: choices }
}

/** A value of the shape, or null. */
export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return { ...shape, type: [shape['type'], 'null'] } as Shape<T | null> // `~type` is never set
}

/** A list of items of the shape, with at most `maxItems` items if given. */
export function arrayOf<T>(items: Shape<T>, maxItems?: number): Shape<readonly T[]> {
  return { type: 'array', items, ...(maxItems !== undefined && { maxItems }) }
}

/** An object with any keys and values of this shape. */
export function mapOf<T>(additionalProperties: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return { type: 'object', additionalProperties }
}

/** An object with exactly these fields, for values that clients send. */
export function shape<const F extends ShapeFields>(fields: F): Shape<Shaped<F>> {
  return { ...answer(fields), additionalProperties: false } as Shape<Shaped<F>> // `~type` is never set
}

/** An object with at least these fields, for values that the server sends. Later versions may add fields. */
export function answer<const F extends ShapeFields>(fields: F): Shape<Shaped<F>> {
  return outline<Shaped<F>>(fields)
}

/** Like `answer`, for a type that has more fields than clients are promised. */
export function outline<T>(fields: ShapeFields): Shape<T> {
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  for (const [key, schema] of Object.entries(fields)) {
    const name = key.replace(/\?$/, '')
    properties[name] = schema
    if (name === key) required.push(name)
  }
  return { type: 'object', properties, required }
}

/** Schemas that can be referenced as `#/components/schemas/<name>`. */
export type NamedSchemas = Readonly<Record<string, JsonSchema>>

/** What is wrong with one field of a value. */
export interface SchemaProblem {
  readonly field: string
  readonly message: string
}

/** The maximum number of problems that are reported. */
const MAX_PROBLEMS = 20

/**
 * Returns the problems of a value according to a schema. Supports the part of JSON Schema 2020-12 that the
 * operations use: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `propertyNames`,
 * `items`, `anyOf`, bounds, `pattern` and local `$ref`.
 */
export function checkSchema(
  value: unknown,
  schema: JsonSchema,
  { field, named }: { readonly field: string; readonly named: NamedSchemas },
): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = []
  check(value, schema, field, { named, problems })
  return problems
}

interface Context {
  readonly named: NamedSchemas
  readonly problems: SchemaProblem[]
}

function check(value: unknown, schema: JsonSchema, field: string, context: Context): void {
  const { named, problems } = context
  if (problems.length >= MAX_PROBLEMS) return
  const reference = schema['$ref']
  if (typeof reference === 'string') {
    const name = reference.replace('#/components/schemas/', '')
    return check(value, named[name] ?? {}, field, context)
  }
  const say = (message: string): void => void problems.push({ field, message })
  const { type, minLength, maxLength, pattern, minimum, maximum, maxItems, items } =
    schema as Bounds
  if (type !== undefined && !isOfType(value, type))
    return say(`must be ${[type].flat().join(' or ')}`)
  if (Array.isArray(schema['enum']) && !schema['enum'].includes(value))
    return say(`must be one of ${schema['enum'].map((item) => JSON.stringify(item)).join(', ')}`)
  if ('const' in schema && schema['const'] !== value)
    return say(`must be ${JSON.stringify(schema['const'])}`)
  if (Array.isArray(schema['anyOf'])) checkAnyOf(value, schema['anyOf'], field, context)
  if (typeof value === 'string') {
    const { length } = value
    if (minLength !== undefined && length < minLength) say(`must have ${minLength} characters`)
    if (maxLength !== undefined && length > maxLength)
      say(`must have at most ${maxLength} characters`)
    if (pattern !== undefined && !new RegExp(pattern, 'u').test(value)) say(`must match ${pattern}`)
  } else if (typeof value === 'number') {
    if (minimum !== undefined && value < minimum) say(`must be at least ${minimum}`)
    if (maximum !== undefined && value > maximum) say(`must be at most ${maximum}`)
    const { exclusiveMinimum: above, exclusiveMaximum: below } = schema as Bounds
    if (above !== undefined && value <= above) say(`must be more than ${above}`)
    if (below !== undefined && value >= below) say(`must be less than ${below}`)
  } else if (Array.isArray(value)) {
    if (maxItems !== undefined && value.length > maxItems)
      say(`must have at most ${maxItems} items`)
    else if (items)
      value.forEach((item, index) => check(item, items, `${field}[${index}]`, context))
  } else if (isPlainObject(value)) checkObject(value, schema, field, context)
}

function checkAnyOf(
  value: unknown,
  choices: readonly JsonSchema[],
  field: string,
  context: Context,
): void {
  let best: readonly SchemaProblem[] | undefined
  for (const choice of choices) {
    const problems = checkSchema(value, choice, { field, named: context.named })
    if (problems.length === 0) return
    // The alternative that matched furthest before it failed is probably the one that the client meant.
    if (!best || depthOf(problems) > depthOf(best)) best = problems
  }
  context.problems.push(...(best ?? []))
}

function depthOf(problems: readonly SchemaProblem[]): number {
  return Math.max(...problems.map(({ field }) => field.split(/[.[]/).length))
}

function checkObject(
  value: Readonly<Record<string, unknown>>,
  schema: JsonSchema,
  field: string,
  context: Context,
): void {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema as Bounds
  const { maxProperties } = schema as Bounds
  for (const name of required)
    if (!Object.hasOwn(value, name))
      context.problems.push({ field: `${field}.${name}`, message: 'is missing' })
  const keys = Object.keys(value)
  if (maxProperties !== undefined && keys.length > maxProperties)
    return void context.problems.push({ field, message: `has more than ${maxProperties} fields` })
  for (const key of keys) {
    const at = `${field}.${key.slice(0, 100)}`
    if (propertyNames) check(key, propertyNames, at, context)
    if (Object.hasOwn(properties, key)) check(value[key], properties[key]!, at, context)
    else if (additionalProperties === false)
      context.problems.push({ field: at, message: 'is not a known field' })
    else if (isPlainObject(additionalProperties))
      check(value[key], additionalProperties, at, context)
  }
}

interface Bounds {
  readonly type?: unknown
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly maxItems?: number
  readonly items?: JsonSchema
  readonly properties?: NamedSchemas
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly propertyNames?: JsonSchema
  readonly maxProperties?: number
}

function isOfType(value: unknown, type: unknown): boolean {
  if (Array.isArray(type)) return type.some((one) => isOfType(value, one))
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isPlainObject(value)
    case 'integer':
      return Number.isSafeInteger(value)
    default:
      return typeof value === type
  }
}
