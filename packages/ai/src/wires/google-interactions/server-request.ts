import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../collect-blocks.ts'
import { declaredTool, splitTools, takeCall } from '../declared-tools.ts'
import { optionsMetadata } from '../metadata.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { fieldError, type PartTypes, requestError, unknownPart } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'
import { decodeResponse } from './response.ts'
import { contentTypes } from './types.ts'

const ownFields = new Set(['model', 'input', 'system_instruction', 'tools', 'stream'])
const toolFields = new Set(['type', 'name', 'description', 'parameters'])
const formatField = new Set(['response_format', 'response_mime_type'])
const resultFields = new Set(['type', 'call_id', 'name', 'result', 'is_error'])
const contentFields = new Set(['type', 'text', 'data', 'uri', 'mime_type'])

/** Reads a request that a client of Interactions sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const request = objectOf(body)
  if (!request) throw requestError('google', 'The body is not a JSON object.')
  const modelId = (textOf(request['model']) ?? textOf(request['agent']))?.replace(/^models\//, '')
  if (modelId === undefined) throw fieldError('google', 'model')
  const { tools, native } = splitTools(request['tools'], (tool, index) => {
    const name = textOf(tool['name'])
    if (name === undefined) throw fieldError('google', `tools[${index}].name`)
    const { description } = tool
    const parameters = objectOf(tool['parameters'])
    return declaredTool('google', name, { description, parameters, options: without(tool, toolFields) }) // prettier-ignore
  })
  const format = objectOf(request['response_format'])
  const structure = format?.['type'] === 'text' ? objectOf(format['schema']) : undefined
  // All other fields of the request are parameters.
  const rest = without(request, ownFields)
  const params: Record<string, unknown> = structure ? without(rest, formatField) : rest
  if (native.length > 0) params['tools'] = native
  const input = new StepReader()
  input.readAll(request['input'])
  return {
    modelId,
    messages: input.messages,
    system: textOf(request['system_instruction']),
    params,
    tools,
    structure,
    stream: request['stream'] === true,
    includeUsage: true,
  }
}

/** Reads `input`: a text, contents, or steps. Neighbouring steps of the model become one assistant message. */
class StepReader {
  readonly messages: Message[] = []
  #answer: JsonObject[] = []
  #results: ToolResult[] = []
  #open: ToolCall[] = []

  readAll(input: JsonValue | undefined): void {
    if (typeof input === 'string') return void this.messages.push(new UserMessage(input))
    const list = Array.isArray(input) ? listOf(input) : objectOf(input) ? [input!] : undefined
    if (!list) throw fieldError('google', 'input', 'is neither text nor a list')
    if (list.length > 0 && list.every((item) => contentTypes.has(objectOf(item)?.['type'])))
      return void this.messages.push(new UserMessage(contentsOf(list, 'input')))
    list.forEach((item, index) => this.#read(objectOf(item), `input[${index}]`))
    this.#endAnswer('input')
    this.#endResults()
  }

  #read(step: JsonObject | undefined, at: string): void {
    if (!step) throw fieldError('google', at, 'is not an object')
    switch (step['type']) {
      case 'user_input':
        this.#endAnswer(at)
        this.#endResults()
        return this.#user(step['content'], at)
      case 'function_result':
        this.#endAnswer(at)
        return void this.#results.push(this.#result(step, at))
      case undefined:
        // The form of the first version: `{ role, content }`.
        if (step['role'] !== 'model') {
          this.#endAnswer(at)
          this.#endResults()
          return this.#user(step['content'], at)
        }
        this.#endResults()
        return void this.#answer.push({
          type: 'model_output',
          content: asContents(step['content']),
        })
      default:
        this.#endResults()
        return void this.#answer.push(step)
    }
  }

  #user(content: JsonValue | undefined, at: string): void {
    const blocks = contentsOf(asContents(content), `${at}.content`)
    if (blocks.length > 0) this.messages.push(new UserMessage(blocks))
  }

  #result(step: JsonObject, at: string): ToolResult {
    const { toolCallId, toolName } = takeCall(
      this.#open,
      textOf(step['call_id']),
      textOf(step['name']),
    )
    const { result: output = null } = step
    const result = Array.isArray(output) ? contentsOf(listOf(output), `${at}.result`) : output
    const metadata = optionsMetadata('google', without(step, resultFields))
    return { toolCallId, toolName, result, isError: step['is_error'] === true || undefined, metadata } // prettier-ignore
  }

  #endAnswer(at: string): void {
    if (this.#answer.length === 0) return
    const answer = { status: 'completed', steps: this.#answer }
    this.#answer = []
    const context = answerContext('google', {})
    const message = readAnswer('google', at, () => decodeResponse(answer, context))
    this.#open = [...(message.toolCalls ?? [])]
    this.messages.push(message)
  }

  #endResults(): void {
    if (this.#results.length === 0) return
    this.messages.push(new ToolResultMessage(this.#results))
    this.#results = []
  }
}

function asContents(content: JsonValue | undefined): readonly JsonValue[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? listOf(content) : content == null ? [] : [content]
}

function contentsOf(list: readonly JsonValue[], at: string): UserContent[] {
  return list.map((item, index) => decodeContent(objectOf(item) ?? {}, `${at}[${index}]`))
}

/** The type of the content that contains each block type. */
const partTypes: PartTypes = {
  text: 'text',
  image: 'image',
  document: 'document',
  audio: 'audio',
  video: 'video',
  binary: 'document',
}

function decodeContent(item: JsonObject, at: string): UserContent {
  const rest = without(item, contentFields)
  const metadata = isEmpty(rest) ? undefined : optionsMetadata('google', rest)
  const { type } = item
  if (type === 'text') return { type: 'text', text: stringOf(item['text']) ?? '', metadata }
  if (type !== 'image' && type !== 'document' && type !== 'audio' && type !== 'video')
    throw unknownPart('google', at, type, partTypes)
  const mimeType = textOf(item['mime_type']) ?? 'application/octet-stream'
  const url = textOf(item['uri'])
  if (url !== undefined) {
    const shown = type === 'image' ? 'image' : 'document'
    return { type: shown, source: { type: 'url', url }, mimeType, metadata }
  }
  const data = stringOf(item['data'])
  if (data === undefined) throw fieldError('google', `${at}.data`)
  if (type === 'image') return { type, source: { type: 'base64', data }, mimeType, metadata }
  if (type === 'document' && mimeType === 'application/pdf')
    return { type, source: { type: 'base64', data }, mimeType, metadata }
  let bytes: Uint8Array
  try {
    bytes = decodeBase64(data)
  } catch {
    throw fieldError('google', `${at}.data`, 'is not base64')
  }
  if (type !== 'document') return { type, data: bytes, mimeType, metadata }
  if (!mimeType.startsWith('text/')) return { type: 'binary', data: bytes, mimeType, metadata }
  const source = { type: 'text', data: new TextDecoder().decode(bytes) } as const
  return { type: 'document', source, mimeType, metadata }
}
