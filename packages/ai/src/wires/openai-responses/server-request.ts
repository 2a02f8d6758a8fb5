import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { AssistantContent, UserContent } from '../../contract/content.ts'
import { fileAddress } from '../../media/vendor-file.ts'
import type { BlockKind } from '../../contract/event.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { unpackReasoning } from '../carried-reasoning.ts'
import { parseDataUrl } from '../media.ts'
import { optionsMetadata, withNative } from '../metadata.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, textsOf, without } from '../read-json.ts'
import { readFormat, refuseLoose } from '../strict-check.ts'
import { declaredTool, splitTools } from '../declared-tools.ts'
import { orderMetadata } from '../block-order.ts'
import { fieldError, type PartTypes, readBody, requestError, unknownPart } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'

const api = 'openai-responses'
const ownFields = new Set(['model', 'input', 'instructions', 'tools', 'text', 'stream'])
const formatField = new Set(['format'])

/** Reads a request that a client of Responses sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const { request, modelId } = readBody('openai', body)
  const input = new InputReader()
  input.readAll(request['input'])
  const system = [stringOf(request['instructions']), ...input.system].filter(Boolean).join('\n\n')
  const { tools, native } = splitTools(request['tools'], (tool, index) => {
    const { type: _, name, description, parameters, strict, ...rest } = tool
    const toolName = textOf(name)
    if (toolName === undefined) throw fieldError('openai', `tools[${index}].name`)
    // `strict: false` is not stored, because our own requests send it by default.
    const options: JsonObject = strict === true ? { ...rest, strict } : rest
    const schema = objectOf(parameters)
    if (strict === true && schema) refuseLoose(schema, `tools[${index}].parameters`)
    return declaredTool('openai', toolName, { description, parameters: schema, options })
  })
  const text = objectOf(request['text'])
  const format = objectOf(text?.['format'])
  const structure =
    format?.['type'] === 'json_schema' ? readFormat(format, 'text.format') : undefined
  // All other fields of the request are parameters.
  const params: Record<string, unknown> = without(request, ownFields)
  const textOptions = text && structure ? without(text, formatField) : text
  if (textOptions && !isEmpty(textOptions)) params['text'] = textOptions
  if (native.length > 0) params['tools'] = native
  return {
    modelId,
    messages: input.messages,
    system: system || undefined,
    params,
    tools,
    structure,
    stream: request['stream'] === true,
    includeUsage: true,
  }
}

/**
 * Reads `input`. Items of one answer (messages, reasoning, calls, hosted tools) become one assistant
 * message, outputs of its calls one tool result message. Leading system messages are the system
 * prompt; later ones become user messages, since UPP has no system messages.
 */
class InputReader {
  readonly messages: Message[] = []
  readonly system: string[] = []
  readonly #names = new Map<string, string>()
  #assistant = new AssistantItems(this.#names)
  #results: ToolResult[] = []

  readAll(input: JsonValue | undefined): void {
    if (typeof input === 'string') return void this.messages.push(new UserMessage(input))
    if (!Array.isArray(input)) {
      throw fieldError('openai', 'input', 'is neither text nor a list')
    }
    listOf(input).forEach((item, index) => this.#read(objectOf(item) ?? {}, `input[${index}]`))
    this.#flushAssistant()
    this.#flushResults()
  }

  #read(item: JsonObject, at: string): void {
    const { type = 'message', role } = item
    if (type === 'item_reference') {
      throw requestError(
        'openai',
        `The field "${at}" refers to a stored item.`,
        'Send the item itself.',
      )
    }
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      this.#flushAssistant()
      this.#addResult(item, at)
    } else if (type !== 'message' || role === 'assistant') {
      this.#flushResults()
      this.#assistant.add(item, at)
    } else {
      this.#flushAssistant()
      this.#flushResults()
      this.#addMessage(item, at)
    }
  }

  #addResult(item: JsonObject, at: string): void {
    const toolCallId = textOf(item['call_id'])
    if (toolCallId === undefined) throw fieldError('openai', `${at}.call_id`)
    const { output } = item
    const result = Array.isArray(output) ? decodeParts(listOf(output), at) : (output ?? '')
    this.#results.push({ toolCallId, result, toolName: this.#names.get(toolCallId) })
  }

  #addMessage({ role, content }: JsonObject, at: string): void {
    if (role === 'user') {
      const blocks = typeof content === 'string' ? content : decodeParts(listOf(content), at)
      this.messages.push(new UserMessage(blocks))
      return
    }
    if (role !== 'system' && role !== 'developer') {
      throw fieldError('openai', `${at}.role`, `is ${JSON.stringify(role)}`)
    }
    const text = typeof content === 'string' ? content : textsOf(content).join('')
    if (this.messages.length === 0) this.system.push(text)
    else this.messages.push(new UserMessage(text))
  }

  #flushAssistant(): void {
    const message = this.#assistant.message()
    if (!message) return
    this.messages.push(message)
    this.#assistant = new AssistantItems(this.#names)
  }

  #flushResults(): void {
    if (this.#results.length > 0) this.messages.push(new ToolResultMessage(this.#results))
    this.#results = []
  }
}

function decodeParts(parts: readonly JsonValue[], at: string): readonly UserContent[] {
  return parts.map((part, index) => decodePart(objectOf(part) ?? {}, `${at}.content[${index}]`))
}

const partTypes: PartTypes = {
  text: 'input_text',
  image: 'input_image',
  document: 'input_file',
  audio: undefined,
  video: undefined,
  binary: undefined,
}

function decodePart(part: JsonObject, at: string): UserContent {
  const { type, text, image_url, file_data, file_url, file_id, filename, ...options } = part
  const metadata = optionsMetadata('openai', options)
  const fileId = textOf(file_id)
  const address =
    textOf(type === 'input_image' ? image_url : (file_data ?? file_url)) ??
    (fileId === undefined ? undefined : fileAddress({ provider: 'openai', fileId }))
  const inline = address === undefined ? undefined : parseDataUrl(address)
  if (type === 'input_text') return { type: 'text', text: stringOf(text) ?? '', metadata }
  if (type !== 'input_image' && type !== 'input_file') {
    throw unknownPart('openai', `${at}.type`, type, partTypes)
  }
  if (address === undefined) {
    throw requestError(
      'openai',
      `The field "${at}" has neither data nor an address.`,
      'Send the bytes, an address, or the id of an uploaded file.',
    )
  }
  const source = inline
    ? ({ type: 'base64', data: inline.data } as const)
    : ({ type: 'url', url: address } as const)
  if (type === 'input_image') {
    return { type: 'image', source, mimeType: inline?.mimeType ?? 'image/*', metadata }
  }
  const mimeType = inline?.mimeType ?? 'application/pdf'
  return { type: 'document', source, mimeType, title: textOf(filename), metadata }
}

/** Collects the items of one answer into an assistant message; the original items are kept as metadata. */
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
          text: [...textsOf(item['summary']), ...textsOf(item['content'])]
            .filter((text) => text !== '')
            .join('\n\n'),
          metadata:
            unpackReasoning(textOf(item['encrypted_content'])) ?? withNative('openai', api, item),
        })
      case 'function_call':
      case 'custom_tool_call':
        return this.#addCall(item, at)
      case 'image_generation_call':
        if (!textOf(item['result'])) break
        return this.#addBlock({
          type: 'image',
          source: { type: 'bytes', data: decodeBase64(textOf(item['result']) ?? '') },
          mimeType: `image/${textOf(item['output_format']) ?? 'png'}`,
          metadata: withNative('openai', api, without(item, new Set(['result']))),
        })
    }
    const name = textOf(item['type']) ?? 'unknown'
    this.#addBlock({ type: 'native', name, metadata: withNative('openai', api, item) })
  }

  /** Returns the message; undefined if there were no items. */
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

  /**
   * Adds the texts of a message item. An item without an id was written by the client, so no original
   * is kept.
   */
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
      this.#addBlock({ type: 'text', text, metadata: isOwn ? metadata : undefined })
    }
  }

  #addCall(item: JsonObject, at: string): void {
    const toolCallId = textOf(item['call_id'])
    const toolName = textOf(item['name'])
    if (toolCallId === undefined || toolName === undefined) {
      throw fieldError('openai', at, 'has no call_id or no name')
    }
    this.#names.set(toolCallId, toolName)
    this.#kinds.push('tool_call')
    const isCustom = item['type'] === 'custom_tool_call'
    const isOwn = isCustom || item['id'] !== undefined
    const argumentsJson = parseArguments(isCustom ? '' : (stringOf(item['arguments']) ?? ''))
    const input = { input: stringOf(item['input']) ?? '' }
    this.#calls.push({
      toolCallId,
      toolName,
      arguments: isCustom ? input : (argumentsJson.arguments ?? {}),
      invalidArguments: isCustom ? undefined : argumentsJson.invalid,
      metadata: isOwn ? withNative('openai', api, item) : undefined,
    })
  }
}
