import type { JsonObject } from '@skein/base'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import type {
  AssistantContent,
  DocumentBlock,
  ReasoningBlock,
  UserContent,
} from '../../contract/content.ts'
import { contentOf, type AssistantMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { documentSource, imageSource } from '../media-source.ts'
import { nativeOf } from '../native.ts'
import { droppedBlock, foreignReasoning } from '../replay-warning.ts'
import { orderedBlocks, resultText, safeToolCallId } from '../transcript.ts'
import { invalidRequest } from '../wire-error.ts'
import { optionsOf } from '../wire-options.ts'
import { API, toolCallIdRule, type AnthropicBlock } from './types.ts'

/** One message in the vendor's form; none when nothing of it can be said there. */
export function encodeMessage(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly JsonObject[] {
  const role = message.type === 'assistant' ? 'assistant' : 'user'
  const content = cached(encodeContent(message, provider, warnings), message, provider)
  return content.length > 0 ? [{ role, content }] : []
}

function encodeContent(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly AnthropicBlock[] {
  switch (message.type) {
    case 'user':
      return userBlocks(message.content.map((block) => encodeUserBlock(block, provider)))
    case 'assistant':
      return withoutLastThinking(encodeAssistant(message, provider, warnings).filter(isNotEmpty))
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, provider, warnings))
  }
}

/** The API rejects empty text blocks, which models do produce between other blocks. */
function isNotEmpty({ type, text }: AnthropicBlock): boolean {
  return type !== 'text' || text !== ''
}

/** A user who says nothing at all hears it from the API. */
function userBlocks(blocks: readonly AnthropicBlock[]): readonly AnthropicBlock[] {
  const kept = blocks.filter(isNotEmpty)
  return kept.length > 0 || blocks.length !== 1 ? kept : blocks
}

/** The API rejects thinking at the end, which an answer has that was cut off before it said anything. */
function withoutLastThinking(blocks: readonly AnthropicBlock[]): readonly AnthropicBlock[] {
  return blocks.slice(0, blocks.findLastIndex(({ type }) => !type.endsWith('thinking')) + 1)
}

/** `metadata.anthropic.cache_control` of a message marks the last block that can carry it. */
function cached(
  blocks: readonly AnthropicBlock[],
  { metadata }: Message,
  provider: string,
): readonly AnthropicBlock[] {
  const cache_control = metadata?.[provider]?.['cache_control']
  if (cache_control === undefined) return blocks
  const last = blocks.findLastIndex(({ type }) => !type.endsWith('thinking'))
  return blocks.map((block, index) => (index === last ? { cache_control, ...block } : block))
}

function encodeUserBlock(block: UserContent, provider: string): AnthropicBlock {
  const options = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...options }
    case 'image': {
      const { base64, url, mimeType } = imageSource(block)
      const source =
        url === undefined
          ? { type: 'base64', media_type: mimeType, data: base64 }
          : { type: 'url', url }
      return { type: 'image', source, ...options }
    }
    case 'document': {
      const { title } = block
      return {
        type: 'document',
        source: encodeDocument(block),
        ...(title !== undefined && { title }),
        ...options,
      }
    }
    default:
      throw invalidRequest(
        provider,
        `A ${block.type} block (${block.mimeType}) cannot be sent to ${provider}.`,
        'It takes text, images and documents.',
      )
  }
}

/** As base64 the API takes PDF alone; other text goes as text. */
function encodeDocument(block: DocumentBlock): JsonObject {
  const source = documentSource(block)
  if ('text' in source) return { type: 'text', media_type: 'text/plain', data: source.text }
  const { base64, url, mimeType } = source
  if (url !== undefined) return { type: 'url', url }
  if (!mimeType.startsWith('text/')) return { type: 'base64', media_type: mimeType, data: base64 }
  const data = new TextDecoder().decode(decodeLooseBase64(base64))
  return { type: 'text', media_type: 'text/plain', data }
}

function encodeAssistant(
  message: AssistantMessage,
  provider: string,
  warnings: Warning[],
): AnthropicBlock[] {
  const blocks: AnthropicBlock[] = []
  for (const { block, call } of orderedBlocks(message, provider)) {
    const encoded = call
      ? encodeCall(call, provider)
      : encodeAssistantBlock(block, provider, warnings)
    if (encoded) blocks.push(encoded)
  }
  return blocks
}

function encodeCall(call: ToolCall, provider: string): AnthropicBlock {
  return {
    type: 'tool_use',
    id: safeToolCallId(call.toolCallId, toolCallIdRule),
    name: call.toolName,
    input: call.arguments,
    ...extras(nativeOf(call.metadata, provider, API)),
    ...optionsOf(call.metadata, provider),
  }
}

/** What the vendor said beyond UPP; the UPP fields stand, so that an edited text is what is sent. */
function extras(native: JsonObject | undefined): JsonObject {
  const { type: _type, id: _id, name: _name, ...rest } = native ?? {}
  return rest
}

function encodeAssistantBlock(
  block: AssistantContent,
  provider: string,
  warnings: Warning[],
): AnthropicBlock | undefined {
  const native = nativeOf(block.metadata, provider, API)
  switch (block.type) {
    case 'text':
      return {
        type: 'text',
        text: block.text,
        ...extras(native),
        ...optionsOf(block.metadata, provider),
      }
    case 'reasoning':
      return encodeReasoning(block, native, warnings)
    case 'native':
      if (native) return native as AnthropicBlock // its `type` came with it
      break
    default:
  }
  warnings.push(droppedBlock(block, provider))
  return undefined
}

/** Only what the vendor signed itself can go back: a blank or foreign signature is refused. */
function encodeReasoning(
  { text }: ReasoningBlock,
  native: JsonObject | undefined,
  warnings: Warning[],
): AnthropicBlock | undefined {
  if (native?.['type'] === 'redacted_thinking') return native as AnthropicBlock
  if (native?.['signature']) return { ...native, type: 'thinking', thinking: text }
  warnings.push(foreignReasoning)
  return undefined
}

function encodeResult(result: ToolResult, provider: string, warnings: Warning[]): AnthropicBlock {
  const blocks = contentOf(result.result)
  const content =
    blocks.length > 0
      ? blocks.map((block) => encodeResultBlock(block, provider, warnings))
      : resultText(result.result)
  return {
    type: 'tool_result',
    tool_use_id: safeToolCallId(result.toolCallId, toolCallIdRule),
    ...(content !== '' && { content }),
    ...(result.isError === true && { is_error: true }),
    ...optionsOf(result.metadata, provider),
  }
}

/** A tool may return what the vendor cannot see; then the model is told so, and goes on. */
function encodeResultBlock(
  block: UserContent,
  provider: string,
  warnings: Warning[],
): AnthropicBlock {
  if (block.type === 'text' || block.type === 'image' || block.type === 'document') {
    return encodeUserBlock(block, provider)
  }
  const message = `The ${block.type} that a tool returned cannot be sent to ${provider}.`
  warnings.push({ code: 'unsupported_block', message })
  return { type: 'text', text: `[${block.mimeType}, ${block.data.length} bytes: not shown]` }
}
