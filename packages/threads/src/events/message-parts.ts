import {
  encodeBase64,
  sha256Hex,
  type AssistantMessageJSON,
  type ContentBlockJSON,
  type DocumentBlockJSON,
  type ImageBlockJSON,
  type MediaBlockJSON,
  type ToolCallJSON,
} from '@skein/base'
import type {
  BinaryContent,
  MessagePart,
  ToolCallPart,
  UrlContent,
  UserContent,
} from '../document/part.ts'

/**
 * The blocks of UPP messages as parts of a thread document. Events carry UPP messages, so the fold needs this as well
 * as the UPP bridge. What UPP names and ThreadProtocol does not (`metadata`, `title`) stands on the part under
 * `upp_metadata` and `title`, so that the way back finds it.
 */

type BlockOf<Type extends ContentBlockJSON['type']> = Extract<ContentBlockJSON, { type: Type }>
interface Extras {
  readonly title?: string
  readonly upp_metadata?: object
  readonly after?: readonly string[]
}

/** The parts of an answer: its blocks, then its calls. */
export function assistantParts({ content, toolCalls }: AssistantMessageJSON): MessagePart[] {
  return [...content.map(blockPart), ...(toolCalls ?? []).map(callPart)]
}

/**
 * The blocks of a user message as one prompt part. Reasoning and vendor blocks have no place in a prompt: they are left
 * out and their index is passed to `onLoss`.
 */
export function userParts(
  blocks: readonly ContentBlockJSON[],
  onLoss?: (index: number, reason: string) => void,
): MessagePart[] {
  const items = blocks.flatMap((block, index): UserContent[] => {
    switch (block.type) {
      case 'text':
        return [block.text]
      case 'image':
      case 'document':
      case 'audio':
      case 'video':
      case 'binary':
        return [{ ...mediaContent(block), ...extrasOf(block) }]
      case 'reasoning':
        onLoss?.(index, 'a user turn has no thinking')
        return []
      case 'native':
        onLoss?.(index, 'a user turn has no vendor blocks')
        return []
      default:
        block satisfies never
        onLoss?.(index, 'a block of a type that is not known here')
        return []
    }
  })
  const [first] = items
  const content = items.length === 1 && typeof first === 'string' ? first : items
  return [{ part_kind: 'user-prompt', content }]
}

/**
 * The part that each type of block becomes. Because this is a record, a new type does not compile until it has an
 * entry.
 */
const BLOCK_PARTS: {
  readonly [Type in ContentBlockJSON['type']]: (block: BlockOf<Type>) => object
} = {
  text: (block) => ({ part_kind: 'text', content: block.text, ...extrasOf(block) }),
  reasoning: (block) => ({ part_kind: 'thinking', content: block.text, ...extrasOf(block) }),
  image: filePart,
  document: filePart,
  audio: filePart,
  video: filePart,
  binary: filePart,
  native: unknownPart,
}

function blockPart(block: ContentBlockJSON): MessagePart {
  // A block of a later version of UPP has no entry: it is kept whole, like a vendor's own block.
  const convert = BLOCK_PARTS[block.type] ?? unknownPart
  return convert(block as never) as MessagePart // the record pairs each type with its own converter
}

function filePart(block: ImageBlockJSON | DocumentBlockJSON | MediaBlockJSON): object {
  return { part_kind: 'file', content: mediaContent(block), ...extrasOf(block) }
}

/** Every field as it is, under a part kind that ThreadProtocol does not name; documents keep such parts. */
function unknownPart({ type, ...fields }: ContentBlockJSON): object {
  return { part_kind: type, ...fields }
}

function callPart(call: ToolCallJSON): MessagePart {
  const { toolCallId: tool_call_id, toolName: tool_name, invalidArguments, after } = call
  const args = invalidArguments?.text ?? call.arguments
  const part: ToolCallPart & Extras = {
    part_kind: 'tool-call',
    tool_name,
    tool_call_id,
    args,
    after,
    ...extrasOf(call),
  }
  return part
}

/** The fields of a block, call or result that UPP has and ThreadProtocol does not. */
export function extrasOf(source: { readonly metadata?: object; readonly title?: string }): Extras {
  return { title: source.title, upp_metadata: source.metadata }
}

/** A UPP media block as the content object of a thread. */
export function mediaContent(
  block: ImageBlockJSON | DocumentBlockJSON | MediaBlockJSON,
): BinaryContent | UrlContent {
  const { mimeType } = block
  if (block.type !== 'image' && block.type !== 'document')
    return binary(block.data.$bytes, mimeType)
  const { source } = block
  switch (source.type) {
    case 'url': {
      const kind = block.type === 'image' ? 'image-url' : 'document-url'
      const identifier = sha256Hex(source.url).slice(0, 6)
      return { kind, url: source.url, media_type: mimeType, identifier }
    }
    case 'text':
      return binary(encodeBase64(new TextEncoder().encode(source.data)), mimeType)
    case 'bytes':
      return binary(source.data.$bytes, mimeType)
    case 'base64':
      return binary(source.data, mimeType)
    default:
      return source satisfies never
  }
}

function binary(data: string, media_type: string): BinaryContent {
  return { kind: 'binary', data, media_type, identifier: sha256Hex(data).slice(0, 6) }
}
