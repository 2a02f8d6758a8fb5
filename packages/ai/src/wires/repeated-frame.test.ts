import type { JsonObject, SseEvent } from '@skein/base'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { contextOf, fold, frame } from '../../test/wires/wire-cases.ts'
import { AnthropicDecoder } from './anthropic-messages/stream.ts'
import type { AnthropicEvent } from './anthropic-messages/types.ts'
import { type ChatChunk } from './openai-chat/types.ts'
import { chatDialect } from './openai-chat/dialect.ts'
import { ChatDecoder } from './openai-chat/stream.ts'
import { GoogleDecoder } from './google-generate/stream.ts'
import { OllamaDecoder } from './ollama-chat/stream.ts'
import { ResponsesDecoder } from './openai-responses/stream.ts'
import { responsesDialect } from './openai-responses/types.ts'
import { isUPPError } from '../contract/error.ts'
import type { WireDecoder } from './wire.ts'
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
  for (const escaped of ['a "quoted" word', 'a\\b', 'line\n', '\\', '"', '\u0000'])
    expect(repeated.textOf(chunkOf({ content: escaped }))).toBe(escaped)
  for (const other of [
    chunkOf({ content: 'a' }).replace('"a"', '"\n"'),
    chunkOf({ content: 'a' }).replace('"a"', '"\\x"'),
    chunkOf({ content: 'a' }).replace('"a"', '"\\"'),
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
    ['{"choices":[{"delta":{"content":"a","content" : "a"}}]}', 'a'],
    ['{"choices":[{"delta":{"content":"a","con\\u0074ent":"a"}}]}', 'a'],
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

test('texts and numbers that nobody reads may differ', () => {
  const repeated = new RepeatedFrame('content', { texts: ['pad'], numbers: ['n', 'm'] })
  const frameOf = (content: string, pad: string, n: string): string =>
    `{"n": ${n},"list":[{"m":${n}},{"m":${n}}],"content":${JSON.stringify(content)},"pad":"${pad}"}`
  expect(repeated.remember(frameOf('a', 'x', '7'), 'a')).toBe(true)
  expect(repeated.textOf(frameOf('b', '', '0'))).toBe('b')
  expect(repeated.textOf(frameOf('b', 'long one', '123456'))).toBe('b')
  expect(repeated.textOf(frameOf('b', 'x', '1').replace(/}$/, '   }'))).toBe('b')
  for (const n of ['01', '-1', '1.5', '1e3', '', '"1"', 'null', '1 '])
    expect(repeated.textOf(frameOf('b', 'x', n)), n).toBeUndefined()
  for (const pad of ['"', '\\n', '\n', '","m":"'])
    expect(repeated.textOf(frameOf('b', pad, '1')), pad).toBeUndefined()
})

const any = (fields: JsonObject): string => JSON.stringify(fields)
const number = fc.constantFrom(0, 1, 12, 4096, -1, 1.5)
const pad = fc.constantFrom('', 'a', 'Zz9', '"', '\\', 'ä', '"obfuscation":"')
const spaces = fc.constantFrom('', ' ', '      ')

/** A decoder, the frames that open a stream of its format, and frames that may follow in any order. */
interface Stream {
  readonly create: () => WireDecoder
  readonly opening: readonly string[]
  readonly frames: fc.Arbitrary<string>
}

const responsesEvent = (type: string, fields: JsonObject): string => any({ type, ...fields })
const streams: Readonly<Record<string, Stream>> = {
  'openai-chat': {
    create: () => new ChatDecoder(contextOf(target)),
    opening: [],
    frames: fc.oneof(
      { weight: 4, arbitrary: chunk },
      {
        weight: 6,
        arbitrary: fc
          .tuple(word, pad, pad)
          .map(([content, obfuscation, p]) => chunkOf({ content }, {}, { obfuscation, p })),
      },
      fc.tuple(word, pad).map(([content, p]) => chunkOf({ content, obfuscation: p })),
      fc.tuple(word, pad).map(([content, p]) => chunkOf({ content }, { obfuscation: p })),
    ),
  },
  'openai-responses': {
    create: () =>
      new ResponsesDecoder(
        contextOf({ provider: 'openai', modelId: 'm', dialect: responsesDialect }),
      ),
    opening: [
      responsesEvent('response.created', { response: { id: 'r', model: 'm' } }),
      responsesEvent('response.output_item.added', {
        output_index: 0,
        item: { id: 'i', type: 'message' },
      }),
      responsesEvent('response.output_item.added', {
        output_index: 1,
        item: { id: 'f', type: 'function_call', call_id: 'c', name: 'n' },
      }),
    ],
    frames: fc
      .tuple(
        fc.constantFrom(
          'response.output_text.delta',
          'response.output_text.delta',
          'response.refusal.delta',
          'response.function_call_arguments.delta',
          'response.output_text.done',
          undefined,
        ),
        word,
        pad,
        number,
        fc.constantFrom(0, 0, 0, 1, 2),
        fc.constantFrom(0, 0, 0, 1),
      )
      .map(([type, delta, obfuscation, sequence_number, output_index, content_index]) =>
        any({ type, sequence_number, output_index, content_index, delta, obfuscation }),
      ),
  },
  'anthropic-messages': {
    create: () =>
      new AnthropicDecoder(
        contextOf({ provider: 'anthropic', modelId: 'c', dialect: { maxTokens: 1 } }),
      ),
    opening: [
      any({ type: 'message_start', message: { id: 'm', model: 'c', usage: {} } }),
      any({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      any({ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }),
      any({ type: 'content_block_start', index: 2, content_block: { type: 'thinking' } }),
    ],
    frames: fc
      .tuple(anthropicFrame, spaces)
      .map(([data, space]) => `${data.slice(0, -1)}${space}}`),
  },
  'google-generate': {
    create: () => new GoogleDecoder(contextOf({ provider: 'google', modelId: 'g', dialect: {} })),
    opening: [],
    frames: fc
      .tuple(
        word,
        number,
        fc.constantFrom({}, {}, {}, { thought: true }, { thoughtSignature: 's' }),
        fc.constantFrom({}, {}, {}, { finishReason: 'STOP' }, { tokenCount: 3 }, { index: 1 }),
        fc.constantFrom({}, {}, {}, { promptFeedback: {} }, { other: 1 }, { error: { code: 5 } }),
        fc.constantFrom('candidatesTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount'),
      )
      .map(([text, count, part, candidate, beside, counted]) =>
        any({
          candidates: [{ content: { parts: [{ text, ...part }], role: 'model' }, ...candidate }],
          usageMetadata: { promptTokenCount: 4, [counted]: count, totalTokenCount: count },
          ...beside,
        }).replaceAll('":', '": '),
      ),
  },
  'ollama-chat': {
    create: () => new OllamaDecoder(contextOf({ provider: 'ollama', modelId: 'o', dialect: {} })),
    opening: [],
    frames: fc
      .tuple(
        word,
        pad,
        fc.constantFrom({}, {}, {}, { thinking: 't' }, { thinking: '' }, { tool_calls: [{}] }),
        fc.constantFrom({}, {}, {}, {}, { logprobs: [1] }, { done: true }, { error: 'e' }),
      )
      .map(([content, created_at, own, beside]) =>
        any({ created_at, message: { role: 'a', content, ...own }, done: false, ...beside }),
      ),
  },
}

/** A frame in which something is missing, doubled or replaced. */
const broken = (frames: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      frames,
      fc.nat(400),
      fc.nat(3),
      fc.constantFrom('', '"', '\\', '0', ' ', '}', ',', '\\u00', '\\ud83e', '\n', 'ö'),
    )
    .map(([data, place, cut, put]) => {
      const at = place % (data.length + 1)
      return data.slice(0, at) + put + data.slice(at + cut)
    })

/** What a decoder gives for frames: the events, and the code of the error that ends them. */
function outcome({ create }: Stream, frames: readonly string[]): unknown {
  const decoder = create()
  const events: unknown[] = []
  try {
    for (const data of frames) events.push(...decoder.push(frame(data)))
    events.push(...decoder.end())
  } catch (error) {
    events.push(isUPPError(error) ? error.code : error)
  }
  return events.map((event) =>
    // A generated id differs from decoder to decoder.
    JSON.parse((JSON.stringify(event) ?? 'null').replace(/[0-9a-f-]{36}/g, 'id')),
  )
}

test.each(Object.entries(streams))(
  'any frames of %s, whole or broken, give what parsing each of them gives',
  (_name, stream) => {
    const frames = fc.oneof(
      { weight: 8, arbitrary: stream.frames },
      { weight: 1, arbitrary: broken(stream.frames) },
    )
    fc.assert(
      fc.property(fc.array(frames, { maxLength: 30 }), (list) => {
        const all = [...stream.opening, ...list]
        // Frames that begin with ever more spaces are the same JSON and never repeat.
        const never = all.map((data, index) => ' '.repeat(index + 1) + data)
        expect(outcome(stream, all)).toEqual(outcome(stream, never))
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 400, seed: 5 },
    )
  },
)

/** Frames as vendors send them, of the same text with what differs beside it. */
const vendorFrames: Readonly<Record<string, (index: number) => string>> = {
  'openai-chat': (index) =>
    chunkOf({ content: ' word' }, {}, { usage: null, obfuscation: 'xY1'.repeat(index % 5) }),
  'openai-responses': (sequence_number) =>
    responsesEvent('response.output_text.delta', {
      sequence_number,
      item_id: 'i',
      output_index: 0,
      content_index: 0,
      delta: ' word',
      logprobs: [],
      obfuscation: 'a1B'.repeat(sequence_number % 5),
    }),
  'anthropic-messages': (index) =>
    delta(0, { type: 'text_delta', text: ' word' }).replace(/}$/, `${' '.repeat(index % 7)}}`),
  'google-generate': (index) =>
    `{"candidates": [{"content": {"parts": [{"text": " word"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 4,"candidatesTokenCount": ${index},"totalTokenCount": ${index + 4},"promptTokensDetails": [{"modality": "TEXT","tokenCount": 4}]},"modelVersion": "m","responseId": "r"}`,
  'ollama-chat': (index) =>
    any({
      model: 'm',
      created_at: new Date(index).toISOString(),
      message: { role: 'assistant', content: ' word' },
      done: false,
    }),
}

test.each(Object.entries(vendorFrames))(
  'frames of %s are parsed once or twice',
  (name, frameOf) => {
    const { create, opening } = streams[name]!
    const decoder = create()
    for (const data of opening) decoder.push(frame(data))
    const parse = vi.spyOn(JSON, 'parse')
    try {
      for (let index = 1; index <= 100; index++) {
        const text = decoder.push(frame(frameOf(index))).at(-1)
        expect(text).toMatchObject({ type: 'text_delta', delta: { text: ' word' } })
      }
      const frames = parse.mock.calls.filter(([text]) => text.startsWith('{'))
      expect(frames.length).toBeLessThanOrEqual(2)
    } finally {
      parse.mockRestore()
    }
  },
)
