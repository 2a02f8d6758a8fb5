import fc from 'fast-check'
import type { StreamEvent } from '../../src/contract/event.ts'
import { jsonObject, name, someText } from './arbitrary-message.ts'

interface Answer {
  readonly reasoning: readonly string[]
  readonly text: readonly string[]
  readonly calls: readonly { name: string; pieces: readonly string[] }[]
  readonly tokens: readonly [number, number, number]
  readonly isCut: boolean
}

/** A text cut anywhere. */
const pieces = fc.array(someText, { maxLength: 4 })
const argumentPieces = fc
  .tuple(jsonObject, fc.array(fc.nat({ max: 40 }), { maxLength: 3 }))
  .map(([args, cuts]) => cut(JSON.stringify(args), cuts))

function cut(text: string, at: readonly number[]): readonly string[] {
  const places = [...new Set(at.map((place) => place % (text.length + 1)))].sort((a, b) => a - b)
  let start = 0
  const parts = places.map((end) => text.slice(start, (start = end)))
  return [...parts, text.slice(start)].filter((part) => part !== '')
}

const answer: fc.Arbitrary<Answer> = fc.record({
  reasoning: pieces,
  text: pieces,
  calls: fc.array(fc.record({ name, pieces: argumentPieces }), { maxLength: 3 }),
  tokens: fc.tuple(fc.nat(99), fc.nat(99), fc.nat(9)),
  isCut: fc.boolean(),
})

/** Events of one answer, as every wire can say them: reasoning, text, calls. */
export const answerEvents: fc.Arbitrary<readonly StreamEvent[]> = answer.map(toEvents)

function toEvents({ reasoning, text, calls, tokens, isCut }: Answer): readonly StreamEvent[] {
  const events: StreamEvent[] = [{ type: 'message_start', index: 0, delta: {} }]
  let index = 0
  const block = (
    delta: Extract<StreamEvent, { type: 'content_block_start' }>['delta'],
    deltas: readonly StreamEvent[],
  ): void => {
    events.push({ type: 'content_block_start', index, delta }, ...deltas)
    events.push({ type: 'content_block_stop', index, delta: {} })
    index++
  }
  if (reasoning.length > 0) {
    const deltas = reasoning.map((value): StreamEvent => ({
      type: 'reasoning_delta',
      index,
      delta: { text: value },
    }))
    block({ block: 'reasoning' }, deltas)
  }
  if (text.length > 0) {
    const deltas = text.map((value): StreamEvent => ({
      type: 'text_delta',
      index,
      delta: { text: value },
    }))
    block({ block: 'text' }, deltas)
  }
  calls.forEach((call, position) => {
    const told = { toolCallId: `call_${position}`, toolName: call.name }
    const deltas = call.pieces.map((argumentsJson): StreamEvent => ({
      type: 'tool_call_delta',
      index,
      delta: { ...told, argumentsJson },
    }))
    block({ block: 'tool_call', ...told }, deltas)
  })
  const [inputTokens, outputTokens, reasoningTokens] = tokens
  events.push({
    type: 'message_stop',
    index: 0,
    delta: {
      stopReason: isCut ? 'max_tokens' : calls.length > 0 ? 'tool_use' : 'end_turn',
      usage: {
        inputTokens,
        outputTokens,
        totalTokens: inputTokens + outputTokens,
        cacheReadTokens: Math.min(3, inputTokens),
        cacheWriteTokens: 0,
        reasoningTokens,
      },
    },
  })
  return events
}
