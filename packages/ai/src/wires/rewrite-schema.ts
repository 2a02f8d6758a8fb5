import { isPlainObject, type JsonSchema } from '@skein/base'
import { mapKeywords, pointerSegment } from '../contract/structure.ts'
import type { Warning } from '../contract/turn.ts'

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
