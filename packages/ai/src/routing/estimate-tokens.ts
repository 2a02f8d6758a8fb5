import type { ContentBlock } from '../contract/content.ts'
import type { Message } from '../contract/message.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import { resultText } from '../wires/transcript.ts'

/** A guess, for limits alone: a fourth of the characters that a request sends. Media count nothing. */
export function estimateTokens(request: AnyRequest): number {
  return Math.ceil(charactersOf(request) / 4)
}

function charactersOf(request: AnyRequest): number {
  if ('prompt' in request) return request.prompt.length
  if ('inputs' in request)
    return sum(request.inputs, (input) =>
      typeof input === 'string' ? input.length : ofBlock(input),
    )
  return (request.system?.length ?? 0) + sum(request.messages, ofMessage)
}

function ofMessage(message: Message): number {
  if (message.type === 'tool_result')
    return sum(message.results, ({ result }) => resultText(result).length)
  const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  const content: readonly ContentBlock[] = message.content
  return (
    sum(content, ofBlock) +
    sum(calls, (call) => JSON.stringify(call.arguments).length + call.toolName.length)
  )
}

function ofBlock(block: ContentBlock): number {
  if ('text' in block) return block.text.length
  return block.type === 'document' && block.source.type === 'text' ? block.source.data.length : 0
}

function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0)
}
