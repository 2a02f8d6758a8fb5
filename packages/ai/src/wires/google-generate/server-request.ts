import { isPlainObject, type JsonObject, type JsonSchema, type JsonValue } from '@skein/base'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import type { ServerRequest, WireRoute } from '../wire-server.ts'
import { decodeContents } from './server-contents.ts'

const ownFields = new Set(['contents', 'systemInstruction', 'tools', 'generationConfig'])
const structureFields = new Set(['responseMimeType', 'responseJsonSchema', 'responseSchema'])
const toolFields = new Set(['name', 'description', 'parametersJsonSchema', 'parameters'])

/** Reads a request that a client of `generateContent` sent. Model and mode are in the address. */
export function decodeRequest(body: JsonValue, route: WireRoute): ServerRequest {
  const request = objectOf(body)
  if (!request) throw invalidRequest('google', 'The body is not a JSON object.')
  const { modelId, verb } = readPath(route.path)
  if (!Array.isArray(request['contents']))
    throw invalidRequest('google', 'The field "contents" is not a list.')
  const system = systemText(request['systemInstruction'])
  const { tools, native } = splitTools(request['tools'])
  const generation = objectOf(request['generationConfig']) ?? {}
  const structure = structureOf(generation)
  const generationConfig = structure ? without(generation, structureFields) : generation
  return {
    modelId,
    messages: decodeContents(listOf(request['contents'])),
    ...(system !== '' && { system }),
    params: {
      ...without(request, ownFields),
      ...(native.length > 0 && { tools: native }),
      ...(!isEmpty(generationConfig) && { generationConfig }),
    },
    tools,
    ...(structure && { structure }),
    stream: verb === 'streamGenerateContent',
    includeUsage: true,
  }
}

function readPath(path: string): { modelId: string; verb: string } {
  const match = /([^/]+\/[^/:]+):(generateContent|streamGenerateContent)$/.exec(path)
  const name = match && decodeURIComponent(match[1]!)
  if (!name) {
    throw invalidRequest(
      'google',
      `The path ${JSON.stringify(path)} names no model and method.`,
      'Expected …/models/{model}:generateContent or …/models/{model}:streamGenerateContent.',
    )
  }
  return { modelId: name.replace(/^models\//, ''), verb: match[2]! }
}

function systemText(system: JsonValue | undefined): string {
  if (typeof system === 'string') return system
  const parts = listOf(objectOf(system)?.['parts'])
  return parts.map((part) => stringOf(objectOf(part)?.['text']) ?? '').join('\n\n')
}

function structureOf(generation: JsonObject): JsonSchema | undefined {
  const schema = objectOf(generation['responseJsonSchema'])
  if (schema) return schema
  const subset = objectOf(generation['responseSchema'])
  return subset && (toJsonSchema(subset) as JsonSchema)
}

/** Function declarations are the client's own; all other tools stay parameters. */
function splitTools(value: JsonValue | undefined): {
  readonly tools: ServerRequest['tools']
  readonly native: readonly JsonValue[]
} {
  const tools: ServerRequest['tools'][number][] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item, index) => {
    const entry = objectOf(item) ?? {}
    listOf(entry['functionDeclarations']).forEach((declared, i) => {
      const at = `tools[${index}].functionDeclarations[${i}]`
      tools.push(decodeTool(objectOf(declared) ?? {}, at))
    })
    const rest = without(entry, new Set(['functionDeclarations']))
    if (!isEmpty(rest)) native.push(rest)
  })
  return { tools, native }
}

function decodeTool(tool: JsonObject, at: string): ServerRequest['tools'][number] {
  const name = textOf(tool['name'])
  if (name === undefined) throw invalidRequest('google', `The field "${at}.name" is missing.`)
  const subset = objectOf(tool['parameters'])
  const options = without(tool, toolFields)
  return {
    name,
    description: stringOf(tool['description']) ?? '',
    parameters:
      objectOf(tool['parametersJsonSchema']) ??
      ((subset && toJsonSchema(subset)) as JsonSchema | undefined) ??
      emptyParameters,
    ...(!isEmpty(options) && { metadata: { google: options } }),
  }
}

const emptyParameters: JsonSchema = { type: 'object', properties: {} }

/** The API's own schema subset is JSON Schema but for the case of its types and `nullable`. */
function toJsonSchema(node: JsonValue): JsonValue {
  if (Array.isArray(node)) return (node as readonly JsonValue[]).map(toJsonSchema)
  if (!isPlainObject(node)) return node
  const { type, nullable, ...rest } = node as JsonObject
  const inner = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      key === 'enum' ? value : toJsonSchema(value ?? null),
    ]),
  )
  if (typeof type !== 'string')
    return type === undefined ? inner : { type: toJsonSchema(type), ...inner }
  const lower = type.toLowerCase()
  return { type: nullable === true ? [lower, 'null'] : lower, ...inner }
}
