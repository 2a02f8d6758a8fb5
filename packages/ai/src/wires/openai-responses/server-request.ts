import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import { objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'
import { decodeInput } from './server-input.ts'
import { splitTools, type DeclaredTool } from '../declared-tools.ts'

const ownFields = new Set(['model', 'input', 'instructions', 'tools', 'text', 'stream'])

/** Reads a request that a client of Responses sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const request = objectOf(body)
  if (!request) throw invalidRequest('openai', 'The body is not a JSON object.')
  const modelId = textOf(request['model'])
  if (modelId === undefined) throw invalidRequest('openai', 'The field "model" is missing.')
  const { system: told, messages } = decodeInput(request['input'])
  const system = [stringOf(request['instructions']), told].filter(Boolean).join('\n\n')
  const { tools, native } = splitTools(request['tools'], decodeTool)
  const structure = structureOf(request['text'])
  return {
    modelId,
    messages,
    ...(system !== '' && { system }),
    params: {
      ...without(request, ownFields),
      ...textParam(objectOf(request['text']), structure !== undefined),
      ...(native.length > 0 && { tools: native }),
    },
    tools,
    ...(structure && { structure }),
    stream: request['stream'] === true,
    includeUsage: true,
  }
}

function decodeTool(tool: JsonObject, index: number): DeclaredTool {
  const { type: _, name, description, parameters, strict, ...rest } = tool
  const toolName = textOf(name)
  if (toolName === undefined) {
    throw invalidRequest('openai', `The field "tools[${index}].name" is missing.`)
  }
  // Not strict is what our own requests say when nobody asked.
  const options: JsonObject = strict === true ? { ...rest, strict } : rest
  return {
    name: toolName,
    description: stringOf(description) ?? '',
    parameters: objectOf(parameters) ?? { type: 'object', properties: {} },
    ...(Object.keys(options).length > 0 && { metadata: { openai: options } }),
  }
}

function structureOf(text: JsonValue | undefined): JsonSchema | undefined {
  const format = objectOf(objectOf(text)?.['format'])
  return format?.['type'] === 'json_schema' ? objectOf(format['schema']) : undefined
}

const formatField = new Set(['format'])

function textParam(text: JsonObject | undefined, hasStructure: boolean): JsonObject {
  const rest = text && hasStructure ? without(text, formatField) : text
  return rest && Object.keys(rest).length > 0 ? { text: rest } : {}
}
