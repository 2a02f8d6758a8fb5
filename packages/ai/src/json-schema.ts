import {
  isPlainObject,
  type JsonSchema,
  SkeinError,
  type StandardIssue,
  type StandardJSONSchemaV1,
  type StandardSchemaV1,
  isOfType,
} from '@skein/base'
import { isEqual, mapKeywords, pointerSegment, resolveRef } from './contract/structure.ts'
import type { DataIssue } from './contract/structure.ts'

/**
 * Makes a Standard Schema from plain JSON Schema, so that it can validate data and has a TypeScript type:
 *
 *     llm({ model, structure: jsonSchema<Person>({ type: 'object', … }), validate: true })
 *
 * Throws if the schema uses a keyword that `findIssues` does not check.
 */
export function jsonSchema<Data = unknown>(schema: JsonSchema): CheckedSchema<Data> {
  refuseUnchecked(schema, '')
  return {
    '~standard': {
      version: 1,
      vendor: 'skein',
      validate: (value) => {
        const issues = issuesOf(schema, value)
        // There are no issues, so the value has the type `Data` that the caller declared for this schema.
        return issues.length > 0 ? { issues } : { value: value as Data }
      },
      jsonSchema: { input: () => ({ ...schema }), output: () => ({ ...schema }) },
    },
  }
}

/** A JSON Schema that validates. */
type CheckedSchema<Data = unknown> = StandardSchemaV1<Data, Data> & StandardJSONSchemaV1<Data, Data>

/**
 * Returns where a value does not fit a JSON Schema; an empty list if it fits. It checks drafts 2020-12 and 7
 * except `unevaluated…`, `$dynamicRef`, `$anchor`, and references to other documents; such a schema is
 * refused with an error. `format` and `content…` are not checked: in 2020-12 they are annotations.
 */
export function findIssues(schema: JsonSchema | boolean, value: unknown): readonly DataIssue[] {
  refuseUnchecked(schema, '')
  return issuesOf(schema, value).map(({ path, message }) => ({
    pointer: path.map(pointerSegment).join(''),
    message,
  }))
}

interface Found extends StandardIssue {
  readonly path: readonly (string | number)[]
}

type Path = readonly (string | number)[]

function issuesOf(root: unknown, value: unknown): readonly Found[] {
  const problems: Found[] = []
  new Checker(root).check(root, value, [], problems)
  return problems
}

/** Data nested deeper than this is reported as not fitting its schema. */
const MAX_DEPTH = 1000

class Checker {
  readonly #root: unknown
  #depth = 0

  constructor(root: unknown) {
    this.#root = root
  }

  check(schema: unknown, value: unknown, path: Path, problems: Found[]): void {
    if (schema === false) problems.push({ path, message: 'must not be there' })
    if (!isPlainObject(schema)) return
    if (this.#depth >= MAX_DEPTH)
      return void problems.push({ path, message: 'is nested too deeply' })
    this.#depth++
    const find = (message: string): void => void problems.push({ path, message })
    checkValue(schema, value, find)
    if (typeof value === 'string') checkText(schema, value, find)
    else if (typeof value === 'number') checkNumber(schema, value, find)
    else if (Array.isArray(value)) this.#list(schema, value, path, problems)
    else if (typeof value === 'object' && value !== null)
      this.#object(schema, value as Record<string, unknown>, path, problems)
    this.#combined(schema, value, path, problems)
    this.#depth--
  }

  #fits(schema: unknown, value: unknown): boolean {
    const problems: Found[] = []
    this.check(schema, value, [], problems)
    return problems.length === 0
  }

  #combined(schema: JsonSchema, value: unknown, path: Path, problems: Found[]): void {
    const { $ref, allOf, anyOf, oneOf, not } = schema
    const find = (message: string): void => void problems.push({ path, message })
    if (typeof $ref === 'string') this.check(resolveRef(this.#root, $ref), value, path, problems)
    if (Array.isArray(allOf)) for (const part of allOf) this.check(part, value, path, problems)
    if (Array.isArray(anyOf)) this.#union(anyOf, value, path, problems)
    if (Array.isArray(oneOf)) {
      const count = oneOf.filter((part) => this.#fits(part, value)).length
      if (count === 0) this.#union(oneOf, value, path, problems)
      else if (count > 1) find(`must fit exactly one of ${oneOf.length} schemas, but fits ${count}`)
    }
    if (not !== undefined && this.#fits(not, value)) find('must not fit the schema in "not"')
    if (schema['if'] !== undefined) {
      const branch = this.#fits(schema['if'], value) ? schema['then'] : schema['else']
      if (branch !== undefined) this.check(branch, value, path, problems)
    }
  }

  /**
   * Reports the issues of the branch of a union that fits best: the branch whose first issue is deepest in the value.
   */
  #union(branches: readonly unknown[], value: unknown, path: Path, problems: Found[]): void {
    let nearest: readonly Found[] = [{ path, message: 'fits none of the schemas' }]
    for (const [index, branch] of branches.entries()) {
      const own: Found[] = []
      this.check(branch, value, path, own)
      if (own.length === 0) return
      const depth = Math.min(...own.map((issue) => issue.path.length))
      if (index === 0 || depth > Math.min(...nearest.map((issue) => issue.path.length)))
        nearest = own
    }
    problems.push(...nearest)
  }

  #list(schema: JsonSchema, items: readonly unknown[], path: Path, problems: Found[]): void {
    const find = (message: string): void => void problems.push({ path, message })
    const { minItems, maxItems, uniqueItems, contains } = schema
    if (isNumber(minItems) && items.length < minItems) find(`must have at least ${minItems} items`)
    if (isNumber(maxItems) && items.length > maxItems) find(`must have at most ${maxItems} items`)
    if (
      uniqueItems === true &&
      items.some((item, i) => items.some((other, j) => j < i && isEqual(item, other)))
    )
      find('must not have the same item twice')
    const itemSchemas = schema['prefixItems'] ?? schema['items']
    const prefix = Array.isArray(itemSchemas) ? (itemSchemas as readonly unknown[]) : []
    const rest = Array.isArray(schema['items']) ? schema['additionalItems'] : schema['items']
    for (const [index, item] of items.entries()) {
      const own = index < prefix.length ? prefix[index] : rest
      if (own !== undefined) this.check(own, item, [...path, index], problems)
    }
    if (contains === undefined) return
    const { minContains = 1, maxContains } = schema
    const count = items.filter((item) => this.#fits(contains, item)).length
    if (isNumber(minContains) && count < minContains)
      find(`must have at least ${minContains} items that fit "contains"`)
    if (isNumber(maxContains) && count > maxContains)
      find(`must have at most ${maxContains} items that fit "contains"`)
  }

  #object(schema: JsonSchema, value: Record<string, unknown>, path: Path, problems: Found[]): void {
    const find = (message: string, at = path): void => void problems.push({ path: at, message })
    const names = Object.keys(value)
    const { minProperties, maxProperties, required, propertyNames, additionalProperties } = schema
    if (isNumber(minProperties) && names.length < minProperties)
      find(`must have at least ${minProperties} properties`)
    if (isNumber(maxProperties) && names.length > maxProperties)
      find(`must have at most ${maxProperties} properties`)
    for (const name of textsOf(required))
      if (!Object.hasOwn(value, name)) find('is missing', [...path, name])
    const properties = objectOf(schema['properties'])
    const patterns = Object.entries(objectOf(schema['patternProperties']))
    for (const name of names) {
      const at = [...path, name]
      if (propertyNames !== undefined) this.check(propertyNames, name, at, problems)
      const isKnown = Object.hasOwn(properties, name)
      if (isKnown) this.check(properties[name], value[name], at, problems)
      const matching = patterns.filter(([pattern]) => matches(pattern, name))
      for (const [, own] of matching) this.check(own, value[name], at, problems)
      if (isKnown || matching.length > 0 || additionalProperties === undefined) continue
      if (additionalProperties === false) find('is not a known property', at)
      else this.check(additionalProperties, value[name], at, problems)
    }
    this.#dependent(schema, value, path, problems)
  }

  #dependent(
    schema: JsonSchema,
    value: Record<string, unknown>,
    path: Path,
    problems: Found[],
  ): void {
    const all = ['dependentRequired', 'dependentSchemas', 'dependencies'] as const
    for (const [name, needed] of all.flatMap((keyword) =>
      Object.entries(objectOf(schema[keyword])),
    )) {
      if (!Object.hasOwn(value, name)) continue
      if (!Array.isArray(needed)) this.check(needed, value, path, problems)
      else
        for (const other of textsOf(needed))
          if (!Object.hasOwn(value, other))
            problems.push({ path: [...path, other], message: `is missing, but "${name}" needs it` })
    }
  }
}

type Find = (message: string) => void

function checkValue(schema: JsonSchema, value: unknown, find: Find): void {
  const { type, enum: values } = schema
  if (type !== undefined && ![type].flat().some((name) => isOfType(name, value)))
    find(`must be ${[type].flat().join(' or ')}, but is ${jsonTypeOf(value)}`)
  if (Array.isArray(values) && !values.some((one) => isEqual(one, value)))
    find(`must be one of ${values.map((one) => JSON.stringify(one)).join(', ')}`)
  if ('const' in schema && !isEqual(schema['const'], value))
    find(`must be ${JSON.stringify(schema['const'])}`)
}

function checkText({ minLength, maxLength, pattern }: JsonSchema, text: string, find: Find): void {
  // JSON Schema counts characters, not UTF-16 units.
  const length = isNumber(minLength) || isNumber(maxLength) ? [...text].length : 0
  if (isNumber(minLength) && length < minLength) find(`must have at least ${minLength} characters`)
  if (isNumber(maxLength) && length > maxLength) find(`must have at most ${maxLength} characters`)
  if (typeof pattern === 'string' && !matches(pattern, text)) find(`must match ${pattern}`)
}

function checkNumber(schema: JsonSchema, value: number, find: Find): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (isNumber(minimum) && value < minimum) find(`must be at least ${minimum}`)
  if (isNumber(maximum) && value > maximum) find(`must be at most ${maximum}`)
  if (isNumber(exclusiveMinimum) && value <= exclusiveMinimum)
    find(`must be over ${exclusiveMinimum}`)
  if (isNumber(exclusiveMaximum) && value >= exclusiveMaximum)
    find(`must be under ${exclusiveMaximum}`)
  if (isNumber(multipleOf) && !Number.isInteger(value / multipleOf))
    find(`must be a multiple of ${multipleOf}`)
}

function jsonTypeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

function objectOf(value: unknown): Record<string, unknown> {
  return isPlainObject(value) ? value : {}
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function matches(pattern: string, text: string): boolean {
  return new RegExp(pattern, 'u').test(text)
}

const unchecked = new Set([
  'unevaluatedProperties',
  'unevaluatedItems',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$anchor',
])
/** Keywords whose value is data: names inside it are never keywords, even if they look like one. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples'])

/** Throws if a part of the schema would be ignored, because data would then pass unchecked. */
function refuseUnchecked(root: unknown, pointer: string, schema: unknown = root): void {
  if (Array.isArray(schema))
    return schema.forEach((part, i) => refuseUnchecked(root, `${pointer}/${i}`, part))
  if (!isPlainObject(schema)) return
  for (const [keyword, value] of Object.entries(schema)) {
    const at = pointer + pointerSegment(keyword)
    const isRef = keyword === '$ref'
    if (unchecked.has(keyword) || (isRef && resolveRef(root, value) === undefined))
      throw new SkeinError(`The JSON Schema has ${keyword} at ${at}, which is not checked.`, {
        code: 'SCHEMA_UNSUPPORTED',
        hint: 'Write it without this keyword; references must be "#" or "#/…" inside the schema.',
      })
    if (dataKeywords.has(keyword)) continue
    if (keyword === 'pattern') checkPattern(value, at)
    if (!mapKeywords.has(keyword)) refuseUnchecked(root, at, value)
    else
      for (const [name, part] of Object.entries(objectOf(value))) {
        if (keyword === 'patternProperties') checkPattern(name, at)
        refuseUnchecked(root, at + pointerSegment(name), part)
      }
  }
}

function checkPattern(pattern: unknown, at: string): void {
  try {
    new RegExp(String(pattern), 'u')
  } catch (cause) {
    throw new SkeinError(`The pattern at ${at} is not a regular expression.`, {
      code: 'SCHEMA_INVALID',
      hint: 'JSON Schema patterns are JavaScript regular expressions with the flag u.',
      cause,
    })
  }
}
