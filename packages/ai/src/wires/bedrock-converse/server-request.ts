import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../collect-blocks.ts'
import { declaredTool, type DeclaredTool, takeCall } from '../declared-tools.ts'
import { optionsMetadata } from '../metadata.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, textsOf, without } from '../read-json.ts'
import { fieldError, type PartTypes, requestError, unknownPart } from '../wire-error.ts'
import type { ServerRequest, WireRoute } from '../wire-server.ts'
import { decodeResponse } from './response.ts'

const ownFields = new Set(['messages', 'system', 'toolConfig', 'outputConfig'])
const toolsField = new Set(['tools'])
const formatField = new Set(['textFormat'])
const specFields = new Set(['name', 'description', 'inputSchema'])
const resultFields = new Set(['toolUseId', 'content', 'status'])
const mediaFields = new Set(['format', 'source', 'name'])

/** Reads a request that a client of Converse sent. Model and mode are in the address. */
export function decodeRequest(body: JsonValue, { path }: WireRoute): ServerRequest {
  const request = objectOf(body)
  if (!request) throw requestError('bedrock', 'The body is not a JSON object.')
  const match = /\/model\/([^/]+)\/converse(-stream)?$/.exec(path)
  if (!match) {
    throw requestError(
      'bedrock',
      `The path ${JSON.stringify(path)} names no model and method.`,
      'Expected …/model/{id}/converse or …/model/{id}/converse-stream.',
    )
  }
  if (!Array.isArray(request['messages'])) throw fieldError('bedrock', 'messages', 'is not a list')
  const toolConfig = objectOf(request['toolConfig'])
  const { tools, native } = splitTools(toolConfig?.['tools'])
  const output = objectOf(request['outputConfig'])
  const structure = readSchema(output)
  // All other fields of the request are parameters.
  const params: Record<string, unknown> = without(request, ownFields)
  const restConfig = without(toolConfig ?? {}, toolsField)
  if (!isEmpty(restConfig)) params['toolConfig'] = restConfig
  if (native.length > 0) params['tools'] = native
  const restOutput = output && (structure ? without(output, formatField) : output)
  if (restOutput && !isEmpty(restOutput)) params['outputConfig'] = restOutput
  return {
    modelId: decodeURIComponent(match[1]!),
    messages: decodeMessages(listOf(request['messages'])),
    system: textsOf(request['system']).filter(Boolean).join('\n\n') || undefined,
    params,
    tools,
    structure,
    stream: match[2] !== undefined,
    includeUsage: true,
  }
}

/** Reads the schema of the answer, which is a JSON text. */
function readSchema(output: JsonObject | undefined): JsonObject | undefined {
  const format = objectOf(objectOf(output?.['textFormat'])?.['structure'])
  const text = objectOf(format?.['jsonSchema'])?.['schema']
  if (typeof text !== 'string') return undefined
  try {
    return objectOf(JSON.parse(text))
  } catch {
    throw fieldError('bedrock', 'outputConfig.textFormat.structure.jsonSchema.schema', 'is not JSON') // prettier-ignore
  }
}

/** Separates the client's function tools from all other kinds, which stay in the parameters. */
function splitTools(value: JsonValue | undefined): {
  readonly tools: readonly DeclaredTool[]
  readonly native: readonly JsonValue[]
} {
  const tools: DeclaredTool[] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item, index) => {
    const spec = objectOf(objectOf(item)?.['toolSpec'])
    if (!spec) return void native.push(item)
    const name = textOf(spec['name'])
    if (name === undefined) throw fieldError('bedrock', `toolConfig.tools[${index}].toolSpec.name`)
    const parameters = objectOf(objectOf(spec['inputSchema'])?.['json'])
    const options = without(spec, specFields)
    const { description } = spec
    tools.push(declaredTool('bedrock', name, { description, parameters, options }))
  })
  return { tools, native }
}

/** Reads messages. A message with tool results becomes two: the results, then the rest. */
function decodeMessages(list: readonly JsonValue[]): readonly Message[] {
  const messages: Message[] = []
  let open: ToolCall[] = []
  list.forEach((item, index) => {
    const at = `messages[${index}]`
    const message = objectOf(item)
    if (!message) throw fieldError('bedrock', at, 'is not an object')
    const content = listOf(message['content']).map((block) => objectOf(block) ?? {})
    if (message['role'] === 'assistant') {
      const blocks = content.filter((block) => block['cachePoint'] === undefined)
      const answer = { output: { message: { content: blocks } }, stopReason: 'end_turn' }
      const context = answerContext('bedrock', {})
      const decoded = readAnswer('bedrock', at, () => decodeResponse(answer, context))
      open = [...(decoded.toolCalls ?? [])]
      messages.push(decoded)
      return
    }
    const results: ToolResult[] = []
    const blocks: UserContent[] = []
    content.forEach((block, i) => {
      const place = `${at}.content[${i}]`
      const result = objectOf(block['toolResult'])
      if (result) results.push(decodeResult(result, open, place))
      else if (block['cachePoint'] === undefined) blocks.push(decodeBlock(block, place))
    })
    if (results.length > 0) messages.push(new ToolResultMessage(results))
    if (blocks.length > 0) messages.push(new UserMessage(blocks))
  })
  return messages
}

function decodeResult(result: JsonObject, open: ToolCall[], at: string): ToolResult {
  const { toolCallId, toolName } = takeCall(open, textOf(result['toolUseId']), undefined)
  const content = listOf(result['content']).map((item) => objectOf(item) ?? {})
  const [only, ...others] = content
  const isOne = only !== undefined && others.length === 0
  const metadata = optionsMetadata('bedrock', without(result, resultFields))
  return {
    toolCallId,
    toolName,
    result:
      isOne && only['json'] !== undefined
        ? only['json']
        : isOne && typeof only['text'] === 'string'
          ? only['text']
          : content.map((item, i) => decodeBlock(item, `${at}.toolResult.content[${i}]`)),
    isError: result['status'] === 'error' || undefined,
    metadata,
  }
}

/** The field that contains each block type. */
const partTypes: PartTypes = {
  text: 'text',
  image: 'image',
  document: 'document',
  audio: 'audio',
  video: 'video',
  binary: undefined,
}

const documentTypes: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  csv: 'text/csv',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  html: 'text/html',
  md: 'text/markdown',
  txt: 'text/plain',
}

function decodeBlock(block: JsonObject, at: string): UserContent {
  const text = stringOf(block['text'])
  if (text !== undefined) return { type: 'text', text }
  if (block['json'] !== undefined) return { type: 'text', text: JSON.stringify(block['json']) }
  const kind = (['image', 'document', 'audio', 'video'] as const).find((name) =>
    objectOf(block[name]),
  )
  if (!kind) throw unknownPart('bedrock', at, Object.keys(block).join(', ') || 'empty', partTypes)
  const media = objectOf(block[kind])!
  const format = textOf(media['format']) ?? ''
  const source = objectOf(media['source']) ?? {}
  const metadata = optionsMetadata('bedrock', without(media, mediaFields))
  const url = textOf(objectOf(source['s3Location'])?.['uri'])
  const title = textOf(media['name'])
  if (kind === 'document') {
    const mimeType = documentTypes[format] ?? 'application/octet-stream'
    if (url !== undefined) return { type: kind, source: { type: 'url', url }, mimeType, title, metadata } // prettier-ignore
    const bytes = stringOf(source['bytes'])
    if (!mimeType.startsWith('text/'))
      return { type: kind, source: { type: 'base64', data: bytes ?? '' }, mimeType, title, metadata } // prettier-ignore
    const data = stringOf(source['text']) ?? new TextDecoder().decode(bytesOf(bytes, at))
    return { type: kind, source: { type: 'text', data }, mimeType, title, metadata }
  }
  const mimeType = `${kind}/${kind === 'audio' && format === 'mp3' ? 'mpeg' : format}`
  if (url !== undefined)
    return { type: kind === 'image' ? 'image' : 'document', source: { type: 'url', url }, mimeType, metadata } // prettier-ignore
  const bytes = stringOf(source['bytes'])
  if (kind === 'image') return { type: kind, source: { type: 'base64', data: bytes ?? '' }, mimeType, metadata } // prettier-ignore
  return { type: kind, data: bytesOf(bytes, at), mimeType, metadata }
}

function bytesOf(base64: string | undefined, at: string): Uint8Array {
  try {
    return decodeBase64(base64 ?? '')
  } catch {
    throw fieldError('bedrock', `${at}.source.bytes`, 'is not base64')
  }
}
