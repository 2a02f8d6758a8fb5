import type { JsonObject, JsonValue } from '@skein/base'
import { isEmpty, listOf, objectOf, stringOf, textOf, textsOf, without } from '../read-json.ts'
import { unpackReasoning } from '../carried-reasoning.ts'
import { nativeOf, optionsMetadata } from '../metadata.ts'
import { declaredTool } from '../declared-tools.ts'
import { fieldError, type PartTypes, readBody, requestError, unknownPart } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'
import type { DocumentBlock, ProviderMetadata, UserContent } from '../../contract/content.ts'
import { fileAddress } from '../../media/vendor-file.ts'
import {
  AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from '../../contract/message.ts'
import type { ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../collect-blocks.ts'
import { decodeResponse } from './response.ts'
import { API } from './types.ts'

const ownFields = new Set(['model', 'messages', 'system', 'tools', 'stream', 'output_config'])
const toolFields = new Set(['type', 'name', 'description', 'input_schema'])

/** Reads a request that a client of the Messages API sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const { request, modelId } = readBody('anthropic', body)
  if (!Array.isArray(request['messages']))
    throw fieldError('anthropic', 'messages', 'is not a list')
  const { messages, system } = decodeMessages(listOf(request['messages']))
  const given = request['system']
  const texts = typeof given === 'string' ? [given] : textsOf(given)
  // The cache marks of system blocks concern only the client's own vendor, so the blocks are kept with their text.
  const isMarked = listOf(given).some(
    (block) => !isEmpty(without(objectOf(block) ?? {}, textFields)),
  )
  const systemBlocks: JsonObject[] | undefined = isMarked
    ? [...listOf(given).map((block) => objectOf(block) ?? {}), ...system.map(asTextBlock)]
    : undefined
  const prompt = [...texts, ...system].join('\n\n')
  const { tools, native } = splitTools(request['tools'])
  const { format, ...output } = objectOf(request['output_config']) ?? {}
  const structure =
    objectOf(format)?.['type'] === 'json_schema'
      ? objectOf(objectOf(format)?.['schema'])
      : undefined
  const outputConfig = format === undefined || structure ? output : { ...output, format }
  const params: Record<string, unknown> = without(request, ownFields)
  if (native.length > 0) params['tools'] = native
  if (!isEmpty(outputConfig)) params['output_config'] = outputConfig
  return {
    modelId,
    messages,
    system: prompt || undefined,
    ...(systemBlocks && { systemBlocks }),
    params,
    tools,
    structure,
    stream: request['stream'] === true,
    includeUsage: true,
  }
}

const textFields = new Set(['type', 'text'])

function asTextBlock(text: string): JsonObject {
  return { type: 'text', text }
}

/** Separates the client's own tools (type `custom`) from the vendor's, which stay in the parameters. */
function splitTools(value: JsonValue | undefined): {
  readonly tools: ServerRequest['tools']
  readonly native: readonly JsonValue[]
} {
  const tools: ServerRequest['tools'][number][] = []
  const native: JsonValue[] = []
  listOf(value).forEach((item, index) => {
    const tool = objectOf(item) ?? {}
    if ((tool['type'] ?? 'custom') !== 'custom') return native.push(item)
    const name = textOf(tool['name'])
    if (name === undefined) throw fieldError('anthropic', `tools[${index}].name`)
    const { description, input_schema } = tool
    const functionTool = {
      description,
      parameters: objectOf(input_schema),
      options: without(tool, toolFields),
    }
    return tools.push(declaredTool('anthropic', name, functionTool))
  })
  return { tools, native }
}

/** Reads `messages`. A user message with tool results becomes two messages: the results, then the rest. */
function decodeMessages(list: readonly JsonValue[]): {
  readonly messages: readonly Message[]
  /**
   * System messages at the beginning. Later ones become user messages, since UPP has no system
   * messages.
   */
  readonly system: readonly string[]
} {
  const messages: Message[] = []
  const system: string[] = []
  const names = new Map<string, string>()
  list.forEach((item, index) => {
    const at = `messages[${index}]`
    const message = objectOf(item)
    if (!message) throw fieldError('anthropic', at, 'is not an object')
    const blocks = blocksOf(message['content'], `${at}.content`)
    switch (message['role']) {
      case 'user': {
        const results: ToolResult[] = []
        const content: UserContent[] = []
        blocks.forEach((block, i) => {
          const place = `${at}.content[${i}]`
          if (block['type'] === 'tool_result') results.push(decodeResult(block, place, names))
          else content.push(decodeUserBlock(block, place))
        })
        if (results.length > 0) messages.push(new ToolResultMessage(results))
        if (content.length > 0) messages.push(new UserMessage(content))
        return
      }
      case 'assistant': {
        const assistant = decodeAssistant(blocks, `${at}.content`)
        for (const call of assistant.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
        messages.push(assistant)
        return
      }
      case 'system': {
        const text = textsOf(blocks).join('')
        if (messages.length === 0) system.push(text)
        else messages.push(new UserMessage(text))
        return
      }
      default:
        throw fieldError('anthropic', `${at}.role`, 'is not a role')
    }
  })
  return { messages, system }
}

function blocksOf(content: JsonValue | undefined, at: string): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw fieldError('anthropic', at, 'is neither text nor a list')
  return (content as readonly JsonValue[]).map((item, index) => {
    const block = objectOf(item)
    if (block && typeof block['type'] === 'string') return block
    throw fieldError('anthropic', `${at}[${index}].type`)
  })
}

/** A Map, because clients choose the key: an object would also find inherited keys such as `__proto__`. */
const blockFields: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['text', new Set(['type', 'text'])],
  ['image', new Set(['type', 'source'])],
  ['document', new Set(['type', 'source', 'title'])],
  ['tool_result', new Set(['type', 'tool_use_id', 'content', 'is_error'])],
])

/** Keeps the client's fields that UPP does not have (cache marks, citations) as metadata of the block. */
function metadataOf(block: JsonObject): ProviderMetadata | undefined {
  const options = without(block, blockFields.get(String(block['type'])) ?? new Set())
  return optionsMetadata('anthropic', options)
}

const partTypes: PartTypes = {
  text: 'text',
  image: 'image',
  document: 'document',
  audio: undefined,
  video: undefined,
  binary: undefined,
}

function decodeUserBlock(block: JsonObject, at: string): UserContent {
  const source = objectOf(block['source']) ?? {}
  const title = textOf(block['title'])
  const metadata = metadataOf(block)
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: stringOf(block['text']) ?? '', metadata }
    case 'image': {
      const data = textOf(source['data'])
      const url = textOf(source['url'])
      if (source['type'] === 'base64' && data !== undefined) {
        const mimeType = textOf(source['media_type']) ?? 'image/png'
        return { type: 'image', source: { type: 'base64', data }, mimeType, metadata }
      }
      const fileId = textOf(source['file_id'])
      if (source['type'] === 'file' && fileId !== undefined) {
        const address = fileAddress({ provider: 'anthropic', fileId })
        return {
          type: 'image',
          source: { type: 'url', url: address },
          mimeType: 'image/*',
          metadata,
        }
      }
      if (source['type'] !== 'url' || url === undefined) throw unreadable(at)
      return { type: 'image', source: { type: 'url', url }, mimeType: 'image/*', metadata }
    }
    case 'document': {
      // Content blocks are a source that only this API has. For it they stay as they are, for others they are text.
      const own = source['type'] === 'content' ? { ...metadata?.['anthropic'], source } : undefined
      const ownMetadata = own ? optionsMetadata('anthropic', own) : metadata
      return { type: 'document', ...documentOf(source, at), title, metadata: ownMetadata }
    }
    case 'search_result': {
      // For this API the block stays a search result, which the answer can cite; for others it is a document.
      const data = textsOf(block['content']).join('\n\n')
      const ownMetadata = optionsMetadata('anthropic', block)
      const text = { type: 'text', data } as const
      return {
        type: 'document',
        source: text,
        mimeType: 'text/plain',
        title,
        metadata: ownMetadata,
      }
    }
    default:
      throw unknownPart('anthropic', `${at}.type`, block['type'], partTypes)
  }
}

function documentOf(source: JsonObject, at: string): Pick<DocumentBlock, 'source' | 'mimeType'> {
  const mimeType = textOf(source['media_type']) ?? 'application/pdf'
  const data = stringOf(source['data'])
  const url = textOf(source['url'])
  if (source['type'] === 'base64' && data) return { source: { type: 'base64', data }, mimeType }
  if (source['type'] === 'url' && url) return { source: { type: 'url', url }, mimeType }
  const fileId = textOf(source['file_id'])
  if (source['type'] === 'file' && fileId)
    return {
      source: { type: 'url', url: fileAddress({ provider: 'anthropic', fileId }) },
      mimeType,
    }
  if (source['type'] === 'text' && data !== undefined)
    return { source: { type: 'text', data }, mimeType: 'text/plain' }
  if (source['type'] !== 'content') throw unreadable(at)
  const blocks = blocksOf(source['content'], `${at}.source.content`)
  const text = textsOf(blocks).join('\n\n')
  return { source: { type: 'text', data: text }, mimeType: 'text/plain' }
}

function unreadable(at: string): Error {
  return requestError(
    'anthropic',
    `The field "${at}.source" holds no data and no address.`,
    'Send the bytes, an address, or the id of an uploaded file.',
  )
}

function decodeResult(
  block: JsonObject,
  at: string,
  names: ReadonlyMap<string, string>,
): ToolResult {
  const toolCallId = textOf(block['tool_use_id'])
  if (toolCallId === undefined) throw fieldError('anthropic', `${at}.tool_use_id`)
  const { content = '' } = block
  return {
    toolCallId,
    result:
      typeof content === 'string'
        ? content
        : blocksOf(content, `${at}.content`).map((item, i): UserContent => {
            const isKnown = readableResults.has(item['type'] as string)
            if (isKnown) return decodeUserBlock(item, `${at}.content[${i}]`)
            // Blocks that only this API has (a tool reference, the state of a browser) stay as they are for it,
            // and are JSON text for others.
            const metadata = optionsMetadata('anthropic', { text: undefined, ...item })
            return { type: 'text', text: JSON.stringify(item), metadata }
          }),
    isError: block['is_error'] === true ? true : undefined,
    toolName: names.get(toolCallId),
    metadata: metadataOf(block),
  }
}

const readableResults = new Set(['text', 'image', 'document', 'search_result'])

/** Decodes an assistant message of the history with the decoder for answers. */
function decodeAssistant(blocks: readonly JsonObject[], at: string): AssistantMessage {
  blocks.forEach((block, index) => {
    const isCall = block['type'] === 'tool_use'
    if (isCall && !(textOf(block['id']) && textOf(block['name'])))
      throw fieldError('anthropic', `${at}[${index}]`, 'has no id or no name')
  })
  const context = answerContext('anthropic', { maxTokens: 0 })
  const message = readAnswer('anthropic', at, () => decodeResponse({ content: blocks }, context))
  return withCarriedReasoning(message)
}

/** Gives the reasoning of other vendors back what the signature carried for it. */
function withCarriedReasoning(message: AssistantMessage): AssistantMessage {
  const content = message.content.map((block) => {
    if (block.type !== 'reasoning') return block
    const signature = nativeOf(block.metadata, 'anthropic', API)?.['signature']
    const metadata = unpackReasoning(textOf(signature))
    return metadata ? { ...block, metadata } : block
  })
  if (content.every((block, index) => block === message.content[index])) return message
  const { id, timestamp, metadata, toolCalls } = message
  return new AssistantMessage(content, toolCalls, { id, timestamp, metadata })
}
