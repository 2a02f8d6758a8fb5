import {
  decodeBase64,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from '@skein/base'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import type { ServerRequest, WireRoute } from '../wire.ts'
import type { UserContent } from '../../content.ts'
import { type Message, ToolResultMessage, UserMessage } from '../../message.ts'
import type { ToolCall, ToolResult } from '../../tool.ts'
import { answerContext, readAnswer } from '../collect-blocks.ts'
import { decodeResponse } from './response.ts'

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

/** Reads `contents`. An entry with function responses becomes two messages: results, then the rest. */
function decodeContents(list: readonly JsonValue[]): readonly Message[] {
  const messages: Message[] = []
  // Calls that no response has answered yet; those without an id are matched by name, in order.
  let open: ToolCall[] = []
  list.forEach((item, index) => {
    const at = `contents[${index}]`
    const content = objectOf(item)
    const parts = content && listOf(content['parts']).map((part) => objectOf(part) ?? {})
    if (!parts) throw invalidRequest('google', `The field "${at}" is not an object.`)
    if (content['role'] === 'model') {
      const answer = { candidates: [{ content: { parts }, finishReason: 'STOP' }] }
      const context = answerContext('google', {})
      const message = readAnswer('google', at, () => decodeResponse(answer, context))
      open = [...(message.toolCalls ?? [])]
      messages.push(message)
    } else messages.push(...decodeUser(parts, `${at}.parts`, open))
  })
  return messages
}

function decodeUser(parts: readonly JsonObject[], at: string, open: ToolCall[]): Message[] {
  const results: ToolResult[] = []
  const content: UserContent[] = []
  parts.forEach((part, index) => {
    const response = objectOf(part['functionResponse'])
    if (response) results.push(decodeResult(response, open))
    else content.push(decodePart(part, `${at}[${index}]`))
  })
  return [
    ...(results.length > 0 ? [new ToolResultMessage(results)] : []),
    ...(content.length > 0 ? [new UserMessage(content)] : []),
  ]
}

function decodeResult(response: JsonObject, open: ToolCall[]): ToolResult {
  const name = textOf(response['name'])
  const id = textOf(response['id'])
  const index = open.findIndex((call) =>
    id === undefined ? call.toolName === name : call.toolCallId === id,
  )
  const [call] = index < 0 ? [] : open.splice(index, 1)
  const { result, isError } = unwrap(objectOf(response['response']) ?? {})
  const media = listOf(response['parts']).map((part, i) =>
    decodePart(objectOf(part) ?? {}, `functionResponse.parts[${i}]`),
  )
  const toolName = call?.toolName ?? name
  return {
    toolCallId: call?.toolCallId ?? id ?? name ?? '',
    result: media.length > 0 ? [...textBlocks(result), ...media] : result,
    ...(isError && { isError }),
    ...(toolName !== undefined && { toolName }),
  }
}

/** `output` and `error` are read by the API; an object without them is the output itself. */
function unwrap(response: JsonObject): { result: JsonValue; isError: boolean } {
  const keys = Object.keys(response)
  if (keys.length !== 1) return { result: response, isError: false }
  if (keys[0] === 'error') return { result: response['error']!, isError: true }
  return { result: keys[0] === 'output' ? response['output']! : response, isError: false }
}

function textBlocks(result: JsonValue): UserContent[] {
  if (result === '') return []
  return [{ type: 'text', text: typeof result === 'string' ? result : JSON.stringify(result) }]
}

const partFields = new Set(['text', 'inlineData', 'fileData'])

function decodePart(part: JsonObject, at: string): UserContent {
  const options = without(part, partFields)
  const metadata = isEmpty(options) ? {} : { metadata: { google: options } }
  const text = stringOf(part['text'])
  if (text !== undefined) return { type: 'text', text, ...metadata }
  const inline = objectOf(part['inlineData'])
  if (inline) return { ...inlineOf(inline, at), ...metadata }
  const file = objectOf(part['fileData'])
  const url = textOf(file?.['fileUri'])
  if (!file || url === undefined) {
    const told = Object.keys(part).join(', ') || 'nothing'
    throw invalidRequest('google', `The field "${at}" holds ${told}, which cannot be read.`)
  }
  const mimeType = textOf(file['mimeType']) ?? 'application/octet-stream'
  const type = mimeType.startsWith('image/') ? 'image' : 'document'
  return { type, source: { type: 'url', url }, mimeType, ...metadata }
}

function inlineOf(inline: JsonObject, at: string): UserContent {
  const mimeType = textOf(inline['mimeType']) ?? 'application/octet-stream'
  const data = stringOf(inline['data']) ?? ''
  if (mimeType.startsWith('image/'))
    return { type: 'image', source: { type: 'base64', data }, mimeType }
  if (mimeType === 'application/pdf')
    return { type: 'document', source: { type: 'base64', data }, mimeType }
  const bytes = bytesOf(data, at)
  if (mimeType.startsWith('text/')) {
    const text = new TextDecoder().decode(bytes)
    return { type: 'document', source: { type: 'text', data: text }, mimeType }
  }
  const kind = mimeType.split('/')[0]
  return { type: kind === 'audio' || kind === 'video' ? kind : 'binary', data: bytes, mimeType }
}

function bytesOf(data: string, at: string): Uint8Array {
  try {
    return decodeBase64(data)
  } catch {
    throw invalidRequest('google', `The field "${at}.inlineData.data" is not base64.`)
  }
}
