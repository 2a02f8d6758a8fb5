import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'
import { decodeMessages } from './server-messages.ts'

const ownFields = new Set(['model', 'messages', 'system', 'tools', 'stream', 'output_config'])
const toolFields = new Set(['type', 'name', 'description', 'input_schema'])

/** Reads a request that a client of the Messages API sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const request = objectOf(body)
  if (!request) throw invalidRequest('anthropic', 'The body is not a JSON object.')
  const modelId = textOf(request['model'])
  if (modelId === undefined) throw invalidRequest('anthropic', 'The field "model" is missing.')
  if (!Array.isArray(request['messages']))
    throw invalidRequest('anthropic', 'The field "messages" is not a list.')
  const { messages, system } = decodeMessages(listOf(request['messages']))
  const prompt = [...systemTexts(request['system']), ...system].join('\n\n')
  const { tools, native } = splitTools(request['tools'])
  const { format, ...output } = objectOf(request['output_config']) ?? {}
  const structure = structureOf(format)
  const outputConfig = { ...output, ...(format !== undefined && !structure && { format }) }
  return {
    modelId,
    messages,
    ...(prompt !== '' && { system: prompt }),
    params: {
      ...without(request, ownFields),
      ...(native.length > 0 && { tools: native }),
      ...(!isEmpty(outputConfig) && { output_config: outputConfig }),
    },
    tools,
    ...(structure && { structure }),
    stream: request['stream'] === true,
    includeUsage: true,
  }
}

/** Marks on system blocks (for the cache) are the client's dealings with its vendor; the text counts. */
function systemTexts(system: JsonValue | undefined): readonly string[] {
  if (typeof system === 'string') return [system]
  return listOf(system).map((block) => stringOf(objectOf(block)?.['text']) ?? '')
}

function structureOf(format: JsonValue | undefined): JsonSchema | undefined {
  const told = objectOf(format)
  return told?.['type'] === 'json_schema' ? objectOf(told['schema']) : undefined
}

/** Tools with a schema are the client's own; all others are the vendor's and stay parameters. */
function splitTools(value: JsonValue | undefined): {
  readonly tools: ServerRequest['tools']
  readonly native: readonly JsonValue[]
} {
  const tools: ServerRequest['tools'][number][] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item, index) => {
    const tool = objectOf(item) ?? {}
    const type = tool['type'] ?? 'custom'
    if (type !== 'custom') native.push(item)
    else tools.push(decodeTool(tool, `tools[${index}]`))
  })
  return { tools, native }
}

function decodeTool(tool: JsonObject, at: string): ServerRequest['tools'][number] {
  const name = textOf(tool['name'])
  if (name === undefined) throw invalidRequest('anthropic', `The field "${at}.name" is missing.`)
  const options = without(tool, toolFields)
  return {
    name,
    description: stringOf(tool['description']) ?? '',
    parameters: objectOf(tool['input_schema']) ?? { type: 'object', properties: {} },
    ...(!isEmpty(options) && { metadata: { anthropic: options } }),
  }
}
