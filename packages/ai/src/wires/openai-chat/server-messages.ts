import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { AssistantContent, UserContent } from '../../contract/content.ts'
import {
  AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from '../../contract/message.ts'
import { parseArguments, type ToolCall, type ToolResult } from '../../contract/tool.ts'
import { audioMimeType, parseDataUrl } from '../data-url.ts'
import { withNative } from '../native.ts'
import { listOf, objectOf, stringOf, textOf } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'

interface Conversation {
  readonly system?: string
  readonly messages: readonly Message[]
}

/**
 * Reads `messages`. Leading system and developer messages are the system prompt; later ones
 * become user messages, since UPP has none there. Neighbouring tool messages are one message.
 */
export function decodeMessages(list: readonly JsonValue[]): Conversation {
  const system: string[] = []
  const messages: Message[] = []
  const names = new Map<string, string>()
  let results: ToolResult[] = []
  const flush = (): void => {
    if (results.length > 0) messages.push(new ToolResultMessage(results))
    results = []
  }
  list.forEach((item, index) => {
    const at = `messages[${index}]`
    const message = objectOf(item)
    if (!message) throw invalidRequest('openai', `The field "${at}" is not an object.`)
    const { role } = message
    if (role === 'tool') return results.push(decodeResult(message, at, names))
    flush()
    if (role === 'user') return messages.push(decodeUser(message, at))
    if (role === 'assistant') return messages.push(decodeAssistant(message, at, names))
    if (role !== 'system' && role !== 'developer') {
      throw invalidRequest('openai', `The field "${at}.role" is ${JSON.stringify(role)}.`)
    }
    const text = plainText(message['content'])
    return messages.length === 0 ? system.push(text) : messages.push(new UserMessage(text))
  })
  flush()
  return { ...(system.length > 0 && { system: system.join('\n\n') }), messages }
}

function plainText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((part) => stringOf(objectOf(part)?.['text']) ?? '')
    .join('')
}

function decodeUser(message: JsonObject, at: string): UserMessage {
  const { role: _, content: __, ...options } = message
  const metadata = Object.keys(options).length > 0 ? { metadata: { openai: options } } : {}
  return new UserMessage(userContent(message, at), metadata)
}

function userContent({ content }: JsonObject, at: string): string | readonly UserContent[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) {
    throw invalidRequest('openai', `The field "${at}.content" is neither text nor a list.`)
  }
  return listOf(content).map((part, index) =>
    decodePart(objectOf(part) ?? {}, `${at}.content[${index}]`),
  )
}

function decodePart(part: JsonObject, at: string): UserContent {
  const { type, text, image_url, input_audio, file, video_url, ...options } = part
  const metadata = Object.keys(options).length > 0 ? { metadata: { openai: options } } : {}
  switch (type) {
    case 'text':
      return { type: 'text', text: stringOf(text) ?? '', ...metadata }
    case 'image_url':
      return imageOf(objectOf(image_url) ?? {}, options, at)
    case 'input_audio': {
      const audio = objectOf(input_audio)
      const data = decodeBase64(textOf(audio?.['data']) ?? '')
      return { type: 'audio', data, mimeType: audioMimeType(textOf(audio?.['format']) ?? 'wav') }
    }
    case 'file':
      return documentOf(objectOf(file) ?? {}, at)
    case 'video_url': {
      const inline = parseDataUrl(textOf(objectOf(video_url)?.['url']) ?? '')
      if (!inline) throw invalidRequest('openai', `The field "${at}.video_url.url" is no data URL.`)
      return { type: 'video', data: decodeBase64(inline.data), mimeType: inline.mimeType }
    }
    default:
      throw invalidRequest('openai', `The field "${at}.type" is ${JSON.stringify(type)}.`)
  }
}

function imageOf({ url, ...beside }: JsonObject, options: JsonObject, at: string): UserContent {
  const address = textOf(url)
  if (address === undefined) {
    throw invalidRequest('openai', `The field "${at}.image_url.url" is missing.`)
  }
  const told = { ...beside, ...options }
  const metadata = Object.keys(told).length > 0 ? { metadata: { openai: told } } : {}
  const inline = parseDataUrl(address)
  if (!inline) {
    return {
      type: 'image',
      source: { type: 'url', url: address },
      mimeType: 'image/*',
      ...metadata,
    }
  }
  const { data, mimeType } = inline
  return { type: 'image', source: { type: 'base64', data }, mimeType, ...metadata }
}

function documentOf(file: JsonObject, at: string): UserContent {
  const inline = parseDataUrl(textOf(file['file_data']) ?? '')
  if (!inline) {
    throw invalidRequest(
      'openai',
      `The field "${at}.file.file_data" is not a data URL.`,
      'Uploaded files (file_id) are known to their vendor alone; send the bytes.',
    )
  }
  const title = textOf(file['filename'])
  const { data, mimeType } = inline
  return {
    type: 'document',
    source: { type: 'base64', data },
    mimeType,
    ...(title !== undefined && { title }),
  }
}

function decodeAssistant(
  message: JsonObject,
  at: string,
  names: Map<string, string>,
): AssistantMessage {
  const reasoning = textOf(message['reasoning_content']) ?? textOf(message['reasoning'])
  const refusal = textOf(message['refusal'])
  const text = plainText(message['content'])
  const content: AssistantContent[] = []
  if (reasoning) content.push({ type: 'reasoning', text: reasoning })
  if (text) content.push({ type: 'text', text })
  if (refusal) {
    const metadata = withNative('openai', 'openai-chat', { type: 'refusal' })
    content.push({ type: 'text', text: refusal, metadata })
  }
  const calls = listOf(message['tool_calls']).map((call, index) =>
    decodeCall(objectOf(call) ?? {}, `${at}.tool_calls[${index}]`),
  )
  for (const { toolCallId, toolName } of calls) names.set(toolCallId, toolName)
  return new AssistantMessage(content, calls.length > 0 ? calls : undefined)
}

function decodeCall(call: JsonObject, at: string): ToolCall {
  const toolCallId = textOf(call['id'])
  const custom = objectOf(call['custom'])
  const { name, arguments: text } = objectOf(call['function']) ?? custom ?? {}
  const toolName = textOf(name)
  if (toolCallId === undefined || toolName === undefined) {
    throw invalidRequest('openai', `The field "${at}" has no id or no name.`)
  }
  if (custom) {
    const metadata = withNative('openai', 'openai-chat', { type: 'custom' })
    return { toolCallId, toolName, arguments: { input: stringOf(custom['input']) ?? '' }, metadata }
  }
  const parsed = parseArguments(stringOf(text) ?? '')
  return {
    toolCallId,
    toolName,
    arguments: parsed.arguments ?? {},
    ...(parsed.invalid && { invalidArguments: parsed.invalid }),
  }
}

function decodeResult(message: JsonObject, at: string, names: Map<string, string>): ToolResult {
  const toolCallId = textOf(message['tool_call_id'])
  if (toolCallId === undefined) {
    throw invalidRequest('openai', `The field "${at}.tool_call_id" is missing.`)
  }
  const toolName = names.get(toolCallId)
  const result = plainText(message['content'])
  return { toolCallId, result, ...(toolName !== undefined && { toolName }) }
}
