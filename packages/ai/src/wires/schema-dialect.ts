import { isPlainObject, type JsonObject, type JsonSchema } from '@skein/base'
import type { Warning } from '../contract/turn.ts'

/** How far a vendor departs from JSON Schema. Nothing is changed that is not named here. */
export interface SchemaDialect {
  /** The root must be an object: other roots are wrapped as `{ value: … }`. */
  readonly objectRoot?: boolean
  /** Keywords the vendor rejects; removed, with a warning for each place. */
  readonly rejected?: ReadonlySet<string>
  /** Objects must say `additionalProperties: false`; added where missing, with a warning. */
  readonly closedObjects?: boolean
  /** The conditions of a strict mode: reported as `isStrict`, never forced. */
  readonly strict?: (schema: JsonSchema) => boolean
}

/** A schema fitted to a vendor. */
interface DialectSchema {
  readonly schema: JsonSchema
  readonly warnings: Warning[]
  /** The answer arrives as `{ value: … }`; see `ValueUnwrapper`. */
  readonly isWrapped: boolean
  /** The schema meets the dialect's strict mode as it stands. */
  readonly isStrict: boolean
}

/** Fits a schema to a vendor. The whole schema is kept: `$defs`, unions, descriptions, unknown keywords. */
export function toDialect(schema: JsonSchema, dialect: SchemaDialect): DialectSchema {
  const warnings: Warning[] = []
  const fitted =
    dialect.rejected || dialect.closedObjects ? fit(schema, dialect, warnings, '') : schema
  const isWrapped = dialect.objectRoot === true && !hasObjectRoot(fitted)
  const result = isWrapped ? wrapRoot(fitted) : fitted
  return {
    schema: result,
    warnings,
    isWrapped,
    isStrict: dialect.strict?.(result) === true,
  }
}

/** An untyped root without a union counts as an object: every vendor treats it so. */
function hasObjectRoot(schema: JsonSchema): boolean {
  if (schema['type'] !== undefined) return schema['type'] === 'object'
  return !['anyOf', 'oneOf', 'enum', 'const', '$ref', 'items'].some((key) => key in schema)
}

function wrapRoot(schema: JsonSchema): JsonSchema {
  const { $defs, definitions, $schema, ...value } = moveRefs(schema) as JsonSchema
  return {
    $schema,
    type: 'object',
    properties: { value },
    required: ['value'],
    additionalProperties: false,
    $defs,
    definitions,
  }
}

/** Pointers into the root follow it into its wrapper; `$defs` stay at the root. */
function moveRefs(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(moveRefs)
  if (!isPlainObject(node)) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      const isPointer = key === '$ref' && typeof value === 'string' && value.startsWith('#')
      if (!isPointer) return [key, moveRefs(value)]
      const isShared = value.startsWith('#/$defs/') || value.startsWith('#/definitions/')
      return [key, isShared ? value : `#/properties/value${value.slice(1)}`]
    }),
  )
}

/** Keywords whose value maps names to schemas, is one schema, or is a list of schemas. */
const mapKeywords = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
])
const schemaKeywords = new Set([
  'items',
  'additionalProperties',
  'additionalItems',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
  'anyOf',
  'allOf',
  'oneOf',
  'prefixItems',
])

function fit(
  schema: JsonSchema,
  dialect: SchemaDialect,
  warnings: Warning[],
  pointer: string,
): JsonSchema {
  const result: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    const here = `${pointer}/${keyword.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (dialect.rejected?.has(keyword)) {
      const message = `The vendor does not take the keyword "${keyword}"; it was left out.`
      warnings.push({ code: 'schema_changed', message, pointer: here })
    } else result[keyword] = fitValue(keyword, value, dialect, warnings, here)
  }
  const isOpen = schema['type'] === 'object' && schema['additionalProperties'] === undefined
  if (dialect.closedObjects && isOpen) {
    result['additionalProperties'] = false
    warnings.push({
      code: 'schema_changed',
      message: 'The vendor takes only closed objects: additionalProperties: false was added.',
      pointer,
    })
  }
  return result
}

function fitValue(
  keyword: string,
  value: unknown,
  dialect: SchemaDialect,
  warnings: Warning[],
  pointer: string,
): unknown {
  const fitOne = (item: unknown, at: string): unknown =>
    isPlainObject(item) ? fit(item, dialect, warnings, at) : item
  if (mapKeywords.has(keyword) && isPlainObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, fitOne(item, `${pointer}/${name}`)]),
    )
  }
  if (!schemaKeywords.has(keyword)) return value
  if (Array.isArray(value)) return value.map((item, i) => fitOne(item, `${pointer}/${i}`))
  return fitOne(value, pointer)
}

/** A wrapper that has not opened after so many characters is none: models do flood answers with spaces. */
const MAX_OPENING = 1000

/**
 * Removes the wrapper `{"value": … }` from a streamed answer (see `toDialect`), so that everything
 * above sees the JSON that was asked for. Text that does not start like the wrapper is passed on
 * as it is; text that was cut off before the wrapper closed keeps what came. Linear.
 */
export class ValueUnwrapper {
  #state: 'opening' | 'inside' | 'plain' = 'opening'
  /** Before the value: all text so far. Inside: a brace that may be the wrapper's, and spaces. */
  #held = ''

  push(text: string): string {
    if (this.#state === 'plain') return text
    return this.#state === 'opening' ? this.#open(text) : this.#pass(text)
  }

  /** The rest, without the closing brace. */
  end(): string {
    const rest = this.#state === 'inside' ? '' : this.#held
    this.#held = ''
    return rest
  }

  #open(text: string): string {
    const start = this.#held + text
    this.#held = ''
    const opening = /^\s*\{\s*"value"\s*:\s*/.exec(start)?.[0]
    if (opening !== undefined && opening.length < start.length) {
      this.#state = 'inside'
      return this.#pass(start.slice(opening.length))
    }
    const canOpen = opening !== undefined || '{"value":'.startsWith(start.replace(/\s+/g, ''))
    if (canOpen && start.length <= MAX_OPENING) {
      this.#held = start
      return ''
    }
    this.#state = 'plain'
    return start
  }

  /** Gives out all but a closing brace with nothing but spaces behind it. */
  #pass(text: string): string {
    if (this.#held !== '' && !/\S/.test(text)) {
      this.#held += text
      return ''
    }
    const whole = this.#held + text
    let end = whole.length
    while (end > 0 && whole.charCodeAt(end - 1) <= 32) end--
    const cut = whole[end - 1] === '}' ? end - 1 : whole.length
    this.#held = whole.slice(cut)
    return whole.slice(0, cut)
  }
}

/** OpenAI accepts only objects at the root, and has a strict mode with conditions of its own. */
export const openaiSchemas: SchemaDialect = { objectRoot: true, strict: isStrictSchema }

/**
 * A schema with the name the API asks for. `strict` is set only when the schema meets its
 * conditions as it stands: nothing is rewritten behind the caller's back. Otherwise the vendor
 * follows the schema as well as it can.
 */
export function namedSchema(schema: JsonSchema, isStrict: boolean): JsonObject {
  const title = typeof schema['title'] === 'string' ? schema['title'] : ''
  const name = title.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64) || 'answer'
  // The schema is JSON by its type's contract, which `unknown` values cannot say.
  return { name, schema: schema as JsonObject, strict: isStrict || undefined }
}

/** The warning for a schema that is sent without strict mode. */
export const notStrict: Warning = {
  code: 'schema_not_strict',
  message:
    'The schema does not meet the conditions of strict mode (every object closed, every property required), so the vendor does not guarantee it.',
  pointer: '/structure',
}

/** What OpenAI's strict mode documents as supported. Anything else makes a schema not strict. */
const known = new Set([
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

/** One of these must say what a value is. */
const shapes = ['type', 'anyOf', '$ref', 'enum', 'const']

/**
 * True when OpenAI's strict mode accepts the schema unchanged: an object at the root, every object
 * closed with all its properties required, and no keyword outside the supported set.
 */
export function isStrictSchema(schema: JsonSchema): boolean {
  return schema['type'] === 'object' && !('anyOf' in schema) && isStrictPart(schema)
}

function isStrictPart(schema: unknown): boolean {
  if (!isPlainObject(schema)) return false
  if (Object.keys(schema).some((keyword) => !known.has(keyword))) return false
  const { type, properties, items, anyOf, $defs, definitions } = schema
  const isObject = type === 'object' || (Array.isArray(type) && type.includes('object'))
  if ((isObject || properties !== undefined) && !isClosed(schema)) return false
  if (!shapes.some((keyword) => keyword in schema)) return false
  if ((type === 'array' || items !== undefined) && !isStrictPart(items)) return false
  if (anyOf !== undefined && !(Array.isArray(anyOf) && anyOf.every(isStrictPart))) return false
  return [properties, $defs, definitions].every(
    (parts) =>
      parts === undefined || (isPlainObject(parts) && Object.values(parts).every(isStrictPart)),
  )
}

function isClosed({ properties, required, additionalProperties }: JsonSchema): boolean {
  if (additionalProperties !== false) return false
  const names = isPlainObject(properties) ? Object.keys(properties) : []
  const requiredNames = new Set(Array.isArray(required) ? required : [])
  return names.every((name) => requiredNames.has(name))
}
