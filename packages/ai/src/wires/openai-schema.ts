import type { JsonObject, JsonSchema } from '@skein/base'
import type { Warning } from '../contract/turn.ts'
import type { SchemaDialect } from './schema-dialect.ts'
import { isStrictSchema } from './strict-schema.ts'

/** OpenAI takes only objects at the root, and has a strict mode with conditions of its own. */
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
  return { name, schema: schema as JsonObject, ...(isStrict && { strict: true }) }
}

/** Told when a schema is sent without strict mode. */
export const notStrict: Warning = {
  code: 'schema_not_strict',
  message:
    'The schema does not meet the conditions of strict mode (every object closed, every property required), so the vendor does not guarantee it.',
  pointer: '/structure',
}
