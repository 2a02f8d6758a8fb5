import type { JsonObject, JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import {
  ToolResultMessage,
  UserMessage,
  type AssistantMessage,
  type Message,
} from '../../contract/message.ts'
import type { ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../answer-context.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import { decodeResponse } from './response.ts'

interface Conversation {
  readonly messages: readonly Message[]
  /** System messages at the beginning; later ones become user messages, since UPP has none there. */
  readonly system: readonly string[]
}

/** Reads `messages`. A user message with tool results becomes two: the results, then the rest. */
export function decodeMessages(list: readonly JsonValue[]): Conversation {
  const messages: Message[] = []
  const system: string[] = []
  const names = new Map<string, string>()
  list.forEach((item, index) => {
    const at = `messages[${index}]`
    const message = objectOf(item)
    if (!message) throw invalidRequest('anthropic', `The field "${at}" is not an object.`)
    const blocks = blocksOf(message['content'], `${at}.content`)
    switch (message['role']) {
      case 'user':
        messages.push(...decodeUser(blocks, `${at}.content`, names))
        return
      case 'assistant': {
        const assistant = decodeAssistant(blocks, `${at}.content`)
        for (const call of assistant.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
        messages.push(assistant)
        return
      }
      case 'system': {
        const text = blocks.map((block) => stringOf(block['text']) ?? '').join('')
        if (messages.length === 0) system.push(text)
        else messages.push(new UserMessage(text))
        return
      }
      default:
        throw invalidRequest('anthropic', `The field "${at}.role" is not a role.`)
    }
  })
  return { messages, system }
}

function blocksOf(content: JsonValue | undefined, at: string): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content))
    throw invalidRequest('anthropic', `The field "${at}" is neither text nor a list.`)
  return (content as readonly JsonValue[]).map((item, index) => {
    const block = objectOf(item)
    if (block && typeof block['type'] === 'string') return block
    throw invalidRequest('anthropic', `The field "${at}[${index}].type" is missing.`)
  })
}

function decodeUser(
  blocks: readonly JsonObject[],
  at: string,
  names: ReadonlyMap<string, string>,
): Message[] {
  const results: ToolResult[] = []
  const content: UserContent[] = []
  blocks.forEach((block, index) => {
    if (block['type'] === 'tool_result') results.push(decodeResult(block, `${at}[${index}]`, names))
    else content.push(decodeUserBlock(block, `${at}[${index}]`))
  })
  return [
    ...(results.length > 0 ? [new ToolResultMessage(results)] : []),
    ...(content.length > 0 ? [new UserMessage(content)] : []),
  ]
}

const blockFields: Readonly<Record<string, ReadonlySet<string>>> = {
  text: new Set(['type', 'text']),
  image: new Set(['type', 'source']),
  document: new Set(['type', 'source', 'title']),
  tool_result: new Set(['type', 'tool_use_id', 'content', 'is_error']),
}

/** What the client set beyond UPP (cache marks, citations) stays with the block. */
function metadataOf(block: JsonObject): { metadata?: { anthropic: JsonObject } } {
  const options = without(block, blockFields[block['type'] as string] ?? new Set())
  return isEmpty(options) ? {} : { metadata: { anthropic: options } }
}

function decodeUserBlock(block: JsonObject, at: string): UserContent {
  const source = objectOf(block['source']) ?? {}
  const title = textOf(block['title'])
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: stringOf(block['text']) ?? '', ...metadataOf(block) }
    case 'image':
      return { type: 'image', ...imageOf(source, at), ...metadataOf(block) }
    case 'document': {
      const named = title !== undefined && { title }
      return { type: 'document', ...documentOf(source, at), ...named, ...metadataOf(block) }
    }
    case 'search_result': {
      const texts = listOf(block['content']).map((item) => stringOf(objectOf(item)?.['text']) ?? '')
      const data = texts.join('\n\n')
      const named = title !== undefined && { title }
      return { type: 'document', source: { type: 'text', data }, mimeType: 'text/plain', ...named }
    }
    default:
      throw invalidRequest(
        'anthropic',
        `The field "${at}.type" is ${JSON.stringify(block['type'])}.`,
      )
  }
}

function imageOf(
  source: JsonObject,
  at: string,
): Pick<Extract<UserContent, { type: 'image' }>, 'source' | 'mimeType'> {
  const data = textOf(source['data'])
  const url = textOf(source['url'])
  if (source['type'] === 'base64' && data !== undefined) {
    const mimeType = textOf(source['media_type']) ?? 'image/png'
    return { source: { type: 'base64', data }, mimeType }
  }
  if (source['type'] === 'url' && url !== undefined)
    return { source: { type: 'url', url }, mimeType: 'image/*' }
  throw unreadable(at)
}

function documentOf(
  source: JsonObject,
  at: string,
): Pick<Extract<UserContent, { type: 'document' }>, 'source' | 'mimeType'> {
  const mimeType = textOf(source['media_type']) ?? 'application/pdf'
  const data = stringOf(source['data'])
  const url = textOf(source['url'])
  if (source['type'] === 'base64' && data) return { source: { type: 'base64', data }, mimeType }
  if (source['type'] === 'url' && url) return { source: { type: 'url', url }, mimeType }
  if (source['type'] === 'text' && data !== undefined)
    return { source: { type: 'text', data }, mimeType: 'text/plain' }
  if (source['type'] !== 'content') throw unreadable(at)
  const blocks = blocksOf(source['content'], `${at}.source.content`)
  const text = blocks.map((block) => stringOf(block['text']) ?? '').join('\n\n')
  return { source: { type: 'text', data: text }, mimeType: 'text/plain' }
}

function unreadable(at: string): Error {
  return invalidRequest(
    'anthropic',
    `The field "${at}.source" holds no data and no address.`,
    'Uploaded files (file_id) are known to their vendor alone; send the bytes.',
  )
}

function decodeResult(
  block: JsonObject,
  at: string,
  names: ReadonlyMap<string, string>,
): ToolResult {
  const toolCallId = textOf(block['tool_use_id'])
  if (toolCallId === undefined)
    throw invalidRequest('anthropic', `The field "${at}.tool_use_id" is missing.`)
  const { content = '' } = block
  const toolName = names.get(toolCallId)
  return {
    toolCallId,
    result:
      typeof content === 'string'
        ? content
        : blocksOf(content, `${at}.content`).map((item, i) =>
            resultBlock(item, `${at}.content[${i}]`),
          ),
    ...(block['is_error'] === true && { isError: true }),
    ...(toolName !== undefined && { toolName }),
    ...metadataOf(block),
  }
}

/** Kinds that only this API knows (a tool reference, the state of a browser) are told as JSON. */
function resultBlock(block: JsonObject, at: string): UserContent {
  const isKnown = ['text', 'image', 'document', 'search_result'].includes(String(block['type']))
  return isKnown ? decodeUserBlock(block, at) : { type: 'text', text: JSON.stringify(block) }
}

/** An assistant message that comes back is read as the answer it once was. */
function decodeAssistant(blocks: readonly JsonObject[], at: string): AssistantMessage {
  blocks.forEach((block, index) => {
    const isCall = block['type'] === 'tool_use'
    if (isCall && !(textOf(block['id']) && textOf(block['name'])))
      throw invalidRequest('anthropic', `The field "${at}[${index}]" has no id or no name.`)
  })
  const context = answerContext('anthropic', { maxTokens: 0 })
  return readAnswer('anthropic', at, () => decodeResponse({ content: blocks }, context))
}
