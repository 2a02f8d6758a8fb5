import { isPlainObject, type JsonObject, type JsonSchema } from '@skein/base'
import type { Warning } from '../contract/turn.ts'

/** A vendor's restrictions of JSON Schema. A schema is changed only as listed here. */
export interface SchemaDialect {
  /** The root must be an object; other roots are wrapped as `{ value: … }`. */
  readonly objectRoot?: boolean
  /** Keywords that the vendor rejects; they are removed, with a warning for each place. */
  readonly rejected?: ReadonlySet<string>
  /** Objects must have `additionalProperties: false`; it is added if missing, with a warning. */
  readonly closedObjects?: boolean
  /**
   * Checks the conditions of the vendor's strict mode. The result is reported as `isStrict`, never
   * enforced.
   */
  readonly strict?: (schema: JsonSchema) => boolean
}

/** A schema adapted to a vendor. */
interface DialectSchema {
  readonly schema: JsonSchema
  readonly warnings: Warning[]
  /** True if the answer will arrive as `{ value: … }`; see `ValueUnwrapper`. */
  readonly isWrapped: boolean
  /** True if the schema meets the conditions of the vendor's strict mode. */
  readonly isStrict: boolean
}

/**
 * Adapts a schema to a vendor. Everything allowed is kept: `$defs`, unions, descriptions, unknown
 * keywords.
 */
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

/**
 * Checks whether the root is an object. A root without `type` is treated as an object, as all vendors do,
 * unless it has a keyword such as `anyOf`, `enum` or `$ref`.
 */
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

/**
 * Adjusts `$ref` pointers to the wrapped root: the root moves to `properties.value`, `$defs` stay at
 * the root.
 */
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

/**
 * Keywords whose value maps names to schemas. The value of each of the `schemaKeywords` is a schema or a
 * list of schemas.
 */
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

/**
 * If the wrapper has not started after this many characters, the answer is not wrapped. The limit is
 * needed because models sometimes produce endless spaces.
 */
const MAX_OPENING = 1000

/**
 * Removes the wrapper `{"value": … }` from a streamed answer (see `toDialect`), so that callers
 * receive the JSON they asked for. Text that does not start with the wrapper is passed on unchanged;
 * if the text is cut off before the wrapper closes, everything received is kept. The cost is linear.
 */
export class ValueUnwrapper {
  #state: 'opening' | 'inside' | 'plain' = 'opening'
  /**
   * Text not yet returned: while `opening` all text so far, while `inside` a brace that may close the
   * wrapper, and spaces after it.
   */
  #held = ''

  push(text: string): string {
    if (this.#state === 'plain') return text
    return this.#state === 'opening' ? this.#open(text) : this.#pass(text)
  }

  /** Returns the remaining text, without the closing brace of the wrapper. */
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

  /** Returns all text except a final closing brace, which may be the wrapper's, and spaces after it. */
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

/** OpenAI accepts only objects at the root, and has a strict mode with its own conditions. */
export const openaiSchemas: SchemaDialect = { objectRoot: true, strict: isStrictSchema }

/**
 * Returns the schema with the name that the API requires. `strict` is set only if the schema already
 * meets the conditions of strict mode; the schema is never rewritten to meet them. Without `strict` the
 * vendor follows the schema as well as it can.
 */
export function namedSchema(schema: JsonSchema, isStrict: boolean): JsonObject {
  const title = typeof schema['title'] === 'string' ? schema['title'] : ''
  const name = title.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64) || 'answer'
  // A schema is always JSON, but its type has values of type `unknown`.
  return { name, schema: schema as JsonObject, strict: isStrict || undefined }
}

/** The warning about a schema that is sent without strict mode. */
export const notStrict: Warning = {
  code: 'schema_not_strict',
  message:
    'The schema does not meet the conditions of strict mode (every object closed, every property required), so the vendor does not guarantee it.',
  pointer: '/structure',
}

/** The keywords that OpenAI documents for strict mode. A schema with any other keyword is not strict. */
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

/** Every schema needs one of these keywords, which define the kind of value. */
const shapes = ['type', 'anyOf', '$ref', 'enum', 'const']

/**
 * Checks whether OpenAI's strict mode accepts the schema unchanged: an object at the root, every
 * object closed with all properties required, and only supported keywords.
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
