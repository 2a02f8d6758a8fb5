import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '@skein/base'
import {
  checkGrammar,
  contextOf,
  decodeStream,
  fold,
  requestOf,
} from '../../../test/wires/wire-cases.ts'
import { anthropicMessages } from './wire.ts'

// Events are written from the API's documentation and SDK types (1.8.0); none is recorded traffic.
const target = { provider: 'anthropic', modelId: 'claude-x', dialect: { maxTokens: 4096 } }
const api = 'anthropic-messages'

const start = (message: JsonObject = {}): JsonObject => ({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x-1',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
    ...message,
  },
})
const opens = (index: number, content_block: JsonObject): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, delta: JsonObject): JsonObject => ({
  type: 'content_block_delta',
  index,
  delta,
})
const closes = (index: number): JsonObject => ({ type: 'content_block_stop', index })
const ends = (stop_reason = 'end_turn', more: JsonObject = {}, usage: JsonObject = {}) => [
  {
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null, ...more },
    usage: { output_tokens: 5, ...usage },
  },
  { type: 'message_stop' },
]
const stream = (frames: readonly JsonObject[], request = requestOf()) => {
  const context = contextOf(target, request, anthropicMessages)
  const events = decodeStream(anthropicMessages, frames, context)
  checkGrammar(events)
  return events
}

describe('a stream', () => {
  test('gives text as it comes, between ping events', () => {
    const events = stream([
      start(),
      { type: 'ping' },
      opens(0, { type: 'text', text: '', citations: null }),
      delta(0, { type: 'text_delta', text: 'Hel' }),
      { type: 'ping' },
      delta(0, { type: 'text_delta', text: 'lo' }),
      closes(0),
      ...ends(),
    ])
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'text_delta',
      'text_delta',
      'content_block_stop',
      'message_stop',
    ])
    expect(events[0]?.delta).toEqual({
      provider: 'anthropic',
      model: 'claude-x-1',
      id: 'msg_1',
    })
    expect(fold(events)).toMatchObject({
      content: [{ type: 'text', text: 'Hello' }],
      metadata: { anthropic: { api, id: 'msg_1', model: 'claude-x-1' } },
      stop: { stopReason: 'end_turn', rawStopReason: 'end_turn' },
    })
  })

  test('keeps thinking with its signature, also when its text is left out', () => {
    const { content } = fold(
      stream([
        start(),
        opens(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'Let me see.' }),
        delta(0, { type: 'signature_delta', signature: 'SIG-A' }),
        closes(0),
        opens(1, { type: 'thinking', thinking: '', signature: '' }),
        delta(1, { type: 'signature_delta', signature: 'SIG-B' }),
        closes(1),
        opens(2, { type: 'redacted_thinking', data: 'XYZ' }),
        closes(2),
        ...ends(),
      ]),
    )
    expect(content).toEqual([
      {
        type: 'reasoning',
        text: 'Let me see.',
        metadata: { anthropic: { api, native: { type: 'thinking', signature: 'SIG-A' } } },
      },
      {
        type: 'reasoning',
        text: '',
        metadata: { anthropic: { api, native: { type: 'thinking', signature: 'SIG-B' } } },
      },
      {
        type: 'reasoning',
        text: '',
        metadata: { anthropic: { api, native: { type: 'redacted_thinking', data: 'XYZ' } } },
      },
    ])
  })

  test('keeps calls among other blocks in their order', () => {
    const events = stream([
      start(),
      opens(0, { type: 'text', text: '' }),
      delta(0, { type: 'text_delta', text: 'First' }),
      closes(0),
      opens(1, { type: 'tool_use', id: 'toolu_1', name: 'add', input: {} }),
      delta(1, { type: 'input_json_delta', partial_json: '' }),
      delta(1, { type: 'input_json_delta', partial_json: '{"a":' }),
      delta(1, { type: 'input_json_delta', partial_json: '1}' }),
      closes(1),
      opens(2, { type: 'text', text: '' }),
      delta(2, { type: 'text_delta', text: 'then' }),
      closes(2),
      opens(3, { type: 'tool_use', id: 'toolu_2', name: 'now', input: {} }),
      closes(3),
      ...ends('tool_use'),
    ])
    const { toolCalls, metadata, stop } = fold(events)
    expect(toolCalls).toEqual([
      { toolCallId: 'toolu_1', toolName: 'add', arguments: { a: 1 } },
      { toolCallId: 'toolu_2', toolName: 'now', arguments: {} },
    ])
    expect(metadata?.['anthropic']?.['order']).toEqual(['block', 'call', 'block', 'call'])
    expect(stop?.stopReason).toBe('tool_use')
    // A call without arguments still has a delta.
    expect(
      events.filter(({ type, index }) => type === 'tool_call_delta' && index === 3),
    ).toHaveLength(1)
  })

  test('an empty text block leaves the order of the others right', () => {
    const { metadata, content } = fold(
      stream([
        start(),
        opens(0, { type: 'text', text: '' }),
        closes(0),
        opens(1, { type: 'tool_use', id: 'toolu_1', name: 'now', input: {} }),
        closes(1),
        opens(2, { type: 'text', text: 'done' }),
        closes(2),
        ...ends('tool_use'),
      ]),
    )
    expect(content).toHaveLength(1)
    expect(metadata?.['anthropic']?.['order']).toEqual(['call', 'block'])
  })

  test('server tools and their results are native blocks; citations stay with their text', () => {
    const { content, stop } = fold(
      stream([
        start(),
        opens(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
        delta(0, { type: 'input_json_delta', partial_json: '{"query":' }),
        delta(0, { type: 'input_json_delta', partial_json: '"sky"}' }),
        closes(0),
        opens(1, {
          type: 'web_search_tool_result',
          tool_use_id: 'srvtoolu_1',
          content: [{ type: 'web_search_result', url: 'https://x', encrypted_content: 'E' }],
        }),
        closes(1),
        opens(2, { type: 'text', text: '', citations: [] }),
        delta(2, { type: 'text_delta', text: 'Blue.' }),
        delta(2, { type: 'citations_delta', citation: { type: 'char_location', n: 1 } }),
        delta(2, { type: 'citations_delta', citation: { type: 'char_location', n: 2 } }),
        closes(2),
        opens(3, { type: 'compaction', content: null }),
        delta(3, { type: 'compaction_delta', content: 'short', encrypted_content: 'C' }),
        closes(3),
        ...ends('pause_turn'),
      ]),
    )
    expect(content).toEqual([
      {
        type: 'native',
        name: 'server_tool_use',
        metadata: {
          anthropic: {
            api,
            native: {
              type: 'server_tool_use',
              id: 'srvtoolu_1',
              name: 'web_search',
              input: { query: 'sky' },
            },
          },
        },
      },
      {
        type: 'native',
        name: 'web_search_tool_result',
        metadata: {
          anthropic: {
            api,
            native: {
              type: 'web_search_tool_result',
              tool_use_id: 'srvtoolu_1',
              content: [{ type: 'web_search_result', url: 'https://x', encrypted_content: 'E' }],
            },
          },
        },
      },
      {
        type: 'text',
        text: 'Blue.',
        metadata: {
          anthropic: {
            api,
            native: {
              type: 'text',
              citations: [
                { type: 'char_location', n: 1 },
                { type: 'char_location', n: 2 },
              ],
            },
          },
        },
      },
      {
        type: 'native',
        name: 'compaction',
        metadata: {
          anthropic: {
            api,
            native: { type: 'compaction', content: 'short', encrypted_content: 'C' },
          },
        },
      },
    ])
    expect(stop).toMatchObject({ stopReason: 'pause', rawStopReason: 'pause_turn' })
  })

  test('usage includes the cache, and message_delta restates it', () => {
    const { stop } = fold(
      stream([
        start({
          usage: {
            input_tokens: 10,
            cache_read_input_tokens: 100,
            cache_creation_input_tokens: 20,
            cache_creation: { ephemeral_5m_input_tokens: 15, ephemeral_1h_input_tokens: 5 },
            output_tokens: 1,
            service_tier: 'standard',
          },
        }),
        ...ends(
          'end_turn',
          {},
          {
            input_tokens: 30,
            cache_read_input_tokens: null,
            output_tokens: 50,
            output_tokens_details: { thinking_tokens: 40 },
            server_tool_use: { web_search_requests: 2 },
          },
        ),
      ]),
    )
    expect(stop?.usage).toMatchObject({
      inputTokens: 150,
      outputTokens: 50,
      totalTokens: 200,
      cacheReadTokens: 100,
      cacheWriteTokens: 20,
      cacheWriteTokensByTtl: { '5m': 15, '1h': 5 },
      reasoningTokens: 40,
      serverToolUse: { web_search_requests: 2 },
      raw: { service_tier: 'standard', input_tokens: 30 },
    })
  })

  test.each([
    ['end_turn', 'end_turn'],
    ['max_tokens', 'max_tokens'],
    ['stop_sequence', 'stop_sequence'],
    ['tool_use', 'tool_use'],
    ['pause_turn', 'pause'],
    ['refusal', 'refusal'],
    ['model_context_window_exceeded', 'context_window'],
    ['something_new', 'other'],
  ])('stop reason %s is %s', (raw, stopReason) => {
    const { stop, metadata } = fold(
      stream([start(), ...ends(raw, { stop_details: { type: 'refusal', category: 'bio' } })]),
    )
    expect(stop).toMatchObject({ stopReason, rawStopReason: raw })
    expect(metadata?.['anthropic']?.['stop_details']).toEqual({ type: 'refusal', category: 'bio' })
  })

  test('takes the wrapper off a structured answer whose root is no object', () => {
    const request = requestOf({ structure: { type: 'array', items: { type: 'number' } } })
    const { content } = fold(
      stream(
        [
          start(),
          opens(0, { type: 'text', text: '' }),
          delta(0, { type: 'text_delta', text: '{"val' }),
          delta(0, { type: 'text_delta', text: 'ue":[1,' }),
          delta(0, { type: 'text_delta', text: '2]}' }),
          closes(0),
          ...ends(),
        ],
        request,
      ),
    )
    expect(content).toEqual([{ type: 'text', text: '[1,2]' }])
  })

  test('keeps an answer in the format that the caller set beside a structure', () => {
    const own = { format: { type: 'json_schema', schema: { type: 'object' } } }
    const request = requestOf({ structure: { type: 'array' }, params: { output_config: own } })
    const text = '{"value":[1]}'
    const frames = [start(), opens(0, { type: 'text', text }), closes(0), ...ends()]
    expect(fold(stream(frames, request)).content).toEqual([{ type: 'text', text }])
  })
})

describe('a stream that fails', () => {
  const decode = (frames: readonly (JsonObject | string)[]) => () =>
    decodeStream(anthropicMessages, frames, contextOf(target))

  test.each([
    ['overloaded_error', 'PROVIDER_ERROR'],
    ['api_error', 'PROVIDER_ERROR'],
    ['rate_limit_error', 'RATE_LIMITED'],
    ['invalid_request_error', 'INVALID_REQUEST'],
  ])('%s inside it is %s', (type, code) => {
    const error = { type: 'error', error: { type, message: 'Sorry' }, request_id: 'req_7' }
    expect(decode([start(), error])).toThrow(
      expect.objectContaining({ code, vendorType: type, requestId: 'req_7', message: 'Sorry' }),
    )
  })

  test('one without message_stop is not an answer', () => {
    const frames = [start(), opens(0, { type: 'text', text: '' }), closes(0), ends()[0]!]
    expect(decode(frames)).toThrow(expect.objectContaining({ code: 'INVALID_RESPONSE' }))
  })

  test.each([
    ['text that is not JSON', ['{"type":']],
    ['a list', ['[]']],
    ['a delta of no block', [start(), delta(0, { type: 'text_delta', text: 'x' })]],
    ['a stop of no block', [start(), closes(4)]],
    ['a block before the message', [opens(0, { type: 'text', text: '' })]],
    ['an index of another kind', [start(), { ...opens(0, { type: 'text' }), index: 'length' }]],
    ['two messages', [start(), start()]],
  ])('%s is INVALID_RESPONSE', (_, frames) => {
    expect(decode(frames)).toThrow(expect.objectContaining({ code: 'INVALID_RESPONSE' }))
  })
})

// One path: whatever the blocks, a whole answer and a stream of it give the same message.
describe('a whole answer', () => {
  const text = fc.string({ maxLength: 12, unit: 'grapheme' })
  const block = fc.oneof(
    text.map((text) => ({ type: 'text', text, citations: null })),
    text.map((text) => ({ type: 'text', text, citations: [{ type: 'page_location', at: text }] })),
    fc.record({
      type: fc.constant('thinking'),
      thinking: text,
      signature: fc.string({ minLength: 1 }),
    }),
    fc.record({ type: fc.constant('redacted_thinking'), data: text }),
    fc.record({
      type: fc.constant('tool_use'),
      id: fc.uuid().map((id) => `toolu_${id}`),
      name: fc.constantFrom('add', 'now'),
      input: fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
      caller: fc.constant({ type: 'direct' }),
    }),
    fc.record({
      type: fc.constant('server_tool_use'),
      id: fc.constant('srv'),
      name: fc.constant('web_search'),
      input: fc.dictionary(text, text, { maxKeys: 2 }),
    }),
    fc.record({ type: fc.constant('mystery_block'), payload: fc.jsonValue({ maxDepth: 2 }) }),
  )
  const message = fc.record({
    content: fc.array(block, { maxLength: 6 }),
    stop_reason: fc.constantFrom('end_turn', 'tool_use', 'max_tokens', 'pause_turn'),
    usage: fc.record({ input_tokens: fc.nat(), output_tokens: fc.nat() }),
  })

  test('folds to the message that its stream folds to', () => {
    fc.assert(
      fc.property(message, fc.integer({ min: 1, max: 5 }), (answer, size) => {
        const body = { ...(start()['message'] as JsonObject), ...(answer as JsonObject) }
        const whole = anthropicMessages.decodeResponse(body, contextOf(target))
        checkGrammar(whole)
        expect(fold(whole)).toEqual(fold(stream(streamed(answer as JsonObject, size))))
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 150, seed: 7 },
    )
  })

  /** The answer as the API would stream it, in deltas of `size` characters. */
  function streamed({ content, stop_reason, usage }: JsonObject, size: number): JsonObject[] {
    const blocks = (content as JsonObject[]).flatMap((block, index) => [
      opens(index, { ...block, ...empty(block) }),
      ...deltas(block, size).map((piece) => delta(index, piece)),
      closes(index),
    ])
    return [
      start({ usage: { input_tokens: (usage as JsonObject)['input_tokens']!, output_tokens: 1 } }),
      ...blocks,
      { type: 'message_delta', delta: { stop_reason: stop_reason! }, usage: usage! },
      { type: 'message_stop' },
    ]
  }

  function empty({ type }: JsonObject): JsonObject {
    if (type === 'text') return { text: '', citations: null }
    if (type === 'thinking') return { thinking: '', signature: '' }
    return type === 'tool_use' || type === 'server_tool_use' ? { input: {} } : {}
  }

  function deltas(block: JsonObject, size: number): JsonObject[] {
    const pieces = (text: string): string[] => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    switch (block['type']) {
      case 'text': {
        const citations = (block['citations'] ?? []) as JsonObject[]
        return [
          ...pieces(block['text'] as string).map((text) => ({ type: 'text_delta', text })),
          ...citations.map((citation) => ({ type: 'citations_delta', citation })),
        ]
      }
      case 'thinking':
        return [
          ...pieces(block['thinking'] as string).map((thinking) => ({
            type: 'thinking_delta',
            thinking,
          })),
          { type: 'signature_delta', signature: block['signature']! },
        ]
      case 'tool_use':
      case 'server_tool_use':
        return pieces(JSON.stringify(block['input'])).map((partial_json) => ({
          type: 'input_json_delta',
          partial_json,
        }))
      default:
        return []
    }
  }

  test.each([
    ['a list', []],
    ['a message without content', { type: 'message' }],
    ['nothing', null],
  ])('%s is INVALID_RESPONSE', (_, body) => {
    expect(() => anthropicMessages.decodeResponse(body, contextOf(target))).toThrow(
      expect.objectContaining({ code: 'INVALID_RESPONSE' }),
    )
  })
})
