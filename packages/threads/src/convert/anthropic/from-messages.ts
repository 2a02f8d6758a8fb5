import { sha256Hex } from '@skein/base'
import type { Converted } from '../../issue.ts'
import type { MessagePart, Thread, UserContent } from '../../types.ts'
import { ThreadBuilder, type ImportOptions } from '../bridge-build.ts'
import type {
  AnthropicBlock,
  AnthropicMediaBlock,
  AnthropicMessage,
  AnthropicRedactedBlock,
  AnthropicTextBlock,
  AnthropicThinkingBlock,
  AnthropicToolResultBlock,
  AnthropicToolUseBlock,
} from './types.ts'

/**
 * Anthropic messages as a thread. Nothing is lost: block fields without a name in a thread, and blocks of other kinds,
 * are kept with the part under `anthropic_block`.
 */
export function fromAnthropicMessages(
  messages: readonly AnthropicMessage[],
  options?: ImportOptions,
): Converted<Thread> {
  const builder = new ThreadBuilder(options)
  const names = new Map<string, string>()
  for (const { role, content } of messages) {
    if (role === 'assistant') {
      const blocks =
        typeof content === 'string' ? [{ type: 'text', text: content } as const] : content
      builder.response(blocks.map((block) => answerPart(block, names)))
    } else if (typeof content === 'string') {
      builder.user([{ part_kind: 'user-prompt', content }])
    } else {
      const parts = userParts(content, names)
      // Results alone continue the run; a person who adds words begins a new one.
      const isContinued = parts.every((part) => part.part_kind === 'tool-return')
      if (isContinued && parts.length > 0) builder.request(parts)
      else builder.user(parts)
    }
  }
  return { value: builder.build(), lost: [] }
}

function answerPart(block: AnthropicBlock, names: Map<string, string>): MessagePart {
  switch (block.type) {
    case 'text': {
      const { type: _, text, ...rest } = block as AnthropicTextBlock
      return { part_kind: 'text', content: text, ...extra(rest) }
    }
    case 'thinking': {
      const { type: _, thinking, signature, ...rest } = block as AnthropicThinkingBlock
      return {
        part_kind: 'thinking',
        content: thinking,
        signature,
        provider_name: 'anthropic',
        ...extra(rest),
      }
    }
    case 'redacted_thinking': {
      const { data } = block as AnthropicRedactedBlock
      return {
        part_kind: 'thinking',
        content: '',
        signature: data,
        provider_name: 'anthropic',
        thinking_id: 'redacted_thinking',
      }
    }
    case 'tool_use': {
      const { type: _, id, name, input, ...rest } = block as AnthropicToolUseBlock
      names.set(id, name)
      return {
        part_kind: 'tool-call',
        tool_name: name,
        tool_call_id: id,
        args: input,
        ...extra(rest),
      }
    }
    default:
      return { part_kind: 'anthropic-block', anthropic_block: block } as never
  }
}

/** Results are parts; everything between them is one prompt. */
function userParts(
  blocks: readonly AnthropicBlock[],
  names: ReadonlyMap<string, string>,
): MessagePart[] {
  const parts: MessagePart[] = []
  let items: UserContent[] = []
  const flush = () => {
    if (items.length > 0) parts.push({ part_kind: 'user-prompt', content: items })
    items = []
  }
  for (const block of blocks) {
    const item = contentItem(block)
    if (item !== undefined) {
      items.push(item)
      continue
    }
    flush()
    parts.push(
      block.type === 'tool_result'
        ? resultPart(block as AnthropicToolResultBlock, names)
        : otherPart(block),
    )
  }
  flush()
  return parts
}

function otherPart(block: AnthropicBlock): MessagePart {
  return { part_kind: 'anthropic-block', anthropic_block: block } as never
}

function resultPart(
  block: AnthropicToolResultBlock,
  names: ReadonlyMap<string, string>,
): MessagePart {
  const { type: _, tool_use_id, content, is_error, ...rest } = block
  const isPlain = typeof content === 'string' && is_error !== false
  // What a plain part cannot say again is kept: blocks as content, an absent one, a flag that is false.
  const kept = {
    ...(content === undefined && { content }),
    ...(is_error === false && { is_error }),
    ...rest,
  }
  return {
    part_kind: 'tool-return',
    tool_name: names.get(tool_use_id) ?? '',
    tool_call_id: tool_use_id,
    status: is_error ? 'error' : 'success',
    content: content ?? '',
    ...(isPlain ? extra(kept) : { anthropic_block: kept }),
  } as MessagePart
}

function contentItem(block: AnthropicBlock): UserContent | undefined {
  if (block.type === 'text') {
    const { type: _, text, ...rest } = block as AnthropicTextBlock
    return Object.keys(rest).length === 0
      ? text
      : { kind: 'text-content', content: text, ...extra(rest) }
  }
  if (block.type !== 'image' && block.type !== 'document') return undefined
  const { type, source, ...rest } = block as AnthropicMediaBlock
  const keys = Object.keys(source).length
  if (
    source.type === 'base64' &&
    keys === 3 &&
    source.media_type.startsWith('image/') === (type === 'image')
  ) {
    const { data, media_type } = source
    return {
      kind: 'binary',
      data,
      media_type,
      identifier: sha256Hex(data).slice(0, 6),
      ...extra(rest),
    }
  }
  if (source.type === 'url' && keys === 2) {
    const kind = type === 'image' ? 'image-url' : 'document-url'
    return { kind, url: source.url, identifier: sha256Hex(source.url).slice(0, 6), ...extra(rest) }
  }
  if (source.type === 'file' && keys === 2) {
    return {
      kind: 'uploaded-file',
      file_id: source.file_id,
      provider_name: 'anthropic',
      ...extra({ type, ...rest }),
    }
  }
  return undefined
}

function extra(fields: object): object {
  return Object.keys(fields).length === 0 ? {} : { anthropic_block: fields }
}
