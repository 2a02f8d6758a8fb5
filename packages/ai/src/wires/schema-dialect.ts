import { isPlainObject, type JsonSchema } from '@skein/base'
import { mapKeywords } from '../contract/structure.ts'
import type { Warning } from '../contract/turn.ts'
import type { StrictProblem, StrictSchema } from './strict-schema.ts'

/** A vendor's restrictions of JSON Schema. A schema is changed only as listed here. */
export interface SchemaDialect {
  /** The root must be an object; other roots are wrapped as `{ value: … }`. */
  readonly objectRoot?: boolean
  /** Keywords that the vendor rejects; they are removed, with a warning for each place. */
  readonly rejected?: ReadonlySet<string>
  /** Objects must have `additionalProperties: false`; it is added if missing, with a warning. */
  readonly closedObjects?: boolean
  /**
   * Rewrites a schema for the vendor's strict mode. If that is not possible without changing what it means, the
   * schema is sent as it is, with a warning for each place.
   */
  readonly strict?: (schema: JsonSchema) => StrictSchema
}

/** A schema adapted to a vendor. */
interface DialectSchema {
  readonly schema: JsonSchema
  readonly warnings: Warning[]
  /** True if the answer will arrive as `{ value: … }`; see `ValueUnwrapper`. */
  readonly isWrapped: boolean
  /** True if the schema can be sent in the vendor's strict mode, which guarantees it. */
  readonly isStrict: boolean
}

/**
 * Adapts a schema to a vendor. Everything allowed is kept: `$defs`, unions, descriptions, unknown
 * keywords.
 */
export function toDialect(schema: JsonSchema, dialect: SchemaDialect): DialectSchema {
  const warnings: Warning[] = []
  if (dialect.strict) {
    const { schema: strict, isWrapped, problems, dropped } = dialect.strict(schema)
    const warn = (code: string, found: readonly StrictProblem[]): Warning[] =>
      found.map(({ pointer, message }) => ({ code, message, pointer: `/structure${pointer}` }))
    if (problems.length === 0) {
      return {
        schema: strict,
        warnings: warn('schema_changed', dropped),
        isWrapped,
        isStrict: true,
      }
    }
    warnings.push(...warn('schema_not_strict', problems))
  }
  const fitted =
    dialect.rejected || dialect.closedObjects ? fit(schema, dialect, warnings, '') : schema
  const isWrapped = dialect.objectRoot === true && !hasObjectRoot(fitted)
  const result = isWrapped ? wrapRoot(fitted) : fitted
  return { schema: result, warnings, isWrapped, isStrict: false }
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

/** Keywords whose value is a schema or a list of schemas. */
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
