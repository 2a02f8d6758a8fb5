import { joinPointer, type Converted } from '../../issue.ts'
import type { MessagePart, Thread, UserPromptPart } from '../../types.ts'
import { Losses } from '../bridge-losses.ts'
import { walkMessages, type WalkedMessage } from '../bridge-walk.ts'
import { toMediaBlock } from './media-blocks.ts'
import type { UppContentBlock, UppMessage, UppToolCall, UppToolResult } from './types.ts'

const FORMAT = 'a UPP conversation'
const NO_PLACE = 'UPP has no field for it'

/**
 * A thread as UPP messages, ready for any UPP `llm()`. Tool results come before a prompt of the same request, as
 * vendors demand.
 */
export function toUppMessages(thread: Thread): Converted<UppMessage[]> {
  const losses = new Losses()
  const messages: UppMessage[] = []
  for (const walked of walkMessages(thread, losses, FORMAT)) {
    if (walked.kind === 'system') losses.add(walked.pointer, 'UPP has no system events')
    else if (walked.kind === 'response') messages.push(assistantMessage(walked, losses))
    else messages.push(...requestMessages(walked, losses))
  }
  return { value: messages, lost: losses.list }
}

type Spoken = Exclude<WalkedMessage, { kind: 'system' }>

const CARRIED = [
  'turn_type',
  'message_type',
  'parts',
  'timestamp',
  'submitted_at',
  'message_id',
  'upp_metadata',
  'turn_id',
]

function base(
  { message, at, id, pointer }: Spoken,
  losses: Losses,
): { id: string; timestamp: string } {
  losses.rest(message, pointer, CARRIED, NO_PLACE)
  const { message_id, upp_metadata: metadata } = message as {
    message_id?: string
    upp_metadata?: Record<string, unknown>
  }
  return { id: message_id ?? id, timestamp: at, ...(metadata && { metadata }) }
}

function assistantMessage(walked: Spoken, losses: Losses): UppMessage {
  const content: UppContentBlock[] = []
  const toolCalls: UppToolCall[] = []
  walked.parts.forEach((part, index) => {
    const pointer = joinPointer(walked.pointer, 'parts', index)
    if (part.part_kind === 'tool-call') {
      toolCalls.push(toolCall(part, pointer, losses))
      return
    }
    const block = assistantBlock(part, pointer, losses)
    if (!block) return
    if (toolCalls.length > 0)
      losses.add(pointer, 'UPP keeps calls apart: that this came after a call is not said')
    content.push(block)
  })
  const fields = { ...base(walked, losses), type: 'assistant', content } as const
  return toolCalls.length === 0 ? fields : { ...fields, toolCalls }
}

function assistantBlock(
  part: MessagePart,
  pointer: string,
  losses: Losses,
): UppContentBlock | undefined {
  switch (part.part_kind) {
    case 'text':
      losses.rest(part, pointer, ['part_kind', 'content', 'upp_metadata'], NO_PLACE)
      return { type: 'text', text: part.content, ...metadataOf(part) }
    case 'thinking':
      losses.rest(part, pointer, ['part_kind', 'content', 'upp_metadata'], NO_PLACE)
      return { type: 'reasoning', text: part.content ?? '', ...metadataOf(part) }
    case 'file': {
      const block = toMediaBlock(part.content)
      if (!block || block.type === 'document' || block.type === 'binary') break
      losses.rest(part, pointer, ['part_kind', 'content', 'upp_metadata'], NO_PLACE)
      mediaLosses(part.content, joinPointer(pointer, 'content'), losses)
      return { ...block, ...metadataOf(part) }
    }
    default:
  }
  losses.add(pointer, `UPP has no block for a ${part.part_kind} part in an answer`)
  return undefined
}

function toolCall(
  part: MessagePart & { part_kind: 'tool-call' },
  pointer: string,
  losses: Losses,
): UppToolCall {
  const { tool_call_id: toolCallId, tool_name: toolName, args } = part
  losses.rest(
    part,
    pointer,
    ['part_kind', 'tool_call_id', 'tool_name', 'args', 'upp_metadata'],
    NO_PLACE,
  )
  const parsed = typeof args === 'string' ? parseArguments(args) : (args ?? {})
  if (typeof args === 'string' || args === null) {
    losses.add(joinPointer(pointer, 'args'), 'UPP arguments are a value: their text is not kept')
  }
  return { toolCallId, toolName, arguments: parsed, ...metadataOf(part) }
}

function parseArguments(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    // Models do write arguments that are no JSON. UPP has no way to say so, and an empty object would be a lie.
    return { text }
  }
}

function* requestMessages(walked: Spoken, losses: Losses): Generator<UppMessage, void, undefined> {
  const results: UppToolResult[] = []
  const content: UppContentBlock[] = []
  walked.parts.forEach((part, index) => {
    const pointer = joinPointer(walked.pointer, 'parts', index)
    if (part.part_kind === 'user-prompt') content.push(...promptBlocks(part, pointer, losses))
    else if (
      part.part_kind === 'tool-return' ||
      (part.part_kind === 'retry-prompt' && part.tool_name)
    ) {
      results.push(toolResult(part, pointer, losses))
    } else if (part.part_kind === 'retry-prompt' && typeof part.content === 'string') {
      losses.add(
        joinPointer(pointer, 'part_kind'),
        'UPP knows no retry: it becomes text of the user',
      )
      content.push({ type: 'text', text: part.content })
    } else losses.add(pointer, `UPP has no block for a ${part.part_kind} part in a request`)
  })
  const fields = base(walked, losses)
  if (results.length > 0) yield { ...fields, type: 'tool_result', results }
  const id = results.length > 0 ? `${fields.id}.user` : fields.id
  if (content.length > 0 || results.length === 0) yield { ...fields, id, type: 'user', content }
}

function promptBlocks(part: UserPromptPart, pointer: string, losses: Losses): UppContentBlock[] {
  losses.rest(part, pointer, ['part_kind', 'content'], NO_PLACE)
  if (typeof part.content === 'string') return [{ type: 'text', text: part.content }]
  const blocks = part.content.flatMap((item, index): UppContentBlock[] => {
    if (typeof item === 'string') return [{ type: 'text', text: item }]
    const place = joinPointer(pointer, 'content', index)
    if (item.kind === 'text-content') {
      losses.add(place, 'it becomes plain text: what stood beside the text is not kept')
      return [{ type: 'text', text: item.content }]
    }
    const block = toMediaBlock(item)
    if (block) mediaLosses(item, place, losses)
    else losses.add(place, `UPP has no block for ${item.kind} content`)
    return block ? [block] : []
  })
  if (blocks.length === 1 && blocks[0]?.type === 'text') {
    losses.add(joinPointer(pointer, 'content'), 'a list of one text becomes a text')
  }
  return blocks
}

function mediaLosses(content: object, pointer: string, losses: Losses): void {
  const { data } = content as { data?: string }
  losses.rest(content, pointer, ['kind', 'data', 'url', 'media_type'], NO_PLACE)
  if (data && /[-_]/.test(data))
    losses.add(joinPointer(pointer, 'data'), 'the URL-safe alphabet is not kept')
}

type Answer = MessagePart & { part_kind: 'tool-return' | 'retry-prompt' }

function toolResult(part: Answer, pointer: string, losses: Losses): UppToolResult {
  const toolCallId = part.tool_call_id ?? ''
  const names = part.tool_name ? { toolName: part.tool_name } : {}
  losses.rest(
    part,
    pointer,
    ['part_kind', 'tool_call_id', 'tool_name', 'content', 'status', 'upp_metadata'],
    NO_PLACE,
  )
  if (part.part_kind === 'retry-prompt') {
    losses.add(
      joinPointer(pointer, 'part_kind'),
      'UPP knows one kind of error: a retry becomes an error',
    )
    return { toolCallId, result: part.content, isError: true, ...names }
  }
  if (part.status === 'validation_error') {
    losses.add(joinPointer(pointer, 'status'), 'UPP knows one kind of error')
  }
  const isError = part.status === 'success' ? {} : { isError: true }
  return { toolCallId, result: part.content, ...isError, ...names, ...metadataOf(part) }
}

/** Vendor data that came from UPP blocks goes back to them. */
function metadataOf(part: object): object {
  const { upp_metadata } = part as { upp_metadata?: object }
  return upp_metadata ? { metadata: upp_metadata } : {}
}
