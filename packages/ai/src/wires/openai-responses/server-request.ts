import { decodeBase64, type JsonObject, type JsonSchema, type JsonValue } from '@skein/base'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import type { ServerRequest } from '../wire.ts'
import { type DeclaredTool, splitTools } from '../tools.ts'
import type { AssistantContent, UserContent } from '../../content.ts'
import { AssistantMessage, type Message, ToolResultMessage, UserMessage } from '../../message.ts'
import type { ToolCall, ToolResult } from '../../tool.ts'
import { parseDataUrl } from '../media.ts'
import type { BlockKind } from '../../event.ts'
import { parseArguments } from '../../parse-arguments.ts'
import { withNative } from '../metadata.ts'
import { orderMetadata } from '../transcript.ts'

const ownFields = new Set(['model', 'input', 'instructions', 'tools', 'text', 'stream'])

/** Reads a request that a client of Responses sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const request = objectOf(body)
  if (!request) throw invalidRequest('openai', 'The body is not a JSON object.')
  const modelId = textOf(request['model'])
  if (modelId === undefined) throw invalidRequest('openai', 'The field "model" is missing.')
  const { system: told, messages } = decodeInput(request['input'])
  const system = [stringOf(request['instructions']), told].filter(Boolean).join('\n\n')
  const { tools, native } = splitTools(request['tools'], decodeTool)
  const structure = structureOf(request['text'])
  return {
    modelId,
    messages,
    ...(system !== '' && { system }),
    params: {
      ...without(request, ownFields),
      ...textParam(objectOf(request['text']), structure !== undefined),
      ...(native.length > 0 && { tools: native }),
    },
    tools,
    ...(structure && { structure }),
    stream: request['stream'] === true,
    includeUsage: true,
  }
}

function decodeTool(tool: JsonObject, index: number): DeclaredTool {
  const { type: _, name, description, parameters, strict, ...rest } = tool
  const toolName = textOf(name)
  if (toolName === undefined) {
    throw invalidRequest('openai', `The field "tools[${index}].name" is missing.`)
  }
  // Not strict is what our own requests say when nobody asked.
  const options: JsonObject = strict === true ? { ...rest, strict } : rest
  return {
    name: toolName,
    description: stringOf(description) ?? '',
    parameters: objectOf(parameters) ?? { type: 'object', properties: {} },
    ...(Object.keys(options).length > 0 && { metadata: { openai: options } }),
  }
}

function structureOf(text: JsonValue | undefined): JsonSchema | undefined {
  const format = objectOf(objectOf(text)?.['format'])
  return format?.['type'] === 'json_schema' ? objectOf(format['schema']) : undefined
}

const formatField = new Set(['format'])

function textParam(text: JsonObject | undefined, hasStructure: boolean): JsonObject {
  const rest = text && hasStructure ? without(text, formatField) : text
  return rest && Object.keys(rest).length > 0 ? { text: rest } : {}
}

interface Conversation {
  readonly system?: string
  readonly messages: readonly Message[]
}

/**
 * Reads `input`. Items of one answer (messages, reasoning, calls, hosted tools) are one assistant
 * message, outputs of its calls one tool result message. System messages at the start are the
 * system prompt; later ones become user messages, since UPP has none there.
 */
function decodeInput(input: JsonValue | undefined): Conversation {
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

const api = 'openai-responses'

/** Collects the items of one answer into an assistant message, each with its verbatim form. */
class AssistantItems {
  readonly #names: Map<string, string>
  readonly #content: AssistantContent[] = []
  readonly #calls: ToolCall[] = []
  readonly #kinds: BlockKind[] = []

  constructor(names: Map<string, string>) {
    this.#names = names
  }

  add(item: JsonObject, at: string): void {
    switch (item['type'] ?? 'message') {
      case 'message':
        return this.#addTexts(item)
      case 'reasoning':
        return this.#addBlock({
          type: 'reasoning',
          text: reasoningText(item),
          metadata: withNative('openai', api, item),
        })
      case 'function_call':
      case 'custom_tool_call':
        return this.#addCall(item, at)
      case 'image_generation_call':
        if (textOf(item['result'])) return this.#addBlock(imageOf(item))
    }
    const name = textOf(item['type']) ?? 'unknown'
    this.#addBlock({ type: 'native', name, metadata: withNative('openai', api, item) })
  }

  /** Undefined when there were no items. */
  message(): AssistantMessage | undefined {
    if (this.#kinds.length === 0) return undefined
    const order = orderMetadata(this.#kinds)
    const options = order['order'] ? { metadata: { openai: { api, ...order } } } : {}
    const calls = this.#calls.length > 0 ? this.#calls : undefined
    return new AssistantMessage(this.#content, calls, options)
  }

  #addBlock(block: AssistantContent): void {
    this.#content.push(block)
    this.#kinds.push(block.type === 'text' ? 'text' : 'native')
  }

  /** A message without an id was written by the client; there is nothing verbatim to keep. */
  #addTexts(item: JsonObject): void {
    const { content } = item
    if (typeof content === 'string') return this.#addBlock({ type: 'text', text: content })
    const about = without(item, new Set(['content']))
    for (const value of listOf(content)) {
      const part = objectOf(value) ?? {}
      const text = stringOf(part['text']) ?? stringOf(part['refusal']) ?? ''
      const native = without(part, new Set(['text', 'refusal']))
      const isOwn = item['id'] !== undefined || part['type'] === 'refusal'
      const metadata = withNative('openai', api, native, { item: about })
      this.#addBlock({ type: 'text', text, ...(isOwn && { metadata }) })
    }
  }

  #addCall(item: JsonObject, at: string): void {
    const toolCallId = textOf(item['call_id'])
    const toolName = textOf(item['name'])
    if (toolCallId === undefined || toolName === undefined) {
      throw invalidRequest('openai', `The field "${at}" has no call_id or no name.`)
    }
    this.#names.set(toolCallId, toolName)
    this.#kinds.push('tool_call')
    const isCustom = item['type'] === 'custom_tool_call'
    const parsed = isCustom
      ? { arguments: { input: stringOf(item['input']) ?? '' } }
      : parseArguments(stringOf(item['arguments']) ?? '')
    this.#calls.push({
      toolCallId,
      toolName,
      arguments: parsed.arguments ?? {},
      ...('invalid' in parsed && parsed.invalid && { invalidArguments: parsed.invalid }),
      ...((isCustom || item['id'] !== undefined) && { metadata: withNative('openai', api, item) }),
    })
  }
}

function reasoningText(item: JsonObject): string {
  return [...listOf(item['summary']), ...listOf(item['content'])]
    .map((part) => stringOf(objectOf(part)?.['text']) ?? '')
    .filter((text) => text !== '')
    .join('\n\n')
}

function imageOf(item: JsonObject): AssistantContent {
  return {
    type: 'image',
    source: { type: 'bytes', data: decodeBase64(textOf(item['result']) ?? '') },
    mimeType: `image/${textOf(item['output_format']) ?? 'png'}`,
    metadata: withNative('openai', api, without(item, new Set(['result']))),
  }
}
