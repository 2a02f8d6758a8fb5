import type { JsonObject, JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolResult } from '../../contract/tool.ts'
import { parseDataUrl } from '../data-url.ts'
import { listOf, objectOf, stringOf, textOf } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import { AssistantItems } from './server-assistant.ts'

interface Conversation {
  readonly system?: string
  readonly messages: readonly Message[]
}

/**
 * Reads `input`. Items of one answer (messages, reasoning, calls, hosted tools) are one assistant
 * message, outputs of its calls one tool result message. System messages at the start are the
 * system prompt; later ones become user messages, since UPP has none there.
 */
export function decodeInput(input: JsonValue | undefined): Conversation {
  if (typeof input === 'string') return { messages: [new UserMessage(input)] }
  if (!Array.isArray(input)) {
    throw invalidRequest('openai', 'The field "input" is neither text nor a list.')
  }
  const reader = new InputReader()
  listOf(input).forEach((item, index) => reader.read(objectOf(item) ?? {}, `input[${index}]`))
  return reader.end()
}

class InputReader {
  readonly #messages: Message[] = []
  readonly #system: string[] = []
  readonly #names = new Map<string, string>()
  #assistant = new AssistantItems(this.#names)
  #results: ToolResult[] = []

  read(item: JsonObject, at: string): void {
    const { type = 'message', role } = item
    if (type === 'item_reference') {
      throw invalidRequest(
        'openai',
        `The field "${at}" refers to a stored item.`,
        'Send the item itself.',
      )
    }
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      this.#flushAssistant()
      this.#results.push(decodeOutput(item, at, this.#names))
      return
    }
    if (type !== 'message' || role === 'assistant') {
      this.#flushResults()
      this.#assistant.add(item, at)
      return
    }
    this.#flush()
    this.#readMessage(item, at)
  }

  end(): Conversation {
    this.#flush()
    const system = this.#system.join('\n\n')
    return { ...(system !== '' && { system }), messages: this.#messages }
  }

  #readMessage({ role, content }: JsonObject, at: string): void {
    if (role === 'user') {
      const blocks = typeof content === 'string' ? content : decodeParts(listOf(content), at)
      this.#messages.push(new UserMessage(blocks))
      return
    }
    if (role !== 'system' && role !== 'developer') {
      throw invalidRequest('openai', `The field "${at}.role" is ${JSON.stringify(role)}.`)
    }
    const text = typeof content === 'string' ? content : plainText(listOf(content))
    if (this.#messages.length === 0) this.#system.push(text)
    else this.#messages.push(new UserMessage(text))
  }

  #flush(): void {
    this.#flushAssistant()
    this.#flushResults()
  }

  #flushAssistant(): void {
    const message = this.#assistant.message()
    if (!message) return
    this.#messages.push(message)
    this.#assistant = new AssistantItems(this.#names)
  }

  #flushResults(): void {
    if (this.#results.length > 0) this.#messages.push(new ToolResultMessage(this.#results))
    this.#results = []
  }
}

function plainText(parts: readonly JsonValue[]): string {
  return parts.map((part) => stringOf(objectOf(part)?.['text']) ?? '').join('')
}

function decodeParts(parts: readonly JsonValue[], at: string): readonly UserContent[] {
  return parts.map((part, index) => decodePart(objectOf(part) ?? {}, `${at}.content[${index}]`))
}

function decodePart(part: JsonObject, at: string): UserContent {
  const { type, text, image_url, file_data, file_url, filename, ...options } = part
  const metadata = Object.keys(options).length > 0 ? { metadata: { openai: options } } : {}
  const title = textOf(filename)
  const titled = { ...(title !== undefined && { title }), ...metadata }
  const address = textOf(type === 'input_image' ? image_url : (file_data ?? file_url))
  const inline = address === undefined ? undefined : parseDataUrl(address)
  if (type === 'input_text') return { type: 'text', text: stringOf(text) ?? '', ...metadata }
  if (type !== 'input_image' && type !== 'input_file') {
    throw invalidRequest('openai', `The field "${at}.type" is ${JSON.stringify(type)}.`)
  }
  if (address === undefined) {
    throw invalidRequest(
      'openai',
      `The field "${at}" has neither data nor an address.`,
      'Uploaded files (file_id) are known to their vendor alone; send the bytes.',
    )
  }
  const source = inline
    ? ({ type: 'base64', data: inline.data } as const)
    : ({ type: 'url', url: address } as const)
  if (type === 'input_image') {
    return { type: 'image', source, mimeType: inline?.mimeType ?? 'image/*', ...metadata }
  }
  const mimeType = inline?.mimeType ?? 'application/pdf'
  return { type: 'document', source, mimeType, ...titled }
}

function decodeOutput(item: JsonObject, at: string, names: Map<string, string>): ToolResult {
  const toolCallId = textOf(item['call_id'])
  if (toolCallId === undefined) {
    throw invalidRequest('openai', `The field "${at}.call_id" is missing.`)
  }
  const { output } = item
  const toolName = names.get(toolCallId)
  const result = Array.isArray(output) ? decodeParts(listOf(output), at) : (output ?? '')
  return { toolCallId, result, ...(toolName !== undefined && { toolName }) }
}
