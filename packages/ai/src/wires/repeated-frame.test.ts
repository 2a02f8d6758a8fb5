import type { JsonObject, SseEvent } from '@skein/base'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contextOf, fold, frame } from '../../test/wires/wire-cases.ts'
import { AnthropicDecoder } from './anthropic-messages/stream.ts'
import type { AnthropicEvent } from './anthropic-messages/types.ts'
import { type ChatChunk, chatDialect } from './openai-chat/types.ts'
import { ChatDecoder } from './openai-chat/stream.ts'
import { RepeatedFrame } from './repeated-frame.ts'

const target = { provider: 'openai', modelId: 'm', dialect: chatDialect }

const chunkOf = (delta: JsonObject, beside: JsonObject = {}, about: JsonObject = {}): string =>
  JSON.stringify({
    id: 'c',
    model: 'm',
    ...about,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...beside }],
  })

test('a repeated frame is recognised, and what differs is not', () => {
  const repeated = new RepeatedFrame('content')
  expect(repeated.textOf(chunkOf({ content: 'a' }))).toBeUndefined()
  repeated.remember(chunkOf({ content: 'a' }), 'a')
  expect(repeated.textOf(chunkOf({ content: ' wörd 🧵' }))).toBe(' wörd 🧵')
  expect(repeated.textOf(chunkOf({ content: '' }))).toBe('')
  for (const other of [
    chunkOf({ content: 'a "quoted" word' }),
    chunkOf({ content: 'a\\b' }),
    chunkOf({ content: 'line\n' }),
    chunkOf({ content: 'a' }, { finish_reason: 'stop' }),
    chunkOf({ content: 'a' }, { logprobs: { content: [] } }),
    chunkOf({ content: 'a', refusal: 'no' }),
    chunkOf({ content: 'a' }, {}, { id: 'd' }),
    chunkOf({ content: null }),
    chunkOf({ content: 'a' }).slice(0, -1),
    '{"choices":[]}',
    '',
  ])
    expect(repeated.textOf(other), other).toBeUndefined()
})

test('a frame whose text cannot be told from the rest is not remembered', () => {
  for (const [data, text] of [
    ['{"content":"x","choices":[{"delta":{"content":"a"}}]}', 'a'],
    ['{"choices":[{"delta":{"content":"a","content" : "b"}}]}', 'b'],
    ['{"choices":[{"delta":{"content":"a\\u0062"}}]}', 'ab'],
    ['{"choices":[{"delta":{"text":"a"}}]}', 'a'],
  ] as const) {
    const repeated = new RepeatedFrame('content')
    repeated.remember(data, text)
    expect(repeated.textOf(data)).toBeUndefined()
  }
})

test('frames that never repeat are given up', () => {
  const repeated = new RepeatedFrame('content')
  for (let i = 0; repeated.isLearning; i++) {
    expect(i).toBeLessThan(100)
    repeated.remember(chunkOf({ content: 'a' }, {}, { obfuscation: String(i) }), 'a')
  }
})

/** Streams in which anything may differ from chunk to chunk. */
const word = fc.constantFrom(
  'a',
  ' b',
  '',
  '"',
  '\\',
  '\n',
  '"content":"',
  'ö🧵',
  '\u2028',
  '\u0000',
)
const chunk = fc.oneof(
  { weight: 6, arbitrary: word.map((content) => chunkOf({ content })) },
  word.map((content) => chunkOf({ role: 'assistant', content })),
  word.map((content) => chunkOf({ content, reasoning_content: 'r' })),
  word.map((content) => chunkOf({ content, refusal: null })),
  word.map((content) => chunkOf({ content }, { logprobs: { content: [{ token: content }] } })),
  word.map((content) => chunkOf({ content }, {}, { usage: { prompt_tokens: 1 } })),
  word.map((content) => chunkOf({ content }, {}, { content: 'outside' })),
  fc.constant(
    chunkOf({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] }),
  ),
)

test('a decoder that recognises repeated frames gives what parsing each of them gives', () => {
  fc.assert(
    fc.property(fc.array(chunk, { minLength: 1, maxLength: 30 }), (chunks) => {
      const frames: SseEvent[] = [...chunks, chunkOf({}, { finish_reason: 'stop' })].map((data) =>
        frame(data),
      )
      const fast = new ChatDecoder(contextOf(target))
      const slow = new ChatDecoder(contextOf(target))
      const events = frames.flatMap((one) => fast.push(one))
      const expected = frames.flatMap((one) => slow.decode(JSON.parse(one.data) as ChatChunk))
      expect(events).toEqual(expected)
      events.push(...fast.end())
      expected.push(...slow.end())
      expect(fold(events)).toEqual(fold(expected))
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 500, seed: 3 },
  )
})

const delta = (index: number, fields: JsonObject): string =>
  JSON.stringify({ type: 'content_block_delta', index, delta: fields })
const anthropicFrame = fc.oneof(
  { weight: 6, arbitrary: word.map((text) => delta(0, { type: 'text_delta', text })) },
  { weight: 3, arbitrary: word.map((text) => delta(1, { type: 'text_delta', text })) },
  word.map((thinking) => delta(2, { type: 'thinking_delta', thinking })),
  word.map((text) => delta(0, { type: 'other_delta', text })),
  fc.constant('{"type":"ping"}'),
)

test('the same for Anthropic, with blocks in turns', () => {
  const block = (index: number, content_block: JsonObject): string =>
    JSON.stringify({ type: 'content_block_start', index, content_block })
  const opening = [
    JSON.stringify({ type: 'message_start', message: { id: 'm', model: 'c', usage: {} } }),
    block(0, { type: 'text', text: '' }),
    block(1, { type: 'text', text: '' }),
    block(2, { type: 'thinking', thinking: '' }),
  ]
  const context = contextOf({ provider: 'anthropic', modelId: 'c', dialect: { maxTokens: 1 } })
  fc.assert(
    fc.property(fc.array(anthropicFrame, { maxLength: 30 }), (frames) => {
      const all = [...opening, ...frames]
      const fast = new AnthropicDecoder(context)
      const slow = new AnthropicDecoder(context)
      expect(all.flatMap((data) => fast.push(frame(data)))).toEqual(
        all.flatMap((data) => slow.decode(JSON.parse(data) as AnthropicEvent)),
      )
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 500, seed: 4 },
  )
})
