import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import type { ServerRequest } from '../wire-server.ts'
import { invalidRequest } from '../wire-error.ts'
import { decodeMessages } from './server-messages.ts'
import { splitTools, type DeclaredTool } from '../declared-tools.ts'

const ownFields = new Set(['model', 'messages', 'tools', 'response_format', 'stream'])

/** Reads a request that a client of Chat Completions sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const request = objectOf(body)
  if (!request) throw invalidRequest('openai', 'The body is not a JSON object.')
  const modelId = textOf(request['model'])
  if (modelId === undefined) throw invalidRequest('openai', 'The field "model" is missing.')
  if (!Array.isArray(request['messages'])) {
    throw invalidRequest('openai', 'The field "messages" is not a list.')
  }
  const { system, messages } = decodeMessages(listOf(request['messages']))
  const { tools, native } = splitTools(request['tools'], decodeTool)
  const structure = structureOf(request['response_format'])
  const isStream = request['stream'] === true
  return {
    modelId,
    messages,
    ...(system !== undefined && { system }),
    params: paramsOf(request, native, structure !== undefined),
    tools,
    ...(structure && { structure }),
    stream: isStream,
    includeUsage: isStream && objectOf(request['stream_options'])?.['include_usage'] === true,
  }
}

/** Everything the request says beside conversation, function tools and structure. */
function paramsOf(
  request: JsonObject,
  native: readonly JsonValue[],
  hasStructure: boolean,
): JsonObject {
  const { stream_options: options, ...params } = without(request, ownFields)
  const rest = without(objectOf(options) ?? {}, new Set(['include_usage']))
  const format = request['response_format']
  return {
    ...params,
    ...(Object.keys(rest).length > 0 && { stream_options: rest }),
    ...(format && !hasStructure && { response_format: format }),
    ...(native.length > 0 && { tools: native }),
  }
}

function decodeTool(tool: JsonObject, index: number): DeclaredTool {
  const { name, description, parameters, ...options } = objectOf(tool['function']) ?? {}
  if (textOf(name) === undefined) {
    throw invalidRequest('openai', `The field "tools[${index}].function.name" is missing.`)
  }
  return {
    name: name as string, // checked just above
    description: stringOf(description) ?? '',
    parameters: objectOf(parameters) ?? { type: 'object', properties: {} },
    ...(Object.keys(options).length > 0 && { metadata: { openai: options } }),
  }
}

function structureOf(format: JsonValue | undefined): JsonSchema | undefined {
  const told = objectOf(format)
  if (told?.['type'] !== 'json_schema') return undefined
  return objectOf(objectOf(told['json_schema'])?.['schema'])
}
