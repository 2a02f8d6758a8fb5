import { joinPointer, type Converted } from '../../issue.ts'
import type { MessagePart, Thread, UserContent, UserPromptPart } from '../../types.ts'
import { Losses } from '../bridge-losses.ts'
import { dataUrl } from '../bridge-media.ts'
import { walkMessages, type WalkedMessage } from '../bridge-walk.ts'
import type { ResponsesContent, ResponsesItem } from './types.ts'

const FORMAT = 'a list of Responses items'
const NO_PLACE = 'Responses items have no field for it'
const PLAIN = 'it becomes plain text: what stood beside the text is not kept'

/** A thread as OpenAI Responses items: input for a request, or for a new conversation. */
export function toResponsesItems(thread: Thread): Converted<ResponsesItem[]> {
  const losses = new Losses()
  const items: ResponsesItem[] = []
  let previous: WalkedMessage | undefined
  for (const walked of walkMessages(thread, losses, FORMAT)) {
    if (walked.kind === 'system') {
      losses.add(walked.pointer, 'Responses items have no system events')
      continue
    }
    losses.rest(walked.message, walked.pointer, ['turn_type', 'message_type', 'parts'], NO_PLACE)
    if (walked.kind === 'response' && previous?.kind === 'response') {
      losses.add(walked.pointer, 'that a new response begins here is not said')
    }
    walked.parts.forEach((part, index) => {
      const item = toItem(part, joinPointer(walked.pointer, 'parts', index), losses)
      if (item) items.push(item)
    })
    previous = walked
  }
  return { value: items, lost: losses.list }
}

/** An item that a part came from gives its other fields back. */
function origin(part: MessagePart): object {
  return (part as { openai_item?: object }).openai_item ?? {}
}

function toItem(part: MessagePart, pointer: string, losses: Losses): ResponsesItem | undefined {
  const report = (...carried: string[]) =>
    losses.rest(part, pointer, ['part_kind', 'openai_item', ...carried], NO_PLACE)
  switch (part.part_kind) {
    case 'user-prompt':
      report('content')
      return promptItem(part, pointer, losses)
    case 'text':
      report('content', 'id', 'annotations')
      return {
        type: 'message',
        role: 'assistant',
        ...idOf(part.id),
        ...origin(part),
        content: [outputText(part)],
      }
    case 'thinking': {
      report('content', 'id', 'thinking_id', 'signature')
      const summary = part.content ? [{ type: 'summary_text', text: part.content } as const] : []
      const encrypted = part.signature == null ? {} : { encrypted_content: part.signature }
      const id = part.thinking_id ?? part.id ?? ''
      return { type: 'reasoning', id, summary, ...encrypted, ...origin(part) }
    }
    case 'tool-call': {
      report('tool_call_id', 'tool_name', 'args', 'id')
      if (typeof part.args !== 'string')
        losses.add(joinPointer(pointer, 'args'), 'arguments become JSON text')
      const text = typeof part.args === 'string' ? part.args : JSON.stringify(part.args ?? {})
      const fields = { call_id: part.tool_call_id, name: part.tool_name, arguments: text }
      return { type: 'function_call', ...fields, ...idOf(part.id), ...origin(part) }
    }
    case 'tool-return':
    case 'retry-prompt':
      return outputItem(part, pointer, losses)
    default: {
      const { openai_item } = part as { openai_item?: ResponsesItem }
      if (openai_item) return openai_item
      losses.add(pointer, `Responses items have none for a ${part.part_kind} part`)
      return undefined
    }
  }
}

function idOf(id: string | null | undefined): { id?: string } {
  return id == null ? {} : { id }
}

/** A text as the API writes it. `annotations: null` stands for a text that had none, not even an empty list. */
function outputText(part: MessagePart & { part_kind: 'text' }): ResponsesContent {
  const { annotations = [] } = part as { annotations?: readonly unknown[] | null }
  return { type: 'output_text', text: part.content, ...(annotations && { annotations }) }
}

type Answer = MessagePart & { part_kind: 'tool-return' | 'retry-prompt' }

function outputItem(part: Answer, pointer: string, losses: Losses): ResponsesItem {
  const { content, tool_call_id: id } = part
  losses.rest(
    part,
    pointer,
    ['part_kind', 'openai_item', 'tool_call_id', 'content', 'tool_name', 'status'],
    NO_PLACE,
  )
  if (part.part_kind === 'retry-prompt')
    losses.add(joinPointer(pointer, 'part_kind'), 'a retry becomes an output')
  else if (part.status !== 'success')
    losses.add(joinPointer(pointer, 'status'), 'an error becomes an output like any other')
  const isOutput = typeof content === 'string' || 'openai_item' in part
  if (!isOutput) losses.add(joinPointer(pointer, 'content'), 'the output becomes JSON text')
  const output = isOutput ? (content as string) : JSON.stringify(content)
  if (id == null || (part.part_kind === 'retry-prompt' && !part.tool_name)) {
    return { type: 'message', role: 'user', content: [{ type: 'input_text', text: output }] }
  }
  return { type: 'function_call_output', call_id: id, output, ...origin(part) }
}

function promptItem(part: UserPromptPart, pointer: string, losses: Losses): ResponsesItem {
  const { content } = part
  if (typeof content === 'string')
    return { type: 'message', role: 'user', ...origin(part), content }
  const blocks = content.flatMap((item, index) => {
    const block = contentBlock(item, joinPointer(pointer, 'content', index), losses)
    return block ? [block] : []
  })
  return { type: 'message', role: 'user', ...origin(part), content: blocks }
}

function contentBlock(
  item: UserContent,
  pointer: string,
  losses: Losses,
): ResponsesContent | undefined {
  if (typeof item === 'string') return { type: 'input_text', text: item }
  const block = mediaBlock(item)
  if (!block) losses.add(pointer, `Responses items have no content for this ${item.kind}`)
  else if (item.kind === 'text-content') losses.add(pointer, PLAIN)
  else losses.rest(item, pointer, CARRIED[item.kind] ?? ['kind'], NO_PLACE)
  if (block && item.kind === 'binary' && /[-_]/.test(item.data)) {
    losses.add(joinPointer(pointer, 'data'), 'the URL-safe alphabet is not kept')
  }
  return block
}

const CARRIED: Readonly<Record<string, readonly string[]>> = {
  binary: ['kind', 'data', 'media_type', 'openai_content'],
  'image-url': ['kind', 'url', 'openai_content'],
  'document-url': ['kind', 'url', 'openai_content'],
  'uploaded-file': ['kind', 'file_id', 'provider_name', 'openai_content'],
}

function mediaBlock(item: Exclude<UserContent, string>): ResponsesContent | undefined {
  const { openai_content } = item as { openai_content?: object }
  switch (item.kind) {
    case 'text-content':
      return { type: 'input_text', text: item.content }
    case 'image-url':
      return { type: 'input_image', image_url: item.url, ...openai_content }
    case 'document-url':
      return { type: 'input_file', file_url: item.url, ...openai_content }
    case 'uploaded-file':
      // Another provider's file id means nothing here.
      if (item.provider_name !== 'openai') return undefined
      return { type: 'input_file', file_id: item.file_id, ...openai_content }
    case 'binary': {
      const url = dataUrl(item.media_type, item.data)
      const isImage = item.media_type.startsWith('image/')
      return isImage
        ? { type: 'input_image', image_url: url, ...openai_content }
        : { type: 'input_file', file_data: url, filename: 'file', ...openai_content }
    }
    default:
      return undefined
  }
}
