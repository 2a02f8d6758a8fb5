import { isPlainObject, type JsonObject, type JsonSchema } from '@skein/base'
import { pointerSegment, resolveRef } from '../contract/structure.ts'
import { type SchemaDialect, wrapValue } from './schema-dialect.ts'
import { allowsNull, requiredNames } from './strict-nulls.ts'

/** A part of a schema that strict mode does not accept. */
export interface StrictProblem {
  /** JSON pointer from the root of the schema. */
  readonly pointer: string
  readonly message: string
}

/** A schema in the form that strict mode requires. */
export interface StrictSchema {
  readonly schema: JsonSchema
  /** True if the root is not an object and was therefore wrapped as `{ value: … }`. */
  readonly isWrapped: boolean
  /** Parts that strict mode cannot express; with any of them `schema` must not be sent as strict. */
  readonly problems: readonly StrictProblem[]
  /** Limits that strict mode cannot express, such as `minLength`; they were left out of `schema`. */
  readonly dropped: readonly StrictProblem[]
}

/**
 * The keywords that OpenAI documents for strict mode ("Structured outputs", supported schemas). A schema with
 * any other keyword is refused.
 */
export const knownKeywords: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$ref',
  '$defs',
  'definitions',
  'title',
  'description',
  'type',
  'enum',
  'const',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'anyOf',
  'pattern',
  'format',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minItems',
  'maxItems',
])

/** Keywords whose meaning strict mode cannot express. All other unknown keywords are annotations. */
const inexpressible = new Set([
  'allOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
  'unevaluatedItems',
  'prefixItems',
  'additionalItems',
  'contains',
  '$dynamicRef',
  '$recursiveRef',
])

/** Limits of one value. Without them the vendor still guarantees the kind and the members of the value. */
const limits = new Set(['minLength', 'maxLength', 'uniqueItems', 'minProperties', 'maxProperties'])

const formats = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
])

const annotations = new Set(['title', 'description', '$schema', '$id', '$defs', 'definitions'])
const objectKeywords = new Set(['properties', 'required', 'additionalProperties'])
const arrayKeywords = new Set(['items', 'minItems', 'maxItems'])

/** Every schema needs one of these keywords, which define the kind of value. */
export const shapes: readonly string[] = ['type', 'anyOf', '$ref', 'enum', 'const']

/** What OpenAI documents as the limits of one schema. */
const MAX_PROPERTIES = 5000
const MAX_LEVELS = 10
const MAX_ENUM_VALUES = 1000
const MAX_CHARACTERS = 120_000

/**
 * Rewrites a schema so that strict mode accepts it: objects that say nothing about further properties are
 * closed, optional properties become required and nullable (see `withoutNulls`), annotations and limits that
 * strict mode does not know are left out (see `dropped`). Otherwise it describes the same data.
 */
export function toStrict(schema: JsonSchema): StrictSchema {
  const writer = new StrictWriter(schema)
  const result = writer.write(schema, '')
  const isWrapped = !isPlainObject(result) || result['type'] !== 'object'
  const strict = isWrapped ? wrapStrict(result as JsonSchema) : result
  const problems = writer.problems.length > 0 ? writer.problems : sizeProblems(strict)
  return { schema: strict, isWrapped, problems, dropped: writer.dropped }
}

/** Puts a root that is not an object into `value`; a root that refers to itself is moved to `$defs`. */
function wrapStrict(root: JsonSchema): JsonSchema {
  const text = JSON.stringify(root)
  const $ref = '#/$defs/answer'
  const moved = JSON.parse(text.replaceAll('"$ref":"#"', `"$ref":"${$ref}"`)) as {
    readonly $defs?: JsonSchema
  }
  if (!text.includes('"$ref":"#"')) return wrapValue(moved)
  const { $defs, definitions, $schema, ...answer } = moved as JsonSchema & typeof moved
  return wrapValue({ $schema, $ref, $defs: { ...$defs, answer }, definitions })
}

class StrictWriter {
  readonly problems: StrictProblem[] = []
  readonly dropped: StrictProblem[] = []
  readonly #root: JsonSchema

  constructor(root: JsonSchema) {
    this.#root = root
  }

  write(schema: unknown, pointer: string): unknown {
    if (!isPlainObject(schema))
      return this.#refuse(pointer, 'a schema that is true or false', schema)
    const keywords = this.#keywords(this.#expressible(schema, pointer), pointer)
    const types = [keywords['type']].flat()
    if (types.length > 1 && types.some((type) => type === 'object' || type === 'array'))
      return this.#split(keywords, types, pointer)
    const ref = this.#reference(keywords, pointer)
    if (ref) return ref
    const result = { ...withType(keywords) }
    this.#writeParts(result, ['$defs', 'definitions', 'anyOf'], pointer)
    if (result['type'] === 'object') this.#closeObject(result, pointer)
    if (result['type'] === 'array') {
      if (isPlainObject(result['items']))
        result['items'] = this.write(result['items'], `${pointer}/items`)
      else this.#refuse(pointer, 'a list whose items have no one schema (a tuple, or any items)')
    }
    if (!shapes.some((keyword) => keyword in result))
      this.#refuse(pointer, 'a value of any kind (a schema without a type)')
    return result
  }

  /** Replaces keywords that strict mode lacks by known ones with the same meaning, e.g. `oneOf` by `anyOf`. */
  #expressible(schema: JsonSchema, pointer: string): JsonSchema {
    const { oneOf, allOf, anyOf, unevaluatedProperties, ...rest } = schema
    let result: JsonSchema = schema
    if (Array.isArray(oneOf) && anyOf === undefined && this.#areDisjoint(oneOf))
      result = { ...rest, anyOf: oneOf, allOf }
    else if (
      Array.isArray(allOf) &&
      allOf.length === 1 &&
      anyOf === undefined &&
      oneOf === undefined
    )
      result = { ...rest, anyOf: allOf }
    if (unevaluatedProperties === false && result['anyOf'] === undefined && allOf === undefined) {
      const { unevaluatedProperties: _, ...others } = result
      result = { additionalProperties: false, ...others }
    }
    // `anyOf` next to `properties` means that both must fit, which strict mode does not document.
    if (result['anyOf'] !== undefined && isPlainObject(result['properties']))
      this.#refuse(`${pointer}/anyOf`, 'a union next to properties')
    return result
  }

  #keywords(schema: JsonSchema, pointer: string): Record<string, unknown> {
    const keywords: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema)) {
      const at = pointer + pointerSegment(keyword)
      if (value === undefined) continue
      if (inexpressible.has(keyword)) this.#refuse(at, `the keyword "${keyword}"`)
      else if (limits.has(keyword) || !isSupportedLimit(keyword, value))
        this.dropped.push({
          pointer: at,
          message: `Strict mode does not take ${keyword}: ${JSON.stringify(value)}; it was left out.`,
        })
      else if (knownKeywords.has(keyword)) keywords[keyword] = value
    }
    return keywords
  }

  /** Returns a schema with `$ref` in strict form, which allows only annotations next to it; else undefined. */
  #reference({ $ref, ...rest }: JsonSchema, pointer: string): JsonSchema | undefined {
    if ($ref === undefined) return undefined
    const isShared = $ref === '#' || /^#\/(\$defs|definitions)\/[^/]+$/.test(String($ref))
    if (!isShared || resolveRef(this.#root, $ref) === undefined)
      this.#refuse(`${pointer}/$ref`, 'a reference to anything but "#" and "#/$defs/…"')
    const others = Object.keys(rest)
    const asserts = others.find((keyword) => !annotations.has(keyword))
    if (asserts !== undefined)
      this.#refuse(pointer + pointerSegment(asserts), `"${asserts}" next to a reference`)
    if (others.length === 0) return { $ref }
    return this.#writeParts({ ...rest, anyOf: [{ $ref }] }, ['$defs', 'definitions'], pointer)
  }

  /** `type: ['object', 'null']` becomes a union, because a list of types is documented for scalars only. */
  #split(schema: JsonSchema, types: readonly unknown[], pointer: string): JsonSchema {
    const about: Record<string, unknown> = {}
    const rest: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema))
      if (annotations.has(keyword)) about[keyword] = value
      else rest[keyword] = value
    const anyOf = types.map((type) => {
      const fitting = Object.entries(rest).filter(
        ([keyword]) =>
          (type === 'object' || !objectKeywords.has(keyword)) &&
          (type === 'array' || !arrayKeywords.has(keyword)),
      )
      return this.write({ ...Object.fromEntries(fitting), type }, pointer)
    })
    return this.#writeParts({ ...about, anyOf }, ['$defs', 'definitions'], pointer)
  }

  /** Rewrites the schemas under these keywords of `schema`, in place. */
  #writeParts(
    schema: Record<string, unknown>,
    keywords: readonly string[],
    pointer: string,
  ): JsonSchema {
    for (const keyword of keywords) {
      const parts = schema[keyword]
      const write = (part: unknown, name: string | number): unknown =>
        this.write(part, pointer + pointerSegment(keyword) + pointerSegment(name))
      if (Array.isArray(parts)) schema[keyword] = parts.map(write)
      else if (isPlainObject(parts))
        schema[keyword] = Object.fromEntries(
          Object.entries(parts).map(([name, part]) => [name, write(part, name)]),
        )
    }
    return schema
  }

  #closeObject(schema: Record<string, unknown>, pointer: string): void {
    const { properties = {}, additionalProperties } = schema
    if (additionalProperties === undefined && schema['properties'] === undefined)
      this.#refuse(pointer, 'an object of any members (no "properties")')
    else if (additionalProperties !== undefined && additionalProperties !== false)
      this.#refuse(
        `${pointer}/additionalProperties`,
        'an object with further properties of any name',
      )
    if (!isPlainObject(properties)) return
    const requiredSet = requiredNames(schema)
    const unknown = [...requiredSet].find((name) => !Object.hasOwn(properties, String(name)))
    if (unknown !== undefined)
      this.#refuse(
        `${pointer}/required`,
        `the required property "${String(unknown)}" without a schema`,
      )
    const at = `${pointer}/properties`
    schema['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => {
        const strict = this.write(property, at + pointerSegment(name))
        const isOptional = !requiredSet.has(name) && !allowsNull(property, this.#root)
        return [name, isOptional ? nullable(strict as JsonSchema) : strict]
      }),
    )
    schema['required'] = Object.keys(properties)
    schema['additionalProperties'] = false
  }

  /** Whether no value fits two of the branches. `oneOf` then means the same as `anyOf`. */
  #areDisjoint(branches: readonly unknown[]): boolean {
    const branchSchemas = branches.map((branch) => {
      const ref = isPlainObject(branch) ? branch['$ref'] : undefined
      return ref === undefined ? branch : resolveRef(this.#root, ref)
    })
    return branchSchemas.every((a, i) => branchSchemas.slice(i + 1).every((b) => areApart(a, b)))
  }

  #refuse(pointer: string, what: string, value: unknown = {}): unknown {
    this.problems.push({ pointer, message: `Strict mode cannot express ${what}.` })
    return value
  }
}

/** True if strict mode supports it: a documented format, or a `pattern` without look-around and back references. */
export function isSupportedLimit(keyword: string, value: unknown): boolean {
  if (keyword === 'format') return formats.has(String(value))
  return keyword !== 'pattern' || !/\(\?<?[=!]|\\[1-9]|\\k</.test(String(value))
}

/** Adds the type that the other keywords imply, because strict mode asks for it. */
function withType(schema: JsonSchema): JsonSchema {
  if (schema['type'] !== undefined || schema['anyOf'] !== undefined) return schema
  if (isPlainObject(schema['properties'])) return { type: 'object', ...schema }
  if (schema['items'] !== undefined) return { type: 'array', ...schema }
  const values = 'const' in schema ? [schema['const']] : schema['enum']
  if (!Array.isArray(values) || values.some((value) => typeof value === 'object' && value !== null))
    return schema
  const types = [...new Set(values.map((value) => (value === null ? 'null' : typeof value)))]
  return { type: types.length === 1 ? types[0] : types, ...schema }
}

function nullable(schema: JsonSchema): JsonSchema {
  const { type, anyOf, enum: values } = schema
  const isScalar = type !== undefined && type !== 'object' && type !== 'array'
  if (isScalar && !('const' in schema)) {
    const types = { ...schema, type: [type, 'null'].flat() }
    return Array.isArray(values) ? { ...types, enum: [...(values as unknown[]), null] } : types
  }
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...(anyOf as unknown[]), { type: 'null' }] }
  const { title, description, ...rest } = schema
  return {
    title,
    description,
    anyOf: [rest, { type: 'null' }],
  }
}

/** Whether no value fits both branches: their types differ, or the values of a property that both require. */
function areApart(a: unknown, b: unknown): boolean {
  if (!isPlainObject(a) || !isPlainObject(b)) return false
  const types = [a, b].map((part) => {
    const { type } = withType(part)
    return type === undefined
      ? undefined
      : [type].flat().map((name) => (name === 'integer' ? 'number' : name))
  })
  if (types[0] && types[1] && !types[0].some((type) => types[1]!.includes(type))) return true
  const values = [a, b].map(valuesOf)
  if (values[0] && values[1] && !values[0].some((value) => values[1]!.includes(value))) return true
  const [inA, inB] = [a['properties'], b['properties']]
  if (!isPlainObject(inA) || !isPlainObject(inB)) return false
  const both = requiredNames(b)
  return [...requiredNames(a)].some((name) => {
    const key = String(name)
    if (!both.has(name) || !Object.hasOwn(inA, key) || !Object.hasOwn(inB, key)) return false
    const [x, y] = [valuesOf(inA[key]), valuesOf(inB[key])]
    return x !== undefined && y !== undefined && !x.some((value) => y.includes(value))
  })
}

/** The scalars that `const` or `enum` lists; undefined if there is no such list. */
function valuesOf(schema: unknown): readonly unknown[] | undefined {
  if (!isPlainObject(schema)) return undefined
  const values = 'const' in schema ? [schema['const']] : schema['enum']
  const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null
  return Array.isArray(values) && values.every(isScalar) ? values : undefined
}

/** OpenAI accepts only objects at the root, and has a strict mode with its own conditions. */
export const openaiSchemas: SchemaDialect = { objectRoot: true, strict: toStrict }

/** Returns the schema with the name that the API requires. Without `strict` the vendor guarantees nothing. */
export function namedSchema(schema: JsonSchema, isStrict: boolean): JsonObject {
  const title = typeof schema['title'] === 'string' ? schema['title'] : ''
  const name = title.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64) || 'answer'
  // A schema is always JSON, but its type has values of type `unknown`.
  return { name, schema: schema as JsonObject, strict: isStrict || undefined }
}

/** Returns what makes a schema too large for strict mode. */
export function sizeProblems(root: JsonSchema): readonly StrictProblem[] {
  const size = { properties: 0, values: 0, characters: 0, levels: 0 }
  const visit = (schema: unknown, level: number): void => {
    if (!isPlainObject(schema)) return
    const { properties, items, anyOf, $defs, definitions, enum: values } = schema
    const texts = [...(Array.isArray(values) ? values : []), ...Object.keys(properties ?? {})]
    size.characters += texts.join('').length
    if (Array.isArray(values)) size.values += values.length
    if (isPlainObject(properties)) {
      size.properties += Object.keys(properties).length
      size.levels = Math.max(size.levels, level)
    }
    visit(items, level + 1)
    for (const part of Object.values(properties ?? {})) visit(part, level + 1)
    for (const parts of [anyOf, $defs, definitions])
      for (const part of Object.values(parts ?? {})) visit(part, level)
  }
  visit(root, 0)
  return [
    [size.properties, MAX_PROPERTIES, 'properties'] as const,
    [size.values, MAX_ENUM_VALUES, 'values in enums'] as const,
    [size.characters, MAX_CHARACTERS, 'characters in names and values'] as const,
    [size.levels, MAX_LEVELS, 'levels of nesting'] as const,
  ].flatMap(([count, limit, what]) =>
    count > limit ? [{ pointer: '', message: `More than ${limit} ${what}.` }] : [],
  )
}
