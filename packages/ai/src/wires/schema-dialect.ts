import { isPlainObject, type JsonSchema } from '@skein/base'
import { mapKeywords, pointerSegment, resolveRef } from '../contract/structure.ts'
import type { Warning } from '../contract/turn.ts'
import type { StrictProblem, StrictSchema } from './strict-schema.ts'
import type { ValueUnwrapper } from './wire.ts'

/** A vendor's restrictions of JSON Schema. A schema is changed only as listed here. */
export interface SchemaDialect {
  /** The root must be an object; other roots are wrapped as `{ value: … }`. */
  readonly objectRoot?: boolean
  /**
   * Rewrites a schema for the vendor's strict mode. If that would change more of its meaning than limits such
   * as `minLength`, the schema is sent as it is, with a warning for each place.
   */
  readonly strict?: (schema: JsonSchema) => StrictSchema
}

/** A schema adapted to a vendor. */
interface DialectSchema {
  readonly schema: JsonSchema
  readonly warnings: Warning[]
  /** True if the answer will arrive as `{ value: … }`; see `unwrapValue`. */
  readonly isWrapped: boolean
  /** True if the schema can be sent in the vendor's strict mode, in which answers are guaranteed to fit it. */
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
  const isWrapped = dialect.objectRoot === true && !hasObjectRoot(schema)
  const result = isWrapped ? wrapRoot(schema) : schema
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

/**
 * Wraps the root as the property `value` of an object. References to the root and into it are adjusted;
 * `$defs` stay at the root, and so do references to them.
 */
function wrapRoot(schema: JsonSchema): JsonSchema {
  const text = JSON.stringify(schema)
  const moved = text.replace(/("\$ref":"#)(?!\/(?:\$defs|definitions)\/)/g, '$1/properties/value')
  return wrapValue(JSON.parse(moved) as JsonSchema)
}

/** Returns the schema of an object whose only property is `value`; shared definitions stay at the root. */
export function wrapValue({ $defs, definitions, $schema, ...value }: JsonSchema): JsonSchema {
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

/**
 * Rewrites every schema inside a schema, the inner ones first. `write` gets each schema with its JSON
 * pointer; a property or item that is `true` is given as `{}`, which means the same.
 */
export function rewriteSchema(
  schema: JsonSchema,
  write: (schema: JsonSchema, pointer: string) => JsonSchema,
  pointer = '',
): JsonSchema {
  const inner = (value: unknown, at: string): unknown =>
    isPlainObject(value) ? rewriteSchema(value, write, at) : value
  const entries = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    const at = pointer + pointerSegment(keyword)
    if (mapKeywords.has(keyword) && isPlainObject(value)) {
      const parts = Object.entries(value).map(([name, part]): [string, unknown] => [
        name,
        inner(part === true ? {} : part, at + pointerSegment(name)),
      ])
      return [keyword, Object.fromEntries(parts)]
    }
    if (!schemaKeywords.has(keyword)) return [keyword, value]
    if (Array.isArray(value)) return [keyword, value.map((part, i) => inner(part, `${at}/${i}`))]
    return [keyword, inner(keyword === 'items' && value === true ? {} : value, at)]
  })
  return write(Object.fromEntries(entries), pointer)
}

/** Keywords that describe and do not constrain. */
const annotations = new Set(
  `$schema $id $comment $anchor title description default examples deprecated readOnly writeOnly
  propertyOrdering $defs definitions`.split(/\s+/),
)

/** Returns a warning for every keyword that constrains the answer and that the vendor does not enforce. */
export function unenforced(
  schema: JsonSchema,
  vendor: string,
  isEnforced: (keyword: string, schema: JsonSchema) => boolean,
): Warning[] {
  const warnings: Warning[] = []
  rewriteSchema(schema, (part, pointer) => {
    for (const keyword of Object.keys(part)) {
      const isIdle = annotations.has(keyword) || keyword.startsWith('x-')
      if (isIdle || isEnforced(keyword, part)) continue
      warnings.push({
        code: 'schema_not_enforced',
        message: `${vendor} does not enforce ${keyword}: ${JSON.stringify(part[keyword]).slice(0, 80)}.`,
        pointer: `/structure${pointer}${pointerSegment(keyword)}`,
      })
    }
    return part
  })
  return warnings
}

/** Checks whether a `$ref` leads back to itself. */
export function isRecursive(
  root: JsonSchema,
  ref: unknown,
  seen: Set<unknown> = new Set(),
): boolean {
  if (seen.has(ref)) return false
  seen.add(ref)
  const text = JSON.stringify(resolveRef(root, ref)) ?? ''
  const inside = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, inner]) => inner)
  const [start] = seen
  return inside.some((one) => one === start || isRecursive(root, one, seen))
}

/** Returns the prompt text that asks for JSON of this schema, for vendors whose API accepts no schema. */
export function schemaInstruction(schema: JsonSchema, what: 'object' | 'value'): string {
  return `Answer with one JSON ${what} that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`
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
export function unwrapValue(): ValueUnwrapper {
  let state: 'opening' | 'inside' | 'plain' = 'opening'
  // Text not yet returned: while `opening` all text so far, while `inside` a brace that may close the
  // wrapper, and spaces after it.
  let held = ''
  let isNumber = false
  const open = (text: string): string => {
    const start = held + text
    held = ''
    const opening = /^\s*\{\s*"value"\s*:\s*/.exec(start)?.[0]
    if (opening !== undefined && opening.length < start.length) {
      state = 'inside'
      isNumber = /^[-\d]/.test(start.slice(opening.length))
      return pass(start.slice(opening.length))
    }
    const canOpen = opening !== undefined || '{"value":'.startsWith(start.replace(/\s+/g, ''))
    if (canOpen && start.length <= MAX_OPENING) {
      held = start
      return ''
    }
    state = 'plain'
    return start
  }
  /** Returns all text except a final closing brace, which may be the wrapper's, and spaces after it. */
  const pass = (text: string): string => {
    if (held !== '' && !/\S/.test(text)) {
      held += text
      return ''
    }
    const whole = held + text
    let end = whole.length
    while (end > 0 && whole.charCodeAt(end - 1) <= 32) end--
    const cut = whole[end - 1] === '}' ? end - 1 : whole.length
    held = whole.slice(cut)
    return whole.slice(0, cut)
  }
  return {
    push: (text) => (state === 'plain' ? text : state === 'opening' ? open(text) : pass(text)),
    end: () => {
      // A space says that a number is whole, because the wrapper was closed after it. Without it, a number at the
      // end of an answer that a limit cut off may have lost digits.
      const rest = state !== 'inside' ? held : isNumber && held.startsWith('}') ? ' ' : ''
      held = ''
      return rest
    },
  }
}
