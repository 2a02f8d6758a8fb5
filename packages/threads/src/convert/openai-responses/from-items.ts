import { joinPointer, type Converted } from '../../issue.ts'
import type { MessagePart, Thread, UserContent } from '../../types.ts'
import { ThreadBuilder, type ImportOptions } from '../bridge-build.ts'
import { Losses } from '../bridge-losses.ts'
import { contentOfUrl } from '../bridge-media.ts'
import type {
  ResponsesContent,
  ResponsesFunctionCall,
  ResponsesFunctionOutput,
  ResponsesItem,
  ResponsesMessage,
  ResponsesReasoning,
} from './types.ts'

/**
 * Responses items as a thread. What the model wrote in a row is one response; fields that a part has no name for, and
 * items of other kinds, are kept with it under `openai_item`.
 */
export function fromResponsesItems(
  items: readonly ResponsesItem[],
  options?: ImportOptions,
): Converted<Thread> {
  const losses = new Losses()
  const builder = new ThreadBuilder(options)
  const names = new Map<string, string>()
  let answer: MessagePart[] = []
  let results: MessagePart[] = []
  const flush = () => {
    if (answer.length > 0) builder.response(answer)
    if (results.length > 0) builder.request(results)
    answer = []
    results = []
  }
  items.forEach((item, index) => {
    if (item.type === 'function_call_output') {
      results.push(outputPart(item as ResponsesFunctionOutput, names))
      return
    }
    // Results end the response before them.
    if (results.length > 0) flush()
    if (!isMessage(item)) {
      const part = itemPart(item)
      if (part.part_kind === 'tool-call') names.set(part.tool_call_id, part.tool_name)
      answer.push(part)
    } else if (item.role === 'assistant') answer.push(...textParts(item))
    else {
      flush()
      if (item.role === 'user') builder.user([promptPart(item, joinPointer('', index), losses)])
      else {
        const reason = 'instructions are configuration and are not stored in a thread'
        losses.add(joinPointer('', index), reason)
      }
    }
  })
  flush()
  return { value: builder.build(), lost: losses.list }
}

function isMessage(item: ResponsesItem): item is ResponsesMessage {
  return item.type === 'message' || (item.type === undefined && 'role' in item)
}

function itemPart(item: Exclude<ResponsesItem, ResponsesMessage>): MessagePart {
  if (item.type === 'reasoning') return thinkingPart(item as ResponsesReasoning)
  if (item.type !== 'function_call') return { part_kind: 'openai-item', openai_item: item } as never
  const { type: _, call_id, name, arguments: args, id, ...rest } = item as ResponsesFunctionCall
  const fields = { part_kind: 'tool-call', tool_name: name, tool_call_id: call_id, args } as const
  return { ...fields, ...(id !== undefined && { id }), ...extra('openai_item', rest) }
}

function thinkingPart(item: ResponsesReasoning): MessagePart {
  const { type: _, id, summary, encrypted_content, ...rest } = item
  // One summary is the part's text. Several have borders that a single text cannot show, so they are kept as they are.
  const isPlain =
    summary.length === 1 && Object.keys(summary[0]!).length === 2 && summary[0]!.text !== ''
  const kept = {
    ...(!isPlain && summary.length > 0 && { summary }),
    ...(encrypted_content === null && { encrypted_content }),
    ...rest,
  }
  return {
    part_kind: 'thinking',
    content: summary.map((entry) => entry.text).join('\n\n'),
    thinking_id: id,
    provider_name: 'openai',
    ...(encrypted_content != null && { signature: encrypted_content }),
    ...extra('openai_item', kept),
  }
}

/** A message of the model: one part if it is one plain text, else whole, so that nothing of its form is lost. */
function textParts(item: ResponsesMessage): MessagePart[] {
  const { type, role: _, content, id, ...rest } = item
  const [only] = typeof content === 'string' ? [] : content
  if (
    typeof content === 'string' ||
    content.length !== 1 ||
    only?.type !== 'output_text' ||
    type === undefined
  ) {
    return [{ part_kind: 'openai-item', openai_item: item } as never]
  }
  const { type: _text, text, annotations, ...more } = only
  if (Object.keys(more).length > 0)
    return [{ part_kind: 'openai-item', openai_item: item } as never]
  const notes = annotations?.length === 0 ? {} : { annotations: annotations ?? null }
  const named = id === undefined ? {} : { id }
  return [
    {
      part_kind: 'text',
      content: text,
      ...named,
      ...notes,
      ...extra('openai_item', rest),
    } as MessagePart,
  ]
}

function outputPart(
  item: ResponsesFunctionOutput,
  names: ReadonlyMap<string, string>,
): MessagePart {
  const { type: _, call_id, output, ...rest } = item
  const isText = typeof output === 'string'
  return {
    part_kind: 'tool-return',
    tool_name: names.get(call_id) ?? '',
    tool_call_id: call_id,
    status: 'success',
    content: output,
    ...(isText ? extra('openai_item', rest) : { openai_item: rest }),
  } as MessagePart
}

function promptPart(item: ResponsesMessage, pointer: string, losses: Losses): MessagePart {
  const { type: _, role: __, content, ...rest } = item
  if (typeof content === 'string')
    return { part_kind: 'user-prompt', content, ...extra('openai_item', rest) }
  const items = content.map((block, index) =>
    contentItem(block, joinPointer(pointer, 'content', index), losses),
  )
  const list = items.filter((entry) => entry !== undefined)
  return { part_kind: 'user-prompt', content: list, ...extra('openai_item', rest) }
}

function contentItem(
  block: ResponsesContent,
  pointer: string,
  losses: Losses,
): UserContent | undefined {
  if (block.type === 'input_text' && Object.keys(block).length === 2) return block.text
  if (block.type === 'input_image' && typeof block.image_url === 'string') {
    const { type: _, image_url, ...rest } = block
    const media = /^data:([^;,]+)/.exec(image_url)?.[1] ?? 'image'
    return { ...contentOfUrl(image_url, media), ...extra('openai_content', rest) }
  }
  if (block.type === 'input_file' && typeof block.file_url === 'string') {
    const { type: _, file_url, ...rest } = block
    return {
      ...contentOfUrl(file_url, 'application/octet-stream'),
      ...extra('openai_content', rest),
    }
  }
  if (
    block.type === 'input_file' &&
    typeof block.file_data === 'string' &&
    block.file_data.startsWith('data:')
  ) {
    const { type: _, file_data, ...rest } = block
    const media = /^data:([^;,]+)/.exec(file_data)?.[1] ?? 'application/octet-stream'
    return { ...contentOfUrl(file_data, media), ...extra('openai_content', rest) }
  }
  if ('file_id' in block && typeof block.file_id === 'string') {
    const { type, file_id, ...rest } = block
    return {
      kind: 'uploaded-file',
      file_id,
      provider_name: 'openai',
      ...extra('openai_content', { type, ...rest }),
    }
  }
  losses.add(pointer, `a thread has no content for ${block.type}`)
  return undefined
}

function extra(name: string, fields: object): object {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields }
}
