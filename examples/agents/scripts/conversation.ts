import type { LLMRequest, Message } from '@skein/ai'
import { emits, waits, type ScriptPart } from '@skein/ai/testing'

/** How a call of this turn ended. */
export interface CallResult {
  readonly isError: boolean
  readonly value: unknown
  readonly text: string
}

/** What a script looks at: the last words of the person, and what came of calls since. */
export interface Conversation {
  readonly text: string
  /** All that was said to the model, newest first. */
  readonly heard: readonly string[]
  result(toolName: string): CallResult | undefined
}

export function readConversation({ messages }: LLMRequest): Conversation {
  const heard = messages
    .flatMap((message) => (message.type === 'user' ? [message.text] : []))
    .toReversed()
  const since = messages.slice(messages.findLastIndex(({ type }) => type === 'user') + 1)
  const names = new Map(since.flatMap(callsOf))
  const results = new Map<string, CallResult>()
  for (const message of since)
    if (message.type === 'tool_result')
      for (const { toolCallId, result, isError = false } of message.results) {
        const text = typeof result === 'string' ? result : JSON.stringify(result)
        results.set(names.get(toolCallId) ?? '', { isError, value: parsed(result), text })
      }
  return { text: heard[0] ?? '', heard, result: (name) => results.get(name) }
}

function callsOf(message: Message): (readonly [id: string, name: string])[] {
  if (message.type !== 'assistant') return []
  return (message.toolCalls ?? []).map(({ toolCallId, toolName }) => [toolCallId, toolName])
}

/** Results come as values, or as JSON after a restart. */
function parsed(result: unknown): unknown {
  if (typeof result !== 'string') return result
  try {
    return JSON.parse(result)
  } catch {
    return result // a text
  }
}

/** The number of an order in a text, e.g. O-7. */
export function orderIn(text: string): string | undefined {
  const number = /\bo-?(\d+)\b/i.exec(text)?.[1]
  return number === undefined ? undefined : `O-${number}`
}

const PAUSE_MS = 15

/** Says a text one word after the other, slowly enough to be seen. */
export function speaks(text: string): readonly ScriptPart[] {
  const words = text.match(/\S+\s*/g) ?? []
  return [
    emits({ type: 'content_block_start', index: 0, delta: { block: 'text' } }),
    ...words.flatMap((word) => [
      emits({ type: 'text_delta', index: 0, delta: { text: word } }),
      waits(PAUSE_MS),
    ]),
    emits({ type: 'content_block_stop', index: 0, delta: {} }),
    { do: 'stop', usage: { outputTokens: words.length } },
  ]
}
