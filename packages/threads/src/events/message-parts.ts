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
 * The functions of this file convert the blocks of UPP messages to parts of a thread document. They are used
 * for the messages in events (`threadFromState`) and for lists of UPP messages (`fromUppMessages`). The UPP
 * fields `metadata` and `title`, which ThreadProtocol does not define, are stored on the part as
 * `upp_metadata` and `title`, so that they can be restored.
 */

type BlockOf<Type extends ContentBlockJSON['type']> = Extract<ContentBlockJSON, { type: Type }>
interface Extras {
  readonly title?: string
  readonly upp_metadata?: object
  readonly after?: readonly string[]
}

/** Returns the parts of an assistant message: its blocks, then its calls. */
export function assistantParts({ content, toolCalls }: AssistantMessageJSON): MessagePart[] {
  return [...content.map(blockPart), ...(toolCalls ?? []).map(callPart)]
}

/**
 * Converts the blocks of a user message to one prompt part. Reasoning blocks, vendor blocks and blocks of
 * unknown types cannot be in a prompt: they are left out, and `onLoss` is called with the index of each.
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
 * The conversion of each type of block to a part. A new block type does not compile until it has an entry
 * here.
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
  // A block of a later version of UPP has no entry: it is kept unchanged, like a vendor's own block.
  const convert = BLOCK_PARTS[block.type] ?? unknownPart
  return convert(block as never) as MessagePart // the record pairs each type with its own converter
}

function filePart(block: ImageBlockJSON | DocumentBlockJSON | MediaBlockJSON): object {
  return { part_kind: 'file', content: mediaContent(block), ...extrasOf(block) }
}

/**
 * Converts a block to a part whose kind is the block's type; all other fields stay unchanged. ThreadProtocol
 * does not define such kinds, but a document may contain them.
 */
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

/** Returns the fields of a block, call or result that UPP has and ThreadProtocol does not. */
export function extrasOf(source: { readonly metadata?: object; readonly title?: string }): Extras {
  return { title: source.title, upp_metadata: source.metadata }
}

/** Converts a UPP media block to the content object of a thread. */
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
