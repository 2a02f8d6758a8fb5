import { joinPointer, type Converted } from '../../issue.ts'
import type { MessagePart, Thread, UserContent } from '../../types.ts'
import { ThreadBuilder, type ImportOptions } from '../bridge-build.ts'
import { Losses } from '../bridge-losses.ts'
import { fromMediaBlock } from './media-blocks.ts'
import type {
  UppAssistantMessage,
  UppContentBlock,
  UppMessage,
  UppToolCall,
  UppToolResultMessage,
} from './types.ts'

/** UPP messages as a thread. Every field has a place: what UPP names and the protocol does not travels beside the part. */
export function fromUppMessages(
  messages: readonly UppMessage[],
  options?: ImportOptions,
): Converted<Thread> {
  const losses = new Losses()
  const builder = new ThreadBuilder(options)
  const names = new Map<string, string>()
  messages.forEach((message, index) => {
    const at = isoTime(message.timestamp)
    const fields = messageFields(message)
    if (message.type === 'user')
      builder.user(userParts(message.content, `/${index}`, losses), at, fields)
    else if (message.type === 'assistant') {
      for (const { toolCallId, toolName } of message.toolCalls ?? [])
        names.set(toolCallId, toolName)
      builder.response(assistantParts(message), at, fields)
    } else builder.request(resultParts(message, names), at, fields)
  })
  return { value: builder.build(), lost: losses.list }
}

/** The parts of an answer: its blocks, then its calls. */
export function assistantParts(message: UppAssistantMessage): MessagePart[] {
  return [...message.content.map(blockPart), ...(message.toolCalls ?? []).map(callPart)]
}

/** What a person's blocks say, as one prompt. */
export function userParts(
  blocks: readonly UppContentBlock[],
  pointer = '',
  losses: Losses = new Losses(),
): MessagePart[] {
  const items = blocks.flatMap((block, index): UserContent[] => {
    if (block.type === 'text') return [block.text]
    if (block.type !== 'reasoning') return [withExtras(fromMediaBlock(block), block) as UserContent]
    losses.add(joinPointer(pointer, 'content', index), 'a user turn has no thinking')
    return []
  })
  const [first] = items
  const content = items.length === 1 && typeof first === 'string' ? first : items
  return [{ part_kind: 'user-prompt', content }]
}

function resultParts(
  { results }: UppToolResultMessage,
  names: ReadonlyMap<string, string>,
): MessagePart[] {
  return results.map((entry) => {
    const { toolCallId, result, isError, toolName } = entry as typeof entry & { toolName?: string }
    const part: MessagePart = {
      part_kind: 'tool-return',
      tool_name: toolName ?? names.get(toolCallId) ?? '',
      tool_call_id: toolCallId,
      status: isError ? 'error' : 'success',
      content: result ?? null,
    }
    return withExtras(part, entry) as MessagePart
  })
}

function blockPart(block: UppContentBlock): MessagePart {
  switch (block.type) {
    case 'text':
      return withExtras({ part_kind: 'text', content: block.text }, block) as MessagePart
    case 'reasoning':
      return withExtras({ part_kind: 'thinking', content: block.text }, block) as MessagePart
    case 'image':
    case 'document':
    case 'audio':
    case 'video':
    case 'binary':
      return withExtras({ part_kind: 'file', content: fromMediaBlock(block) }, block) as MessagePart
    default: {
      // A vendor's own block, or one of a later version: kept whole, as a part kind that is not known here.
      const { type, ...fields } = block as { type: string }
      return { part_kind: type, ...fields } as unknown as MessagePart
    }
  }
}

function callPart(call: UppToolCall): MessagePart {
  const { toolCallId: tool_call_id, toolName: tool_name } = call
  const { invalidArguments, after } = call as {
    invalidArguments?: { text: string }
    after?: readonly string[]
  }
  const args = invalidArguments?.text ?? call.arguments
  return withExtras(
    { part_kind: 'tool-call', tool_name, tool_call_id, args, ...(after && { after }) },
    call,
  ) as MessagePart
}

function withExtras(part: object, source: object): object {
  const { metadata, title } = source as { metadata?: object; title?: string }
  return {
    ...part,
    ...(title !== undefined && { title }),
    ...(metadata && { upp_metadata: metadata }),
  }
}

function messageFields({ id, metadata }: UppMessage): object {
  return { message_id: id, ...(metadata && { upp_metadata: metadata }) }
}

function isoTime(timestamp: Date | string): string {
  return typeof timestamp === 'string' ? timestamp : timestamp.toISOString()
}
