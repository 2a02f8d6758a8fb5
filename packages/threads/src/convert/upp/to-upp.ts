import {
  type ContentBlockJSON,
  isPlainObject,
  type JsonObject,
  type MessageJSON,
  type MetadataJSON,
  type NativeBlockJSON,
  type ToolCallJSON,
  type ToolResultJSON,
  tryParseJson,
} from '@skein/base'
import { type Converted, joinPointer } from '../../issue.ts'
import type { Thread } from '../../document/thread.ts'
import type { MessagePart, UserPromptPart } from '../../document/part.ts'
import { Losses, type WalkedMessage, walkMessages } from '../bridge/walk.ts'
import { mediaBlock, mediaLosses, NO_PLACE } from '../bridge/media.ts'

const FORMAT = 'a UPP conversation'

/**
 * Converts a thread to UPP messages, which any UPP `llm()` accepts and which `@skein/ai` converts to the
 * request format of any vendor. Tool results come before a prompt of the same request, because vendors
 * require that order.
 */
export function toUppMessages(thread: Thread): Converted<MessageJSON[]> {
  const losses = new Losses()
  const messages: MessageJSON[] = []
  for (const walked of walkMessages(thread, losses, FORMAT)) {
    if (walked.kind === 'system') losses.add(walked.pointer, 'UPP has no system events')
    else if (walked.kind === 'response') messages.push(assistantMessage(walked, losses))
    else messages.push(...requestMessages(walked, losses))
  }
  return { value: messages, lost: losses.list }
}

type Spoken = Exclude<WalkedMessage, { kind: 'system' }>
type PartOf<Kind extends MessagePart['part_kind']> = Extract<MessagePart, { part_kind: Kind }>

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

function messageBase(
  { message, at, id, pointer }: Spoken,
  losses: Losses,
): { id: string; timestamp: string; metadata?: MetadataJSON } {
  losses.rest(message, pointer, CARRIED, NO_PLACE)
  const { message_id } = message as { message_id?: string } // our own field, which is not in the types
  return { id: message_id ?? id, timestamp: at, ...uppMetadataOf(message) }
}

function assistantMessage(walked: Spoken, losses: Losses): MessageJSON {
  const content: ContentBlockJSON[] = []
  const toolCalls: ToolCallJSON[] = []
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
  const fields = { ...messageBase(walked, losses), type: 'assistant', content } as const
  return toolCalls.length === 0 ? fields : { ...fields, toolCalls }
}

function assistantBlock(
  part: Exclude<MessagePart, PartOf<'tool-call'>>,
  pointer: string,
  losses: Losses,
): ContentBlockJSON | undefined {
  const fields = ['part_kind', 'content', 'upp_metadata']
  switch (part.part_kind) {
    case 'text':
      losses.rest(part, pointer, fields, NO_PLACE)
      return { type: 'text', text: part.content, ...uppMetadataOf(part) }
    case 'thinking':
      // The signature is not copied: it is valid only for the vendor that wrote it, and the code for that
      // vendor's format reads it from the metadata.
      losses.rest(part, pointer, fields, NO_PLACE)
      return { type: 'reasoning', text: part.content ?? '', ...uppMetadataOf(part) }
    case 'file': {
      const block = mediaBlock(part.content)
      // UPP §6.3: an assistant message must not contain documents or arbitrary bytes.
      if (!block || block.type === 'document' || block.type === 'binary') break
      losses.rest(part, pointer, fields, NO_PLACE)
      mediaLosses(part.content, joinPointer(pointer, 'content'), losses)
      return { ...block, ...uppMetadataOf(part) }
    }
    case 'user-prompt':
    case 'tool-return':
    case 'retry-prompt':
    case 'builtin-tool-call':
    case 'builtin-tool-return':
    case 'compaction':
    case 'speech':
    case 'tool-availability-delta':
      break
    default: {
      const block = nativeBlock(part satisfies never)
      if (block) return block
    }
  }
  losses.add(pointer, `UPP has no block for a ${part.part_kind} part in an answer`)
  return undefined
}

/** Restores a vendor's block that came from UPP; documents store it as a part of the kind `native`. */
function nativeBlock(part: unknown): NativeBlockJSON | undefined {
  if (!isPlainObject(part) || part['part_kind'] !== 'native') return undefined
  const { name, metadata } = part
  if (typeof name !== 'string' || !isPlainObject(metadata)) return undefined
  return { type: 'native', name, metadata: metadata as MetadataJSON } // `assistantParts` wrote this shape
}

function toolCall(part: PartOf<'tool-call'>, pointer: string, losses: Losses): ToolCallJSON {
  const { tool_call_id: toolCallId, tool_name: toolName, args } = part
  const fields = ['part_kind', 'tool_call_id', 'tool_name', 'args', 'upp_metadata']
  losses.rest(part, pointer, fields, NO_PLACE)
  if (typeof args === 'string' || args === null)
    losses.add(joinPointer(pointer, 'args'), 'UPP arguments are a value: their text is not kept')
  else if (!isPlainObject(args))
    losses.add(joinPointer(pointer, 'args'), 'UPP arguments are an object: they become text')
  let value: unknown = args
  if (args === null || args === undefined || args === '') value = {}
  else if (typeof args === 'string') value = tryParseJson(args)
  // Models sometimes write arguments that are not a JSON object. They are passed on as text, because an empty
  // object would hide the mistake from the model.
  const readable = isPlainObject(value)
    ? (value as JsonObject) // a thread document is JSON
    : { text: typeof args === 'string' ? args : JSON.stringify(args) }
  return { toolCallId, toolName, arguments: readable, ...uppMetadataOf(part) }
}

function* requestMessages(walked: Spoken, losses: Losses): Generator<MessageJSON, void, undefined> {
  const results: ToolResultJSON[] = []
  const content: ContentBlockJSON[] = []
  for (const [index, part] of walked.parts.entries()) {
    const pointer = joinPointer(walked.pointer, 'parts', index)
    switch (part.part_kind) {
      case 'user-prompt':
        content.push(...promptBlocks(part, pointer, losses))
        continue
      case 'tool-return':
        results.push(toolResult(part, pointer, losses))
        continue
      case 'retry-prompt':
        if (part.tool_name) results.push(toolResult(part, pointer, losses))
        else if (typeof part.content === 'string') {
          const reason = 'UPP knows no retry: it becomes text of the user'
          losses.add(joinPointer(pointer, 'part_kind'), reason)
          content.push({ type: 'text', text: part.content })
        } else break
        continue
      case 'text':
      case 'thinking':
      case 'file':
      case 'tool-call':
      case 'builtin-tool-call':
      case 'builtin-tool-return':
      case 'compaction':
      case 'speech':
      case 'tool-availability-delta':
        break
      default:
        part satisfies never
    }
    losses.add(pointer, `UPP has no block for a ${part.part_kind} part in a request`)
  }
  const fields = messageBase(walked, losses)
  if (results.length > 0) yield { ...fields, type: 'tool_result', results }
  const id = results.length > 0 ? `${fields.id}.user` : fields.id
  if (content.length > 0 || results.length === 0) yield { ...fields, id, type: 'user', content }
}

function promptBlocks(part: UserPromptPart, pointer: string, losses: Losses): ContentBlockJSON[] {
  losses.rest(part, pointer, ['part_kind', 'content'], NO_PLACE)
  if (typeof part.content === 'string') return [{ type: 'text', text: part.content }]
  const blocks = part.content.flatMap((item, index): ContentBlockJSON[] => {
    if (typeof item === 'string') return [{ type: 'text', text: item }]
    const place = joinPointer(pointer, 'content', index)
    if (item.kind === 'text-content') {
      losses.add(place, 'it becomes plain text: what accompanied the text is not kept')
      return [{ type: 'text', text: item.content }]
    }
    const block = mediaBlock(item)
    if (block) mediaLosses(item, place, losses)
    else losses.add(place, `UPP has no block for ${item.kind} content`)
    return block ? [block] : []
  })
  if (blocks.length === 1 && blocks[0]?.type === 'text')
    losses.add(joinPointer(pointer, 'content'), 'a list of one text becomes a text')
  return blocks
}

function toolResult(
  part: PartOf<'tool-return' | 'retry-prompt'>,
  pointer: string,
  losses: Losses,
): ToolResultJSON {
  const toolCallId = part.tool_call_id ?? ''
  const names = part.tool_name ? { toolName: part.tool_name } : {}
  const fields = ['part_kind', 'tool_call_id', 'tool_name', 'content', 'status', 'upp_metadata']
  losses.rest(part, pointer, fields, NO_PLACE)
  if (part.part_kind === 'retry-prompt') {
    const reason = 'UPP knows one kind of error: a retry becomes an error'
    losses.add(joinPointer(pointer, 'part_kind'), reason)
    return { toolCallId, result: part.content, isError: true, ...names }
  }
  if (part.status === 'validation_error')
    losses.add(joinPointer(pointer, 'status'), 'UPP knows one kind of error')
  const isError = part.status === 'success' ? {} : { isError: true }
  return { toolCallId, result: part.content, ...isError, ...names, ...uppMetadataOf(part) }
}

/** Returns the vendor data that came from UPP, so that it is written back to UPP. */
function uppMetadataOf(source: object): { metadata?: MetadataJSON } {
  const { upp_metadata } = source as { upp_metadata?: MetadataJSON } // our own field, which is not in the types
  return upp_metadata ? { metadata: upp_metadata } : {}
}
