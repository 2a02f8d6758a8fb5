import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import {
  checkGrammar,
  contextOf,
  decodeStream,
  fold,
  requestOf,
} from '../../../test/wires/wire-cases.ts'
import { responsesDialect } from './types.ts'
import { openaiResponses } from './wire.ts'

// Events are written from the SDK's types (openai 7.53.0); none is recorded traffic.
const target = { provider: 'openai', modelId: 'm', dialect: responsesDialect }
const stream = (frames: JsonObject[], request = requestOf()) =>
  decodeStream(openaiResponses, frames, contextOf(target, request, openaiResponses))
const whole = (response: JsonObject, request = requestOf()) =>
  openaiResponses.decodeResponse(response, contextOf(target, request, openaiResponses))

const created = { type: 'response.created', response: { id: 'resp_1', model: 'gpt-x' } }
const usage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens: 6,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 16,
}
const completed = (output: JsonObject[] = [], rest: JsonObject = {}) => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'gpt-x', status: 'completed', output, usage, ...rest },
})
const added = (output_index: number, item: JsonObject) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const done = (output_index: number, item: JsonObject) => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
const textPart = (text: string, annotations: JsonObject[] = []) => ({
  type: 'output_text',
  text,
  annotations,
})
const message = (id: string, ...content: JsonObject[]) => ({
  type: 'message',
  id,
  role: 'assistant',
  status: 'completed',
  content,
})
const reasoning = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [
    { type: 'summary_text', text: 'First' },
    { type: 'summary_text', text: 'Second' },
  ],
  encrypted_content: 'gAAA',
}
const call = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'f',
  arguments: '{"a": 1}',
  status: 'completed',
  namespace: 'ns',
}
const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { query: 'q' } }
const output = [reasoning, message('msg_1', textPart('Hi'), textPart(' you')), search, call]

const events = [
  created,
  { type: 'response.in_progress', response: created.response },
  added(0, { type: 'reasoning', id: 'rs_1', summary: [] }),
  { type: 'response.reasoning_summary_part.added', output_index: 0, summary_index: 0 },
  {
    type: 'response.reasoning_summary_text.delta',
    output_index: 0,
    summary_index: 0,
    delta: 'Fir',
  },
  { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'st' },
  {
    type: 'response.reasoning_summary_text.delta',
    output_index: 0,
    summary_index: 1,
    delta: 'Second',
  },
  done(0, reasoning),
  added(1, { ...message('msg_1'), status: 'in_progress' }),
  { type: 'response.content_part.added', output_index: 1, content_index: 0, part: textPart('') },
  {
    type: 'response.output_text.delta',
    output_index: 1,
    content_index: 0,
    delta: 'H',
    obfuscation: 'zz',
  },
  { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'i' },
  { type: 'response.output_text.done', output_index: 1, content_index: 0, text: 'Hi' },
  { type: 'response.output_text.delta', output_index: 1, content_index: 1, delta: ' you' },
  done(1, output[1]!),
  added(2, { ...search, status: 'in_progress' }),
  { type: 'response.web_search_call.searching', output_index: 2, item_id: 'ws_1' },
  done(2, search),
  added(3, { ...call, arguments: '', status: 'in_progress' }),
  { type: 'response.function_call_arguments.delta', output_index: 3, delta: '{"a"' },
  { type: 'response.function_call_arguments.delta', output_index: 3, delta: ': 1}' },
  { type: 'response.function_call_arguments.done', output_index: 3, arguments: '{"a": 1}' },
  done(3, call),
  completed(output, { service_tier: 'flex', store: true, tools: [], temperature: 1 }),
]

describe('items', () => {
  test('all kinds, in order, verbatim', () => {
    const decoded = stream(events)
    checkGrammar(decoded)
    const { content, toolCalls, metadata, stop } = fold(decoded)
    expect(content.map((block) => ('text' in block ? block.text : block.type))).toEqual([
      'First\n\nSecond',
      'Hi',
      ' you',
      'native',
    ])
    expect(content[0]?.metadata?.['openai']).toEqual({ api: 'openai-responses', native: reasoning })
    expect(content[1]?.metadata?.['openai']).toEqual({
      api: 'openai-responses',
      native: { type: 'output_text', annotations: [] },
      item: { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
    })
    expect(content[3]).toMatchObject({ type: 'native', name: 'web_search_call' })
    expect(toolCalls).toEqual([
      {
        toolCallId: 'call_1',
        toolName: 'f',
        arguments: { a: 1 },
        metadata: { openai: { api: 'openai-responses', native: call } },
      },
    ])
    expect(metadata).toEqual({
      openai: {
        api: 'openai-responses',
        id: 'resp_1',
        model: 'gpt-x',
        status: 'completed',
        service_tier: 'flex',
        store: true,
      },
    })
    expect(stop).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'completed' })
    expect(stop?.usage).toMatchObject({
      inputTokens: 10,
      outputTokens: 6,
      totalTokens: 16,
      cacheReadTokens: 4,
      cacheWriteTokens: 2,
      reasoningTokens: 3,
    })
  })

  test('the whole response folds to the same message', () => {
    const { response } = events.at(-1) as { response: JsonObject }
    const decoded = whole(response)
    checkGrammar(decoded)
    expect(fold(decoded)).toEqual(fold(stream(events)))
  })

  test('a server that only sends the end is caught up on', () => {
    expect(fold(stream([completed(output)]))).toEqual(
      fold(stream([...events.slice(0, -1), completed(output)])),
    )
  })

  test('an end that repeats nothing leaves what was streamed', () => {
    const decoded = stream([
      created,
      { type: 'response.output_text.delta', item_id: 'm', content_index: 0, delta: 'Hi' },
      completed([]),
    ])
    checkGrammar(decoded)
    expect(fold(decoded).content).toMatchObject([{ type: 'text', text: 'Hi' }])
  })

  test('text behind a call keeps its place', () => {
    const decoded = whole(completed([call, message('m', textPart('after'))]).response)
    expect(fold(decoded).metadata?.['openai']?.['order']).toEqual(['call', 'block'])
  })

  test('a refusal', () => {
    const part = { type: 'refusal', refusal: 'No.' }
    const decoded = stream([
      created,
      added(0, message('m')),
      { type: 'response.content_part.added', output_index: 0, content_index: 0, part },
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'No.' },
      done(0, message('m', part)),
      completed([message('m', part)]),
    ])
    expect(fold(decoded)).toMatchObject({
      content: [{ type: 'text', text: 'No.' }],
      stop: { stopReason: 'refusal' },
    })
    expect(fold(decoded)).toEqual(fold(whole(completed([message('m', part)]).response)))
  })

  test('annotations stay with their text', () => {
    const citation = { type: 'url_citation', url: 'https://x.test', start_index: 0, end_index: 1 }
    const decoded = whole(completed([message('m', textPart('x', [citation]))]).response)
    expect(fold(decoded).content[0]?.metadata?.['openai']?.['native']).toEqual({
      type: 'output_text',
      annotations: [citation],
    })
  })

  test('a call without arguments gives one empty delta', () => {
    const empty = { ...call, arguments: '' }
    const decoded = stream([created, added(0, empty), done(0, empty), completed([empty])])
    const deltas = decoded.filter((event) => event.type === 'tool_call_delta')
    expect(deltas.map((event) => event.delta.argumentsJson)).toEqual([''])
  })

  test('custom tools: free text becomes { input }; cut off, it does not run', () => {
    const custom = { type: 'custom_tool_call', id: 'c', call_id: 'k', name: 'sql', input: 'a"\n' }
    const input = (delta: string) => ({
      type: 'response.custom_tool_call_input.delta',
      output_index: 0,
      delta,
    })
    const decoded = stream([
      created,
      added(0, { ...custom, input: '' }),
      input('a"'),
      input('\n'),
      done(0, custom),
      completed([custom]),
    ])
    expect(fold(decoded).toolCalls?.[0]?.arguments).toEqual({ input: 'a"\n' })
    const cut = { ...custom, status: 'incomplete' }
    const incomplete = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    expect(fold(whole({ output: [cut], ...incomplete })).toolCalls?.[0]).toMatchObject({
      invalidArguments: { text: '{"input":"a\\"\\n' },
    })
  })

  test('images with previews; a failed one is kept as a native block', () => {
    const image = {
      type: 'image_generation_call',
      id: 'ig',
      status: 'completed',
      output_format: 'webp',
    }
    const decoded = stream([
      created,
      added(0, { ...image, status: 'in_progress', result: null }),
      {
        type: 'response.image_generation_call.partial_image',
        output_index: 0,
        partial_image_b64: 'AQ==',
        partial_image_index: 0,
        output_format: 'webp',
      },
      done(0, { ...image, result: 'AQI=' }),
      completed([{ ...image, result: 'AQI=' }]),
    ])
    checkGrammar(decoded)
    expect(decoded.find((event) => event.type === 'image_delta')?.delta).toEqual({
      data: new Uint8Array([1]),
      mimeType: 'image/webp',
      isPartial: true,
    })
    expect(fold(decoded).content).toEqual([
      {
        type: 'image',
        source: { type: 'bytes', data: new Uint8Array([1, 2]) },
        mimeType: 'image/webp',
        metadata: { openai: { api: 'openai-responses', native: image } },
      },
    ])
    const failed = { ...image, status: 'failed', result: null }
    expect(fold(whole(completed([failed]).response)).content).toMatchObject([
      { type: 'native', name: 'image_generation_call' },
    ])
  })

  test('spoken answers', () => {
    const decoded = stream(
      [
        created,
        { type: 'response.audio.transcript.delta', delta: 'Hi' },
        { type: 'response.audio.delta', delta: 'AQI=' },
        { type: 'response.audio.done' },
        completed([]),
      ],
      requestOf({ params: { audio: { format: 'mp3' } } }),
    )
    checkGrammar(decoded)
    expect(fold(decoded).content).toMatchObject([
      {
        type: 'audio',
        data: new Uint8Array([1, 2]),
        mimeType: 'audio/mpeg',
        metadata: { openai: { native: { transcript: 'Hi' } } },
      },
    ])
  })

  test('items and events nobody knows yet are kept and passed over', () => {
    const future = { type: 'quantum_call', id: 'q', state: [1] }
    const decoded = stream([
      created,
      { type: 'response.quantum_call.collapsed', output_index: 0 },
      { type: 'constructor' },
      added(0, future),
      done(0, future),
      completed([future]),
    ])
    expect(fold(decoded).content).toEqual([
      {
        type: 'native',
        name: 'quantum_call',
        metadata: { openai: { api: 'openai-responses', native: future } },
      },
    ])
  })

  test('a wrapped structure is unwrapped', () => {
    const request = requestOf({ structure: { type: 'array' } })
    const decoded = whole(completed([message('m', textPart('{"value":[1]}'))]).response, request)
    expect(fold(decoded).content).toMatchObject([{ type: 'text', text: '[1]' }])
  })
})

describe('endings', () => {
  test.each([
    ['max_output_tokens', 'max_tokens'],
    ['content_filter', 'content_filter'],
    ['max_messages', 'other'],
    ['steered', 'other'],
  ])('incomplete because of %s', (reason, stopReason) => {
    const response = { status: 'incomplete', incomplete_details: { reason }, output: [], usage }
    const decoded = stream([created, { type: 'response.incomplete', response }])
    expect(fold(decoded).stop).toMatchObject({
      stopReason,
      rawStopReason: reason,
      usage: { totalTokens: 16 },
    })
  })

  test('a background response that is not done yet says so', () => {
    expect(fold(whole({ id: 'r', status: 'queued', output: [] })).stop).toMatchObject({
      stopReason: 'other',
      rawStopReason: 'queued',
    })
  })

  const failed = (error: JsonObject) => ({
    type: 'response.failed',
    response: { status: 'failed', error, output: [] },
  })

  test.each([
    ['server_error', failed({ code: 'server_error', message: 'm' }), 'PROVIDER_ERROR'],
    ['rate limit', failed({ code: 'rate_limit_exceeded', message: 'm' }), 'RATE_LIMITED'],
    ['policy', failed({ code: 'bio_policy', message: 'm' }), 'CONTENT_FILTERED'],
    ['no reason', { type: 'response.failed', response: { status: 'failed' } }, 'PROVIDER_ERROR'],
    ['cancelled', { type: 'response.cancelled', response: {} }, 'CANCELLED'],
    [
      'a flat error',
      { type: 'error', code: 'insufficient_quota', message: 'm', param: null },
      'QUOTA_EXCEEDED',
    ],
    [
      'a nested error',
      { type: 'error', error: { code: 'context_length_exceeded', message: 'm' } },
      'CONTEXT_LENGTH_EXCEEDED',
    ],
    ['an empty error', { type: 'error' }, 'PROVIDER_ERROR'],
    ['a cut stream', created, 'INVALID_RESPONSE'],
    ['wrong kinds', { type: 'response.completed', response: { output: 7, status: 7 } }, 'none'],
  ] as [string, JsonObject, string][])('%s', (_, event, code) => {
    if (code === 'none') return expect(() => stream([created, event])).not.toThrow()
    return expect(() => stream([created, event])).toThrow(
      expect.objectContaining({ code, provider: 'openai', modality: 'llm' }),
    )
  })

  test.each([
    ['an error body', { error: { message: 'no', code: 'model_not_found' } }, 'MODEL_NOT_FOUND'],
    ['no output', {}, 'INVALID_RESPONSE'],
    ['a failed one', { status: 'failed', error: { message: 'no' } }, 'PROVIDER_ERROR'],
    ['a list', [], 'INVALID_RESPONSE'],
  ])('whole: %s', (_, body, code) => {
    expect(() => whole(body as JsonObject)).toThrow(expect.objectContaining({ code }))
  })
})
