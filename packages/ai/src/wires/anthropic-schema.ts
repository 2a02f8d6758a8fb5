import type { JsonSchema } from '@skein/base'
import type { Warning } from '../contract/turn.ts'
import { isRecursive, toDialect } from './schema-dialect.ts'
import { rewriteSchema } from './rewrite-schema.ts'

/** A schema as the API accepts it. */
export interface AnthropicSchema {
  readonly schema: JsonSchema
  /** True if the root is not an object and was therefore wrapped as `{ value: … }`. */
  readonly isWrapped: boolean
  readonly warnings: readonly Warning[]
  /** False if the API cannot express the schema; the warnings name the places. */
  readonly isNative: boolean
}

/** JSON Schema keywords that the API rejects or does not know; they are removed from the schemas sent. */
const rejected = new Set(
  `minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems
  minProperties maxProperties contains propertyNames not if then else
  dependentRequired dependentSchemas dependencies unevaluatedProperties unevaluatedItems`.split(
    /\s+/,
  ),
)

const formats = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '))

/** Every schema needs one of these keywords. */
const shapes = ['type', 'anyOf', 'allOf', '$ref', 'enum', 'const', 'properties']

/**
 * Adapts a schema to structured output (documentation of November 2026 and `transformJSONSchema` of
 * `@anthropic-ai/sdk 1.10.0`): objects must be closed, limits are rejected, `oneOf` is written as `anyOf`.
 * Recursion, objects with members of any name, tuples and values of any kind cannot be expressed.
 */
export function toAnthropicSchema(structure: JsonSchema): AnthropicSchema {
  const warnings: Warning[] = []
  let isNative = true
  const warn = (code: string, message: string, pointer: string): void =>
    void warnings.push({ code, message, pointer: `/structure${pointer}` })
  const refuse = (what: string, pointer: string): void => {
    isNative = false
    warn(
      'structure_not_enforced',
      `Structured output cannot express ${what}; the schema is in the prompt.`,
      pointer,
    )
  }
  const newSchema = rewriteSchema(structure, (part, pointer) => {
    const result: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(part)) {
      const at = `${pointer}/${keyword}`
      const isDropped =
        rejected.has(keyword) ||
        (keyword === 'minItems' && Number(value) > 1) ||
        (keyword === 'format' && !formats.has(String(value)))
      if (isDropped)
        warn('schema_changed', `The vendor does not take ${keyword}; it was left out.`, at)
      else if (keyword === 'oneOf' && part['anyOf'] === undefined) result['anyOf'] = value
      else result[keyword] = value
    }
    const { type, additionalProperties, properties, $ref } = part
    const open = ['additionalProperties', 'patternProperties'].find((keyword) => part[keyword])
    const tuple = ['items', 'prefixItems'].find((keyword) => Array.isArray(part[keyword]))
    if (open) refuse('members of any name', `${pointer}/${open}`)
    else if (type === 'object' && !properties) refuse('members of any name', pointer)
    else if (type === 'object' && additionalProperties === undefined) {
      result['additionalProperties'] = false
      warn('schema_changed', 'The vendor takes only closed objects; it was closed.', pointer)
    }
    if (tuple) refuse('a tuple', `${pointer}/${tuple}`)
    if (typeof $ref === 'string' && isRecursive(structure, $ref))
      refuse('recursion', `${pointer}/$ref`)
    if (!shapes.some((keyword) => keyword in result)) refuse('a value of any kind', pointer)
    const values = part['enum'] ?? [part['const']]
    if (
      Array.isArray(values) &&
      values.some((value) => typeof value === 'object' && value !== null)
    )
      refuse('values that are no scalars', pointer)
    return result
  })
  if (!isNative) return { schema: structure, isWrapped: false, warnings, isNative }
  const { schema, isWrapped } = toDialect(newSchema, { objectRoot: true })
  return { schema, isWrapped, warnings, isNative }
}
