import {
  decodeBase64,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../collect-blocks.ts'
import { optionsMetadata } from '../metadata.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, textsOf, without } from '../read-json.ts'
import { declaredTool, type DeclaredTool, takeCall } from '../declared-tools.ts'
import { fieldError, requestError, unknownPart, type PartTypes } from '../wire-error.ts'
import type { ServerRequest, WireRoute } from '../wire-server.ts'
import { decodeResponse } from './response.ts'

const ownFields = new Set(['contents', 'systemInstruction', 'tools', 'generationConfig'])
const structureFields = new Set(['responseMimeType', 'responseJsonSchema', 'responseSchema'])
const toolFields = new Set(['name', 'description', 'parametersJsonSchema', 'parameters'])
const declarationsField = new Set(['functionDeclarations'])

/** Reads a request that a client of `generateContent` sent. Model and mode are in the address. */
export function decodeRequest(body: JsonValue, { path }: WireRoute): ServerRequest {
  const request = objectOf(body)
  if (!request) throw requestError('google', 'The body is not a JSON object.')
  const match = /(?:^|\/)([^/]+\/[^/:]+):(generateContent|streamGenerateContent)$/.exec(path)
  const name = match && decodeURIComponent(match[1]!)
  if (!name) {
    throw requestError(
      'google',
      `The path ${JSON.stringify(path)} names no model and method.`,
      'Expected …/models/{model}:generateContent or …/models/{model}:streamGenerateContent.',
    )
  }
  if (!Array.isArray(request['contents'])) throw fieldError('google', 'contents', 'is not a list')
  const instruction = request['systemInstruction']
  const system =
    typeof instruction === 'string'
      ? instruction
      : textsOf(objectOf(instruction)?.['parts']).join('\n\n')
  const { tools, native } = splitTools(request['tools'])
  const generation = objectOf(request['generationConfig']) ?? {}
  const structure =
    objectOf(generation['responseJsonSchema']) ?? schemaOf(generation['responseSchema'])
  const generationConfig = structure ? without(generation, structureFields) : generation
  // All other fields of the request are parameters.
  const params: Record<string, unknown> = without(request, ownFields)
  if (native.length > 0) params['tools'] = native
  if (!isEmpty(generationConfig)) params['generationConfig'] = generationConfig
  return {
    modelId: name.replace(/^models\//, ''),
    messages: decodeContents(listOf(request['contents'])),
    system: system || undefined,
    params,
    tools,
    structure,
    stream: match[2] === 'streamGenerateContent',
    includeUsage: true,
  }
}

/** Separates the client's function declarations from all other tools, which stay in the parameters. */
function splitTools(value: JsonValue | undefined): {
  readonly tools: readonly DeclaredTool[]
  readonly native: readonly JsonValue[]
} {
  const tools: DeclaredTool[] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item, index) => {
    const entry = objectOf(item) ?? {}
    listOf(entry['functionDeclarations']).forEach((declared, i) => {
      const tool = objectOf(declared) ?? {}
      const name = textOf(tool['name'])
      if (name === undefined)
        throw fieldError('google', `tools[${index}].functionDeclarations[${i}].name`)
      const { description, parametersJsonSchema, parameters } = tool
      const schema = objectOf(parametersJsonSchema) ?? schemaOf(parameters)
      const options = without(tool, toolFields)
      tools.push(declaredTool('google', name, { description, parameters: schema, options }))
    })
    const rest = without(entry, declarationsField)
    if (!isEmpty(rest)) native.push(rest)
  })
  return { tools, native }
}

/** Converts a schema in the API's own subset to JSON Schema. */
function schemaOf(value: JsonValue | undefined): JsonSchema | undefined {
  const subset = objectOf(value)
  return subset && (toJsonSchema(subset) as JsonSchema)
}

/**
 * Converts one part of a schema. The API's subset of JSON Schema differs only in upper-case type names and in
 * `nullable`.
 */
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

/** Reads `contents`. An entry with function responses becomes two messages: the results, then the rest. */
function decodeContents(list: readonly JsonValue[]): readonly Message[] {
  const messages: Message[] = []
  // Calls without a response so far. Responses without an id are matched by name, in order.
  let open: ToolCall[] = []
  list.forEach((item, index) => {
    const at = `contents[${index}]`
    const content = objectOf(item)
    const parts = content && listOf(content['parts']).map((part) => objectOf(part) ?? {})
    if (!parts) throw fieldError('google', at, 'is not an object')
    if (content['role'] === 'model') {
      const answer = { candidates: [{ content: { parts }, finishReason: 'STOP' }] }
      const context = answerContext('google', {})
      const message = readAnswer('google', at, () => decodeResponse(answer, context))
      open = [...(message.toolCalls ?? [])]
      messages.push(message)
      return
    }
    const results: ToolResult[] = []
    const blocks: UserContent[] = []
    parts.forEach((part, i) => {
      const response = objectOf(part['functionResponse'])
      if (response) results.push(decodeResult(response, open))
      else blocks.push(decodePart(part, `${at}.parts[${i}]`))
    })
    if (results.length > 0) messages.push(new ToolResultMessage(results))
    if (blocks.length > 0) messages.push(new UserMessage(blocks))
  })
  return messages
}

function decodeResult(response: JsonObject, open: ToolCall[]): ToolResult {
  const name = textOf(response['name'])
  const id = textOf(response['id'])
  const { toolCallId, toolName } = takeCall(open, id, name)
  // The API treats `output` and `error` specially; an object without them is the output itself.
  const output = objectOf(response['response']) ?? {}
  const [only, ...others] = Object.keys(output)
  const isError = only === 'error' && others.length === 0
  const isWrapped = isError || (only === 'output' && others.length === 0)
  const result = isWrapped ? output[only]! : output
  const blocks = listOf(response['parts']).map((part, i) =>
    decodePart(objectOf(part) ?? {}, `functionResponse.parts[${i}]`),
  )
  if (blocks.length > 0 && result !== '') {
    const text = typeof result === 'string' ? result : JSON.stringify(result)
    blocks.unshift({ type: 'text', text })
  }
  return {
    toolCallId,
    result: blocks.length > 0 ? blocks : result,
    isError: isError || undefined,
    toolName,
  }
}

/** The part that contains each block type; media given by address are in `fileData` instead. */
const partTypes: PartTypes = {
  text: 'text',
  image: 'inlineData',
  document: 'inlineData',
  audio: 'inlineData',
  video: 'inlineData',
  binary: 'inlineData',
}

const partFields = new Set(['text', 'inlineData', 'fileData'])

function decodePart(part: JsonObject, at: string): UserContent {
  const metadata = optionsMetadata('google', without(part, partFields))
  const text = stringOf(part['text'])
  if (text !== undefined) return { type: 'text', text, metadata }
  const inline = objectOf(part['inlineData'])
  if (inline) return { ...decodeInline(inline, at), metadata }
  const file = objectOf(part['fileData'])
  const url = textOf(file?.['fileUri'])
  if (!file || url === undefined) {
    throw unknownPart('google', at, Object.keys(part).join(', ') || 'empty', partTypes)
  }
  const mimeType = textOf(file['mimeType']) ?? 'application/octet-stream'
  const type = mimeType.startsWith('image/') ? 'image' : 'document'
  return { type, source: { type: 'url', url }, mimeType, metadata }
}

function decodeInline(inline: JsonObject, at: string): UserContent {
  const mimeType = textOf(inline['mimeType']) ?? 'application/octet-stream'
  const data = stringOf(inline['data']) ?? ''
  if (mimeType.startsWith('image/'))
    return { type: 'image', source: { type: 'base64', data }, mimeType }
  if (mimeType === 'application/pdf')
    return { type: 'document', source: { type: 'base64', data }, mimeType }
  let bytes: Uint8Array
  try {
    bytes = decodeBase64(data)
  } catch {
    throw fieldError('google', `${at}.inlineData.data`, 'is not base64')
  }
  if (mimeType.startsWith('text/')) {
    const text = new TextDecoder().decode(bytes)
    return { type: 'document', source: { type: 'text', data: text }, mimeType }
  }
  const kind = mimeType.split('/')[0]
  return { type: kind === 'audio' || kind === 'video' ? kind : 'binary', data: bytes, mimeType }
}
