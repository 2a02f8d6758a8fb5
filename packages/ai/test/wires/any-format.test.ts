import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type JsonObject, NdjsonDecoder, SseDecoder, type SseEvent } from '@skein/base'
import { checkGrammar, contextOf, fold, frame } from './wire-cases.ts'
import type { StreamEvent } from '../../src/contract/event.ts'
import { anthropicMessagesServer } from '../../src/wires/anthropic-messages/server.ts'
import { anthropicMessages } from '../../src/wires/anthropic-messages/wire.ts'
import { bedrockConverseServer } from '../../src/wires/bedrock-converse/server.ts'
import { bedrockConverse } from '../../src/wires/bedrock-converse/wire.ts'
import { googleGenerateServer } from '../../src/wires/google-generate/server.ts'
import { googleGenerate } from '../../src/wires/google-generate/wire.ts'
import { googleInteractionsServer } from '../../src/wires/google-interactions/server.ts'
import { googleInteractions } from '../../src/wires/google-interactions/wire.ts'
import { ollamaChatServer } from '../../src/wires/ollama-chat/server.ts'
import { ollamaChat } from '../../src/wires/ollama-chat/wire.ts'
import { chatDialect } from '../../src/wires/openai-chat/dialect.ts'
import { openaiChatServer } from '../../src/wires/openai-chat/server.ts'
import { openaiChat } from '../../src/wires/openai-chat/wire.ts'
import { responsesDialect } from '../../src/wires/openai-responses/types.ts'
import { openaiResponsesServer } from '../../src/wires/openai-responses/server.ts'
import { openaiResponses } from '../../src/wires/openai-responses/wire.ts'
import type { Wire } from '../../src/wires/wire.ts'
import type { WireServer } from '../../src/wires/wire-server.ts'

// An answer of any model can be served in any format: what all formats can say comes through.

interface Block {
  readonly start: Extract<StreamEvent, { type: 'content_block_start' }>['delta']
  readonly deltas: readonly ((index: number) => StreamEvent)[]
}

const piece = fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' })
const textBlock = (block: 'text' | 'reasoning'): fc.Arbitrary<Block> =>
  fc.array(piece, { maxLength: 3 }).map((pieces) => ({
    start: { block },
    deltas: pieces.map((text) => (index) => ({ type: `${block}_delta`, index, delta: { text } })),
  }))
const callBlock: fc.Arbitrary<Block> = fc
  .tuple(fc.uuid(), fc.dictionary(piece, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }))
  .map(([toolCallId, args]) => {
    const named = { toolCallId, toolName: 'f' }
    const json = JSON.stringify(args)
    return {
      start: { block: 'tool_call', ...named },
      deltas: [json.slice(0, 2), json.slice(2)].map((argumentsJson) => (index: number) => ({
        type: 'tool_call_delta',
        index,
        delta: { ...named, argumentsJson },
      })),
    }
  })
const nativeBlock: fc.Arbitrary<Block> = fc.constant({
  start: { block: 'native', name: 'thing_of_another_vendor' },
  deltas: [],
})

/** One block after the other: not every format can say which of two open ones a piece belongs to. */
const answer = fc
  .record({
    blocks: fc.array(fc.oneof(textBlock('text'), textBlock('reasoning'), callBlock, nativeBlock), {
      maxLength: 5,
    }),
    stopReason: fc.constantFrom('end_turn' as const, 'max_tokens' as const),
  })
  .map(({ blocks, stopReason }): StreamEvent[] => {
    const hasCalls = blocks.some(({ start }) => start.block === 'tool_call')
    const usage = { inputTokens: 7, outputTokens: 3, totalTokens: 10 }
    return [
      { type: 'message_start', index: 0, delta: {} },
      ...blocks.flatMap(({ start, deltas }, index): StreamEvent[] => [
        { type: 'content_block_start', index, delta: start },
        ...deltas.map((delta) => delta(index)),
        { type: 'content_block_stop', index, delta: {} },
      ]),
      {
        type: 'message_stop',
        index: 0,
        delta: {
          stopReason: stopReason === 'end_turn' && hasCalls ? 'tool_use' : stopReason,
          usage: { ...usage, cacheReadTokens: 0, cacheWriteTokens: 0 },
        },
      },
    ]
  })

const shared = (events: readonly StreamEvent[]): object => {
  const { content, toolCalls = [], stop } = fold(events)
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: toolCalls.map(({ toolName, arguments: args }) => [toolName, args]),
    stopReason: stop?.stopReason,
    usage: [stop?.usage.inputTokens, stop?.usage.outputTokens],
  }
}

const asked: JsonObject = { model: 'm', messages: [], contents: [], input: [], stream: true }
const route = { path: '/v1beta/models/m:streamGenerateContent', search: '?alt=sse' }

function frames(text: string, server: WireServer, wire: Wire<never>): SseEvent[] {
  const { framing } = wire
  if (server.binary && wire.createFrames)
    return [...wire.createFrames(1e9).push(server.binary.toBytes(text))]
  const bytes = new TextEncoder().encode(text)
  if (framing === 'sse') return new SseDecoder().push(bytes)
  return new NdjsonDecoder().push(bytes).map((line) => frame(line))
}

describe.each<[string, WireServer, Wire<never>, object]>([
  ['openai-chat', openaiChatServer, openaiChat, chatDialect],
  ['openai-responses', openaiResponsesServer, openaiResponses, responsesDialect],
  ['anthropic-messages', anthropicMessagesServer, anthropicMessages, { maxTokens: 1 }],
  ['google-generate', googleGenerateServer, googleGenerate, {}],
  ['bedrock-converse', bedrockConverseServer, bedrockConverse, {}],
  ['google-interactions', googleInteractionsServer, googleInteractions, {}],
  ['ollama-chat', ollamaChatServer, ollamaChat, {}],
])('%s', (_, server, wire, dialect) => {
  const place = server.name === 'bedrock-converse' ? { ...route, path: '/model/m/converse-stream' } : route // prettier-ignore
  const request = { ...server.decodeRequest(asked, place), includeUsage: true }
  const context = { request, id: '1', createdAt: 0 }
  const target = { provider: 'served', modelId: 'm', dialect: dialect as never }
  const runs = { numRuns: process.env['SKEIN_DEEP'] ? 3000 : 60, seed: 29 }

  test('streams the answer of any model', () => {
    fc.assert(
      fc.property(answer, (events) => {
        const encoder = server.createEncoder(context)
        const text = events.map((event) => encoder.push(event)).join('') + encoder.end()
        const decoder = wire.createDecoder(contextOf(target))
        const again = frames(text, server, wire).flatMap((each) => decoder.push(each))
        again.push(...decoder.end())
        checkGrammar(again)
        expect(shared(again)).toEqual(shared(events))
      }),
      runs,
    )
  })

  test('gives the answer of any model whole', () => {
    fc.assert(
      fc.property(answer, (events) => {
        const body = server.encodeResponse(events, context)
        const again = wire.decodeResponse(body, contextOf(target))
        expect(shared(again)).toEqual(shared(events))
      }),
      runs,
    )
  })
})
