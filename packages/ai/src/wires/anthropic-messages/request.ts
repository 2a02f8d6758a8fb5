import type { JsonObject } from '@skein/base'
import type { Message } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { Tool } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { encodeHistory } from '../encode-history.ts'
import { bodyText, encodeOnce } from '../encode-once.ts'
import { objectOf } from '../read-json.ts'
import { mergeTools } from '../native-tools.ts'
import { toDialect } from '../schema-dialect.ts'
import { optionsOf } from '../wire-options.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { encodeMessage } from './request-message.ts'
import { schemaDialect } from './schema.ts'
import { API, type AnthropicDialect } from './types.ts'

/** The version of the format, not of a model. Beta headers are the caller's to set. */
const headers = { 'anthropic-version': '2023-06-01' }

/**
 * `POST /messages`. Parameters go into the body as they are and win over ours, with three
 * exceptions that add to ours: `system` blocks follow the system prompt, `tools` follow the
 * function tools, `output_config` is completed with the format of `structure`.
 */
export function encodeRequest(
  request: LLMRequest,
  { provider, modelId, dialect }: Target<AnthropicDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, system, structure } = request
  const warnings: Warning[] = []
  const tools = mergeTools({
    provider,
    tools: request.tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [tool['name']],
  })
  const fields: Record<string, unknown> = {
    model: modelId,
    max_tokens: dialect.maxTokens,
    ...params,
    ...(system !== undefined && { system: mergeSystem(system, params['system']) }),
    ...(tools && { tools }),
    ...(structure && { output_config: outputConfig(request, warnings) }),
    stream: mode === 'stream' ? true : undefined,
  }
  const items = encodeMessages(request, provider, warnings)
  return { body: bodyText(fields, 'messages', items), path: '/messages', headers, warnings }
}

function encodeMessages({ messages }: LLMRequest, provider: string, warnings: Warning[]): string {
  const key = `${API} ${provider}`
  const encodeAll = (list: readonly Message[], found: Warning[]): string[] =>
    list.flatMap((message) => {
      const encode = (told: Warning[]): readonly JsonObject[] =>
        encodeMessage(message, provider, told)
      return encodeOnce(message, key, encode, found)
    })
  return encodeHistory(messages, key, encodeAll, warnings)
}

/** A prompt in `params.system` (blocks, to be cached) does not displace the `system` option. */
function mergeSystem(system: string, given: unknown): unknown {
  if (given === undefined) return system
  const more: readonly unknown[] = Array.isArray(given) ? given : [{ type: 'text', text: given }]
  return [{ type: 'text', text: system }, ...more]
}

function encodeTool(
  { name, description, parameters, metadata }: Tool,
  provider: string,
): JsonObject {
  return {
    name,
    description,
    input_schema: parameters as JsonObject, // a JSON Schema is JSON
    ...optionsOf(metadata, provider),
  }
}

function outputConfig({ params, structure }: LLMRequest, warnings: Warning[]): unknown {
  const given = objectOf(params['output_config'])
  if (given?.['format'] != null) return given
  const { schema, warnings: changes } = toDialect(structure!, schemaDialect)
  warnings.push(...changes)
  return { ...given, format: { type: 'json_schema', schema } }
}
