import type { JsonObject } from '@skein/base'
import type { ImageBlock, UserContent } from '../../contract/content.ts'
import { contentOf, type AssistantMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { imageSource } from '../media-source.ts'
import { nativeOf } from '../native.ts'
import { objectOf, without } from '../read-json.ts'
import { droppedBlock, foreignReasoning } from '../replay-warning.ts'
import { resultText } from '../transcript.ts'
import { invalidRequest } from '../wire-error.ts'
import { API, type OllamaMessage } from './types.ts'

export interface EncodeOptions {
  readonly provider: string
  /** The calls of the message before: what results answer. */
  readonly calls: readonly ToolCall[]
  readonly warnings: Warning[]
}

/** One message in the server's form; each tool result is a message of its own. */
export function encodeMessage(message: Message, options: EncodeOptions): readonly JsonObject[] {
  switch (message.type) {
    case 'user':
      return [{ role: 'user', ...encodeContent(message.content, options) }]
    case 'assistant':
      return encodeAssistant(message, options)
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, options))
  }
}

/** One text and a list of images is all a message can hold. */
function encodeContent(
  blocks: readonly UserContent[],
  { provider }: EncodeOptions,
): { content: string; images?: string[] } {
  const texts: string[] = []
  const images: string[] = []
  for (const block of blocks) {
    if (block.type === 'text') texts.push(block.text)
    else if (block.type === 'image') images.push(imageData(block, provider))
    else {
      throw invalidRequest(
        provider,
        `A ${block.type} block (${block.mimeType}) cannot be sent to ${provider}.`,
        'It takes text and images.',
      )
    }
  }
  return { content: texts.join('\n'), ...(images.length > 0 && { images }) }
}

function imageData(block: ImageBlock, provider: string): string {
  const { base64, url } = imageSource(block)
  if (base64 !== undefined) return base64
  throw invalidRequest(
    provider,
    `${provider} takes images as data, not by address (${url.slice(0, 200)}).`,
    'Download the image first and give its bytes or base64.',
  )
}

function encodeAssistant(
  message: AssistantMessage,
  { provider, warnings }: EncodeOptions,
): readonly OllamaMessage[] {
  const isOwn = message.metadata?.[provider]?.['api'] === API
  let content = ''
  let thinking = ''
  for (const block of message.content) {
    if (block.type === 'text') content += block.text
    else if (block.type === 'reasoning' && isOwn) thinking += block.text
    else if (block.type === 'reasoning') warnings.push(foreignReasoning)
    else warnings.push(droppedBlock(block, provider))
  }
  const calls = message.toolCalls?.map((call) => encodeCall(call, provider)) ?? []
  if (content === '' && thinking === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content,
      ...(thinking !== '' && { thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

const functionKey = new Set(['function'])

function encodeCall(call: ToolCall, provider: string): JsonObject {
  const native = nativeOf(call.metadata, provider, API) ?? {}
  return {
    ...without(native, functionKey),
    function: {
      ...objectOf(native['function']),
      name: call.toolName,
      arguments: call.arguments,
    },
  }
}

/** A result is matched by the name of its tool, and by id where the server gave one. */
function encodeResult(result: ToolResult, options: EncodeOptions): OllamaMessage {
  const { provider, calls } = options
  const call = calls.find(({ toolCallId }) => toolCallId === result.toolCallId)
  const id = nativeOf(call?.metadata, provider, API)?.['id']
  return {
    role: 'tool',
    ...encodeOutput(result, options),
    tool_name: call?.toolName ?? result.toolName ?? result.toolCallId,
    ...(id !== undefined && { tool_call_id: id }),
  }
}

/** The format has no mark for errors, so the text says it. */
function encodeOutput(
  { result, isError }: ToolResult,
  options: EncodeOptions,
): { content: string; images?: string[] } {
  const mark = isError === true ? 'Error: ' : ''
  const blocks = contentOf(result)
  if (blocks.length === 0) return { content: mark + resultText(result) }
  const shown = blocks.map((block) => showable(block, options))
  const { content, ...rest } = encodeContent(shown, options)
  return { content: mark + content, ...rest }
}

/** A tool may return what the model cannot see; then it is told so, and goes on. */
function showable(block: UserContent, { provider, warnings }: EncodeOptions): UserContent {
  if (block.type === 'text') return block
  if (block.type === 'document' && block.source.type === 'text') {
    return { type: 'text', text: block.source.data }
  }
  if (block.type === 'image' && imageSource(block).base64 !== undefined) return block
  const message = `The ${block.type} that a tool returned cannot be sent to ${provider}.`
  warnings.push({ code: 'unsupported_block', message })
  return { type: 'text', text: `[${block.type}, ${block.mimeType}: not shown]` }
}
