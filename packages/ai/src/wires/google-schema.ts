import { isPlainObject, type JsonSchema } from '@skein/base'
import type { Warning } from '../contract/turn.ts'
import { listOf, objectOf } from './read-json.ts'
import { rewriteSchema, unenforced } from './rewrite-schema.ts'
import { isRecursive } from './schema-dialect.ts'

/** The keywords that the API documents for `responseJsonSchema` (`@google/genai 3.1.0`). */
const enforced = new Set(
  `type format enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties
  additionalProperties required`.split(/\s+/),
)

/**
 * Writes a schema with the keywords that the API has: `definitions` as `$defs`, a list of items as
 * `prefixItems`, `const` as `enum`. Other keywords are sent, and a warning says that they are not enforced.
 */
export function toGoogleSchema(structure: JsonSchema, warnings: Warning[]): JsonSchema {
  const vendorSchema = withGoogleKeywords(structure)
  warnings.push(
    ...unenforced(structure, 'Google', (keyword, part) => {
      const { items, required, properties, const: only } = part
      if (keyword === 'const') return typeof only === 'string' || typeof only === 'number'
      if (keyword === 'additionalItems') return Array.isArray(items)
      // The API follows a recursive reference only to a limited depth, and only in a property that is not required.
      if (keyword === '$ref') return true
      if (keyword !== 'required' || !isPlainObject(properties)) return enforced.has(keyword)
      return !listOf(required).some((name) => {
        const property = objectOf(properties[String(name)])
        return property?.['$ref'] !== undefined && isRecursive(structure, property['$ref'])
      })
    }),
  )
  return vendorSchema
}

/** The schemas of tools as they were written, which is once for each. */
const toolSchemas = new WeakMap<JsonSchema, JsonSchema>()

/** Writes the schema of a tool with the keywords that the API has; `$schema` is none of them. */
export function toolSchema(parameters: JsonSchema): JsonSchema {
  const known = toolSchemas.get(parameters)
  if (known) return known
  const { $schema: _, ...schema } = parameters
  const own = withGoogleKeywords(schema)
  toolSchemas.set(parameters, own)
  return own
}

function withGoogleKeywords(schema: JsonSchema): JsonSchema {
  return rewriteSchema(schema, (part) => {
    const { items, additionalItems, definitions, $ref, const: only, ...rest } = part
    const result: Record<string, unknown> = rest
    const isTuple = Array.isArray(items)
    if (isTuple) result['prefixItems'] = items
    const others = isTuple ? additionalItems : items
    if (others !== undefined) result['items'] = others
    if (definitions !== undefined)
      result['$defs'] = { ...(rest['$defs'] as object), ...definitions }
    if ($ref !== undefined) {
      // The API allows no other keyword beside `$ref`, so a reference with other keywords is put into `anyOf`.
      const own = { $ref: String($ref).replace('#/definitions/', '#/$defs/') }
      const isAlone = Object.keys(rest).every((keyword) => keyword.startsWith('$'))
      Object.assign(result, isAlone || 'anyOf' in rest ? own : { anyOf: [own] })
    }
    if ('const' in part)
      result[typeof only === 'string' || typeof only === 'number' ? 'enum' : 'const'] =
        typeof only === 'string' || typeof only === 'number' ? [only] : only
    return result
  })
}
