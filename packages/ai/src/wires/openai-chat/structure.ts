import type { JsonObject, JsonSchema } from '@skein/base'
import type { LLMRequest } from '../../contract/provider.ts'
import type { Warning } from '../../contract/turn.ts'
import { namedSchema, notStrict, openaiSchemas } from '../openai-schema.ts'
import { toDialect } from '../schema-dialect.ts'
import type { OpenAIChatDialect } from './dialect.ts'

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
