import type { Clock, JsonValue } from '@skein/base'
import type { ContentBlock } from '../content.ts'
import type { EmbeddingRequest } from '../embedding.ts'
import type { StopReason } from '../event.ts'
import type { MessageFold } from '../fold-message.ts'
import type { ImageRequest } from '../image.ts'
import type { Message } from '../message.ts'
import type { LLMRequest } from '../provider.ts'
import { resultText } from '../wires/transcript.ts'
import type { SpanAttributes } from './tracer.ts'

/** What was asked, in the conventions' JSON. Media are named by kind and size, never spelled out. */
export function inputContent({ messages, system, tools }: LLMRequest): SpanAttributes {
  const definitions = tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    parameters,
  }))
  return {
    'gen_ai.input.messages': jsonText(messages.map(toMessage)),
    ...(system !== undefined && {
      'gen_ai.system_instructions': jsonText([{ type: 'text', content: system }]),
    }),
    ...(tools.length > 0 && { 'gen_ai.tool.definitions': jsonText(definitions) }),
  }
}

export function promptContent(request: EmbeddingRequest | ImageRequest): SpanAttributes {
  const parts =
    'prompt' in request
      ? [{ type: 'text', content: request.prompt }]
      : request.inputs.map((input) =>
          typeof input === 'string' ? { type: 'text', content: input } : toPart(input),
        )
  return { 'gen_ai.input.messages': jsonText([{ role: 'user', parts }]) }
}

/** What was answered, as far as it came. */
export function outputContent(fold: MessageFold, clock: Clock): SpanAttributes {
  // The message is only looked at, so it takes no id of the call's own.
  const message = toMessage(fold.message({ ids: () => 'telemetry', clock }))
  const reason = fold.stop ? finishReasons[fold.stop.stopReason] : 'error'
  return { 'gen_ai.output.messages': jsonText([{ ...message, finish_reason: reason }]) }
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_call',
  refusal: 'content_filter',
  content_filter: 'content_filter',
  pause: 'pause',
  other: 'other',
}

type Part = Readonly<Record<string, unknown>>

function toMessage(message: Message): { role: string; parts: readonly Part[] } {
  if (message.type === 'tool_result') {
    const parts = message.results.map(({ toolCallId, result }) => ({
      type: 'tool_call_response',
      id: toolCallId,
      response: typeof result === 'string' ? result : resultText(result),
    }))
    return { role: 'tool', parts }
  }
  const content: readonly ContentBlock[] = message.content
  const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  const parts = calls.map(({ toolCallId, toolName, arguments: args }) => ({
    type: 'tool_call',
    id: toolCallId,
    name: toolName,
    arguments: args,
  }))
  return { role: message.type, parts: [...content.map(toPart), ...parts] }
}

function toPart(block: ContentBlock): Part {
  switch (block.type) {
    case 'text':
    case 'reasoning':
      return { type: block.type, content: block.text }
    case 'image':
    case 'document': {
      const { source, mimeType } = block
      if (source.type === 'url')
        return { type: 'uri', modality: block.type, mime_type: mimeType, uri: source.url }
      if (source.type === 'text') return { type: 'text', content: source.data }
      return { type: block.type, mime_type: mimeType, size: source.data.length }
    }
    case 'audio':
    case 'video':
    case 'binary':
      return { type: block.type, mime_type: block.mimeType, size: block.data.length }
    case 'native':
      return { type: 'native', name: block.name }
  }
}

/** JSON of anything, bytes and cycles included. */
export function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : resultText(value as JsonValue)
}
