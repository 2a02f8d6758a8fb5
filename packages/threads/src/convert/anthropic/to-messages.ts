import { joinPointer, type Converted } from '../../issue.ts'
import type { MessagePart, Thread, UserContent, UserPromptPart } from '../../types.ts'
import { Losses } from '../bridge-losses.ts'
import { toStandardAlphabet } from '../bridge-media.ts'
import { walkMessages } from '../bridge-walk.ts'
import type { AnthropicBlock, AnthropicMessage } from './types.ts'

const FORMAT = 'a list of Anthropic messages'
const NO_PLACE = 'Anthropic messages have no field for it'
const PLAIN = 'it becomes plain text: what stood beside the text is not kept'

/**
 * A thread as Anthropic messages. Roles alternate, so neighbours of one role are joined; tool results come first in a
 * message, as the API demands.
 */
export function toAnthropicMessages(thread: Thread): Converted<AnthropicMessage[]> {
  const losses = new Losses()
  const messages: { role: 'user' | 'assistant'; content: string | AnthropicBlock[] }[] = []
  for (const walked of walkMessages(thread, losses, FORMAT)) {
    if (walked.kind === 'system') {
      losses.add(walked.pointer, 'Anthropic messages have no system events')
      continue
    }
    losses.rest(walked.message, walked.pointer, ['turn_type', 'message_type', 'parts'], NO_PLACE)
    const role = walked.kind === 'response' ? 'assistant' : 'user'
    const content = contentOf(walked.parts, walked.pointer, losses)
    const last = messages.at(-1)
    if (Array.isArray(content) && content.length === 0) {
      losses.add(walked.pointer, 'a message without blocks is not allowed')
      continue
    }
    if (last?.role !== role) {
      messages.push({ role, content })
      continue
    }
    losses.add(walked.pointer, `that a new ${walked.kind} begins here is not said: roles alternate`)
    last.content = resultsFirst([...blocksOf(last.content), ...blocksOf(content)])
  }
  return { value: messages, lost: losses.list }
}

/** A prompt alone stays a plain string, as it was written. */
function contentOf(
  parts: readonly MessagePart[],
  pointer: string,
  losses: Losses,
): string | AnthropicBlock[] {
  const [only] = parts
  if (parts.length === 1 && only?.part_kind === 'user-prompt' && typeof only.content === 'string') {
    losses.rest(only, joinPointer(pointer, 'parts', 0), ['part_kind', 'content'], NO_PLACE)
    return only.content
  }
  return resultsFirst(
    parts.flatMap((part, index) => toBlocks(part, joinPointer(pointer, 'parts', index), losses)),
  )
}

function blocksOf(content: string | AnthropicBlock[]): AnthropicBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function resultsFirst(blocks: AnthropicBlock[]): AnthropicBlock[] {
  const isResult = (block: AnthropicBlock) => block.type === 'tool_result'
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))]
}

/** Block fields without a name in a thread, kept when the part came from Anthropic. */
function origin(part: object): object {
  return (part as { anthropic_block?: object }).anthropic_block ?? {}
}

function toBlocks(part: MessagePart, pointer: string, losses: Losses): AnthropicBlock[] {
  const report = (...carried: string[]) =>
    losses.rest(part, pointer, ['part_kind', 'anthropic_block', ...carried], NO_PLACE)
  switch (part.part_kind) {
    case 'user-prompt':
      report('content')
      return promptBlocks(part, pointer, losses)
    case 'text':
      report('content')
      return [{ type: 'text', text: part.content, ...origin(part) }]
    case 'thinking':
      return thinkingBlocks(part, pointer, losses)
    case 'tool-call': {
      report('tool_call_id', 'tool_name', 'args')
      if (typeof part.args === 'string' || part.args === null) {
        losses.add(joinPointer(pointer, 'args'), 'Anthropic input is a value: the text is not kept')
      }
      return [
        {
          type: 'tool_use',
          id: part.tool_call_id,
          name: part.tool_name,
          input: inputOf(part.args),
          ...origin(part),
        },
      ]
    }
    case 'tool-return':
    case 'retry-prompt':
      return resultBlocks(part, pointer, losses)
    default: {
      const { anthropic_block } = part as { anthropic_block?: AnthropicBlock }
      if (anthropic_block) return [anthropic_block]
      losses.add(pointer, `Anthropic messages have no block for a ${part.part_kind} part`)
      return []
    }
  }
}

function inputOf(args: unknown): unknown {
  if (args === null || args === '') return {}
  if (typeof args !== 'string') return args
  try {
    return JSON.parse(args)
  } catch {
    // The API takes objects only; an empty one would hide what the model wrote.
    return { text: args }
  }
}

function thinkingBlocks(
  part: MessagePart & { part_kind: 'thinking' },
  pointer: string,
  losses: Losses,
): AnthropicBlock[] {
  const { signature, thinking_id, content } = part
  if (!signature || (part.provider_name && part.provider_name !== 'anthropic')) {
    losses.add(pointer, 'Anthropic takes back only thinking that it has signed')
    return []
  }
  losses.rest(
    part,
    pointer,
    ['part_kind', 'anthropic_block', 'content', 'signature', 'provider_name', 'thinking_id'],
    NO_PLACE,
  )
  // Pydantic AI's mark, which the import below uses too.
  if (thinking_id === 'redacted_thinking' || part.id === 'redacted_thinking')
    return [{ type: 'redacted_thinking', data: signature }]
  if (thinking_id) losses.add(joinPointer(pointer, 'thinking_id'), NO_PLACE)
  return [{ type: 'thinking', thinking: content ?? '', signature, ...origin(part) }]
}

type Answer = MessagePart & { part_kind: 'tool-return' | 'retry-prompt' }

function resultBlocks(part: Answer, pointer: string, losses: Losses): AnthropicBlock[] {
  const { content, tool_call_id: id, tool_name: name } = part
  const carried = ['part_kind', 'anthropic_block', 'tool_call_id', 'tool_name', 'content', 'status']
  losses.rest(part, pointer, carried, NO_PLACE)
  if (part.part_kind === 'retry-prompt')
    losses.add(joinPointer(pointer, 'part_kind'), 'a retry becomes an error')
  else if (part.status === 'validation_error')
    losses.add(joinPointer(pointer, 'status'), 'Anthropic knows one kind of error')
  const isOwn = typeof content === 'string' || 'anthropic_block' in part
  if (!isOwn) losses.add(joinPointer(pointer, 'content'), 'the result becomes JSON text')
  const result = isOwn ? (content as string) : JSON.stringify(content)
  if (id == null || (!name && part.part_kind === 'retry-prompt'))
    return [{ type: 'text', text: result }]
  const isError =
    part.part_kind === 'tool-return' && part.status === 'success' ? {} : { is_error: true }
  return [{ type: 'tool_result', tool_use_id: id, content: result, ...isError, ...origin(part) }]
}

function promptBlocks(part: UserPromptPart, pointer: string, losses: Losses): AnthropicBlock[] {
  if (typeof part.content === 'string')
    return [{ type: 'text', text: part.content, ...origin(part) }]
  return part.content.flatMap((item, index) =>
    contentBlock(item, joinPointer(pointer, 'content', index), losses),
  )
}

function contentBlock(item: UserContent, pointer: string, losses: Losses): AnthropicBlock[] {
  if (typeof item === 'string') return [{ type: 'text', text: item }]
  const carried = (...fields: string[]) =>
    losses.rest(item, pointer, ['kind', 'anthropic_block', ...fields], NO_PLACE)
  switch (item.kind) {
    case 'text-content':
      if (!('anthropic_block' in item) || 'metadata' in item) losses.add(pointer, PLAIN)
      return [{ type: 'text', text: item.content, ...origin(item) }]
    case 'image-url':
    case 'document-url': {
      carried('url')
      const type = item.kind === 'image-url' ? 'image' : 'document'
      return [{ type, source: { type: 'url', url: item.url }, ...origin(item) }]
    }
    case 'uploaded-file':
      if (item.provider_name !== 'anthropic') {
        losses.add(pointer, `the file is held by ${item.provider_name}`)
        return []
      }
      carried('file_id', 'provider_name')
      return [
        { type: 'document', source: { type: 'file', file_id: item.file_id }, ...origin(item) },
      ]
    case 'binary': {
      carried('data', 'media_type')
      if (/[-_]/.test(item.data))
        losses.add(joinPointer(pointer, 'data'), 'the URL-safe alphabet is not kept')
      const type = item.media_type.startsWith('image/') ? 'image' : 'document'
      const source = {
        type: 'base64',
        media_type: item.media_type,
        data: toStandardAlphabet(item.data),
      } as const
      return [{ type, source, ...origin(item) }]
    }
    default:
      losses.add(pointer, `Anthropic messages have no block for ${item.kind}`)
      return []
  }
}
