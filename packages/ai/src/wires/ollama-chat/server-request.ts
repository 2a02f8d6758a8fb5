import type { JsonObject, JsonValue } from '@skein/base'
import type { ImageBlock, UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../answer-context.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'
import { decodeResponse } from './response.ts'

const ownFields = new Set(['model', 'messages', 'tools', 'format', 'stream'])

/** Reads a request that a client of `/api/chat` sent. It streams unless told not to. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const request = objectOf(body)
  if (!request) throw invalidRequest('ollama', 'The body is not a JSON object.')
  const modelId = textOf(request['model'])
  if (modelId === undefined) throw invalidRequest('ollama', 'The field "model" is missing.')
  const { system, messages } = decodeMessages(listOf(request['messages']))
  const { tools, native } = splitTools(request['tools'])
  const { format } = request
  const structure = objectOf(format)
  return {
    modelId,
    messages,
    ...(system !== '' && { system }),
    params: {
      ...without(request, ownFields),
      ...(typeof format === 'string' && format !== '' && { format }),
      ...(native.length > 0 && { tools: native }),
    },
    tools,
    ...(structure && { structure }),
    stream: request['stream'] !== false,
    includeUsage: true,
  }
}

/** System messages after the first others become user messages, since UPP has none there. */
function decodeMessages(list: readonly JsonValue[]): {
  readonly system: string
  readonly messages: readonly Message[]
} {
  const system: string[] = []
  const messages: Message[] = []
  // Calls that no result has answered yet; those without an id are matched by name, in order.
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
    if (role !== 'system')
      throw invalidRequest('ollama', `The field "messages[${index}].role" is not a role.`)
    const text = stringOf(message['content']) ?? ''
    return messages.length === 0 ? system.push(text) : messages.push(new UserMessage(text))
  })
  flush()
  return { system: system.join('\n\n'), messages }
}

function contentOf(message: JsonObject): UserContent[] {
  const text = stringOf(message['content']) ?? ''
  const images = listOf(message['images']).map((data) => imageOf(String(data)))
  if (text === '' && images.length > 0) return images
  return [{ type: 'text', text }, ...images]
}

/** The format sends bare base64; its first characters tell the type. */
const imageTypes: readonly (readonly [start: string, mimeType: string])[] = [
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
]

function imageOf(data: string): ImageBlock {
  const [, mimeType = 'image/png'] = imageTypes.find(([start]) => data.startsWith(start)) ?? []
  return { type: 'image', source: { type: 'base64', data }, mimeType }
}

function decodeResult(message: JsonObject, open: ToolCall[]): ToolResult {
  const id = textOf(message['tool_call_id'])
  const name = textOf(message['tool_name']) ?? textOf(message['name'])
  const index = open.findIndex((call) =>
    id === undefined ? call.toolName === name : call.toolCallId === id,
  )
  const [call] = index < 0 ? [] : open.splice(index, 1)
  const toolName = call?.toolName ?? name
  const content = contentOf(message)
  return {
    toolCallId: call?.toolCallId ?? id ?? name ?? '',
    result: content.some(({ type }) => type === 'image')
      ? content
      : (stringOf(message['content']) ?? ''),
    ...(toolName !== undefined && { toolName }),
  }
}

function splitTools(value: JsonValue | undefined): {
  readonly tools: ServerRequest['tools']
  readonly native: readonly JsonValue[]
} {
  const tools: ServerRequest['tools'][number][] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item) => {
    const called = objectOf(objectOf(item)?.['function'])
    const name = textOf(called?.['name'])
    if (!called || name === undefined) return native.push(item)
    const options = without(called, new Set(['name', 'description', 'parameters']))
    return tools.push({
      name,
      description: stringOf(called['description']) ?? '',
      parameters: objectOf(called['parameters']) ?? { type: 'object', properties: {} },
      ...(!isEmpty(options) && { metadata: { ollama: options } }),
    })
  })
  return { tools, native }
}
