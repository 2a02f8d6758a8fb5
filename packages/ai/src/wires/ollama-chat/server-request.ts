import type { JsonObject, JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../collect-blocks.ts'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { declaredTool, type DeclaredTool, takeCall } from '../declared-tools.ts'
import { fieldError, type PartTypes, readBody } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'
import { decodeResponse } from './response.ts'

const ownFields = new Set(['model', 'messages', 'tools', 'format', 'stream'])
const functionFields = new Set(['name', 'description', 'parameters'])

/** Reads a request that a client of `/api/chat` sent. The answer is streamed unless `stream` is false. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const { request, modelId } = readBody('ollama', body)
  const { system, messages } = decodeMessages(listOf(request['messages']))
  const tools: DeclaredTool[] = []
  const native: JsonValue[] = []
  for (const item of listOf(request['tools'])) {
    const definition = objectOf(objectOf(item)?.['function'])
    const name = textOf(definition?.['name'])
    if (!definition || name === undefined) native.push(item)
    else {
      const { description, parameters } = definition
      const options = without(definition, functionFields)
      const toolFields = { description, parameters: objectOf(parameters), options }
      tools.push(declaredTool('ollama', name, toolFields))
    }
  }
  // All other fields of the request are parameters.
  const params: Record<string, unknown> = without(request, ownFields)
  if (textOf(request['format'])) params['format'] = request['format']
  if (native.length > 0) params['tools'] = native
  return {
    modelId,
    messages,
    system: system || undefined,
    params,
    tools,
    structure: objectOf(request['format']),
    stream: request['stream'] !== false,
    includeUsage: true,
  }
}

/**
 * Reads `messages`. Leading system messages are the system prompt; later ones become user messages,
 * since UPP has no system messages.
 */
function decodeMessages(list: readonly JsonValue[]): {
  readonly system: string
  readonly messages: readonly Message[]
} {
  const system: string[] = []
  const messages: Message[] = []
  // Calls without a result so far. Results without an id are matched by name, in order.
  let open: ToolCall[] = []
  let results: ToolResult[] = []
  const flush = (): void => {
    if (results.length > 0) messages.push(new ToolResultMessage(results))
    results = []
  }
  list.forEach((item, index) => {
    const message = objectOf(item) ?? {}
    const { role } = message
    if (role === 'tool') return results.push(decodeResult(message, open))
    flush()
    if (role === 'user') return messages.push(new UserMessage(contentOf(message)))
    if (role === 'assistant') {
      const context = answerContext('ollama', {})
      const answer = { message, done: true }
      const at = `messages[${index}]`
      const assistant = readAnswer('ollama', at, () => decodeResponse(answer, context))
      open = [...(assistant.toolCalls ?? [])]
      return messages.push(assistant)
    }
    if (role !== 'system') throw fieldError('ollama', `messages[${index}].role`, 'is not a role')
    const text = stringOf(message['content']) ?? ''
    return messages.length === 0 ? system.push(text) : messages.push(new UserMessage(text))
  })
  flush()
  return { system: system.join('\n\n'), messages }
}

/**
 * The field of a message that contains each block type. `satisfies` makes a new block type a compile
 * error until it is listed.
 */
const fieldOf = {
  text: 'content',
  image: 'images',
  document: undefined,
  audio: undefined,
  video: undefined,
  binary: undefined,
} as const satisfies PartTypes

/** The media types of images by their first base64 characters, because the format sends no type. */
const imageTypes: readonly (readonly [start: string, mimeType: string])[] = [
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
]

function contentOf(message: JsonObject): UserContent[] {
  const text = stringOf(message[fieldOf.text]) ?? ''
  const images = listOf(message[fieldOf.image]).map((item): UserContent => {
    const data = String(item)
    const [, mimeType = 'image/png'] = imageTypes.find(([start]) => data.startsWith(start)) ?? []
    return { type: 'image', source: { type: 'base64', data }, mimeType }
  })
  if (text === '' && images.length > 0) return images
  return [{ type: 'text', text }, ...images]
}

function decodeResult(message: JsonObject, open: ToolCall[]): ToolResult {
  const id = textOf(message['tool_call_id'])
  const name = textOf(message['tool_name']) ?? textOf(message['name'])
  const { toolCallId, toolName } = takeCall(open, id, name)
  const content = contentOf(message)
  return {
    toolCallId,
    result: content.some(({ type }) => type === 'image')
      ? content
      : (stringOf(message['content']) ?? ''),
    toolName,
  }
}
