import type { JsonObject, JsonSchema } from '@skein/base'
import type { LLMRequest } from '../../provider.ts'
import type { Warning } from '../../warning.ts'
import { toDialect, type SchemaDialect } from '../schema-dialect.ts'
import type { OpenAIChatDialect } from './dialect.ts'

/** OpenAI takes only objects at the root, and has a strict mode with conditions of its own. */
export const openaiSchemas: SchemaDialect = { objectRoot: true, strict: 'openai' }

export interface ChatStructure {
  readonly fields: JsonObject
  /** Added to the system prompt where the vendor cannot be given a schema. */
  readonly instruction?: string
  readonly isWrapped: boolean
  readonly warnings: readonly Warning[]
}

const none: ChatStructure = { fields: {}, isWrapped: false, warnings: [] }

/** How `structure` is asked for. A `response_format` of the caller's own stands instead. */
export function chatStructure(request: LLMRequest, dialect: OpenAIChatDialect): ChatStructure {
  if (!request.structure || request.params['response_format'] !== undefined) return none
  const { schema, isWrapped, isStrict, warnings } = toDialect(request.structure, openaiSchemas)
  if (dialect.structuredOutput === 'json_object') return jsonObject(schema, isWrapped)
  return {
    fields: {
      response_format: { type: 'json_schema', json_schema: namedSchema(schema, isStrict) },
    },
    isWrapped,
    warnings: isStrict ? warnings : [...warnings, notStrict],
  }
}

/**
 * `strict` is set only when the schema meets its conditions as it stands: nothing is rewritten
 * behind the caller's back. Otherwise the vendor follows the schema as well as it can.
 */
export function namedSchema(schema: JsonSchema, isStrict: boolean): JsonObject {
  const title = typeof schema['title'] === 'string' ? schema['title'] : ''
  const name = title.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64) || 'answer'
  // The schema is JSON by its type's contract, which `unknown` values cannot say.
  return { name, schema: schema as JsonObject, ...(isStrict && { strict: true }) }
}

export const notStrict: Warning = {
  code: 'schema_not_strict',
  message:
    'The schema does not meet the conditions of strict mode (every object closed, every property required), so the vendor does not guarantee it.',
  pointer: '/structure',
}

function jsonObject(schema: JsonSchema, isWrapped: boolean): ChatStructure {
  return {
    fields: { response_format: { type: 'json_object' } },
    instruction: `Answer with one JSON object that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`,
    isWrapped,
    warnings: [
      {
        code: 'structure_not_enforced',
        message: 'The vendor guarantees JSON but no schema; the schema was told to the model.',
        pointer: '/structure',
      },
    ],
  }
}
