/** Anthropic's Messages. */
import type { JsonObject } from '@skein/base'
import anthropic from '@skein/ai/anthropic'
import { expect } from 'vitest'
import { person, weather } from './requests.ts'
import { sse, type ErrorCase, type VendorAnswer, type VendorCase } from './vendor-case.ts'

const said = (...messages: JsonObject[]): JsonObject => ({ model: 'm', max_tokens: 4096, messages })
const user = (...content: JsonObject[]): JsonObject => ({ role: 'user', content })
const text = (value: string): JsonObject => ({ type: 'text', text: value })
const image = (source: JsonObject): JsonObject => said(user({ type: 'image', source }))
const png = { type: 'base64', media_type: 'image/png', data: 'AQI=' }
const document = (source: JsonObject, more: JsonObject = {}): JsonObject =>
  said(user({ type: 'document', source, ...more }))
const call = (id: string, city: string): JsonObject => ({
  type: 'tool_use',
  id,
  name: 'weather',
  input: { city },
})

const bodies: VendorCase['bodies'] = {
  text: said(user(text('Hello'))),
  system: { ...said(user(text('Hello'))), system: 'Be brief.' },
  params: { ...said(user(text('Hello'))), temperature: 0.5, unknown_key: { deep: [1, null] } },
  tools: {
    ...said(user(text('Weather?'))),
    tools: [
      {
        name: weather.name,
        description: weather.description,
        input_schema: weather.parameters,
      },
    ],
  },
  toolResults: said(
    user(text('Weather?')),
    {
      role: 'assistant',
      content: [text('Let me see.'), call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
    },
    user(
      { type: 'tool_result', tool_use_id: 'callOslo1', content: '{"sky":"grey"}' },
      { type: 'tool_result', tool_use_id: 'callRome2', content: 'No data.', is_error: true },
    ),
    user(text('And tomorrow?')),
  ),
  structure: {
    ...said(user(text('Who?'))),
    output_config: { format: { type: 'json_schema', schema: person } },
  },
  imageBase64: said(user(text('What is it?'), { type: 'image', source: png })),
  imageBytes: image(png),
  imageUrl: image({ type: 'url', url: 'https://x.test/a.png' }),
  documentBase64: document(
    { type: 'base64', media_type: 'application/pdf', data: 'AQI=' },
    { title: 'a.pdf' },
  ),
  documentUrl: document({ type: 'url', url: 'https://x.test/a.pdf' }),
  documentText: document({ type: 'text', media_type: 'text/plain', data: 'Once.' }),
  audio: 'refused',
  video: 'refused',
}

const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm-2026' }
const usage = { input_tokens: 3, output_tokens: 2 }

/** A block with its deltas, as a stream tells them. */
type Block = readonly [whole: JsonObject, start: JsonObject, ...deltas: JsonObject[]]

/** A whole answer and the stream that says the same. */
function answer(
  blocks: readonly Block[],
  stop_reason: string,
  more: JsonObject = {},
): VendorAnswer {
  const end = { stop_reason, stop_sequence: null, ...more }
  const empty = { ...head, content: [], stop_reason: null, stop_sequence: null }
  return {
    whole: { ...head, content: blocks.map(([whole]) => whole), usage, ...end },
    stream: sse(
      { type: 'message_start', message: { ...empty, usage: { ...usage, output_tokens: 1 } } },
      { type: 'ping' },
      ...blocks.flatMap(([, content_block, ...deltas], index) => [
        { type: 'content_block_start', index, content_block },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: end, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ),
  }
}

const says = (...pieces: string[]): Block => [
  text(pieces.join('')),
  text(''),
  ...pieces.map((piece) => ({ type: 'text_delta', text: piece })),
]
const calls = (whole: JsonObject, ...pieces: string[]): Block => [
  whole,
  { ...whole, input: {} },
  ...pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
]
const given = (block: JsonObject): Block => [block, block]

/** Blocks no one knows, signatures and callers go back verbatim, in their places. */
const thinking = { type: 'thinking', thinking: 'Hm', signature: 'sig' }
const future = { type: 'block_of_2027', payload: { a: [1, null] } }
const called = { ...call('callOslo1', 'Oslo'), caller: { type: 'direct' } }
const unknown: VendorCase['unknown'] = {
  ...answer(
    [
      [
        thinking,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'Hm' },
        { type: 'signature_delta', signature: 'sig' },
      ],
      given({ type: 'redacted_thinking', data: 'R' }),
      calls(called, '{"city":', '"Oslo"}'),
      given(future),
      says('Hi'),
    ],
    'tool_use',
    { brand_new: { a: [1] } },
  ),
  metadata: { id: 'msg_1', model: 'm-2026', brand_new: { a: [1] } },
  sentBack: {
    of: (body) => (body['messages'] as JsonObject[])[1]?.['content'],
    value: [thinking, { type: 'redacted_thinking', data: 'R' }, called, future, text('Hi')],
  },
}

const found = { type: 'web_search_tool_result', tool_use_id: 's', content: [{ url: 'https://x' }] }
const cited = { type: 'web_search_result_location', url: 'https://x' }
const native: VendorCase['native'] = {
  ...answer(
    [
      calls({ type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 1 } }, '{"q":1}'),
      given(found),
      [
        { ...text('Sunny.'), citations: [cited] },
        { ...text(''), citations: [] },
        { type: 'text_delta', text: 'Sunny.' },
        { type: 'citations_delta', citation: cited },
      ],
    ],
    'end_turn',
  ),
  tool: { type: 'web_search_20260318', name: 'web_search' },
  check: ({ response }) => {
    expect(response.text).toBe('Sunny.')
    const [use, result, said] = response.content
    expect(use).toMatchObject({ type: 'native', name: 'server_tool_use' })
    expect(use?.metadata?.['anthropic']).toMatchObject({ native: { input: { q: 1 } } })
    expect(result?.metadata?.['anthropic']).toMatchObject({ native: found })
    expect(said?.metadata?.['anthropic']).toMatchObject({ native: { citations: [cited] } })
  },
}

const failed = (
  name: string,
  status: number,
  type: string,
  message: string,
  code: ErrorCase['code'],
): ErrorCase => ({
  name,
  status,
  body: { type: 'error', error: { type, message }, request_id: 'req_1' },
  code,
  message,
})

export const anthropicCases: readonly VendorCase[] = [
  {
    name: 'anthropic',
    provider: 'anthropic',
    model: anthropic('m'),
    path: '/v1/messages',
    bodies,
    streamFields: { stream: true },
    systemOf: ({ system }) => system,
    answers: {
      text: answer([says('Hello', ' there')], 'end_turn'),
      calls: answer(
        [
          calls(call('callOslo1', 'Oslo'), '', '{"city":', '"Oslo"}'),
          calls(call('callRome2', 'Rome'), '{"city":"Rome"}'),
        ],
        'tool_use',
      ),
      empty: answer([], 'end_turn'),
      structure: answer([says('{"name":', '"Ada"}')], 'end_turn'),
      refusal: { ...answer([says('I can')], 'refusal'), text: 'I can', stopReason: 'refusal' },
    },
    unknown,
    native,
    errors: [
      failed('a bad request', 400, 'invalid_request_error', 'Bad field', 'INVALID_REQUEST'),
      failed('a bad key', 401, 'authentication_error', 'Bad key', 'AUTHENTICATION_FAILED'),
      failed('not allowed', 403, 'permission_error', 'No', 'AUTHENTICATION_FAILED'),
      failed('no such model', 404, 'not_found_error', 'No such model', 'MODEL_NOT_FOUND'),
      failed('too many bytes', 413, 'request_too_large', 'Too big', 'INVALID_REQUEST'),
      failed('too fast', 429, 'rate_limit_error', 'Slow down', 'RATE_LIMITED'),
      failed('no money', 402, 'billing_error', 'Pay first', 'QUOTA_EXCEEDED'),
      failed('down', 500, 'api_error', 'Down', 'PROVIDER_ERROR'),
      failed('overloaded', 529, 'overloaded_error', 'Overloaded', 'PROVIDER_ERROR'),
      failed(
        'too long',
        400,
        'invalid_request_error',
        'prompt is too long: 2 tokens > 1 maximum',
        'CONTEXT_LENGTH_EXCEEDED',
      ),
      failed(
        'filtered',
        400,
        'invalid_request_error',
        'Output blocked by content filtering policy',
        'CONTENT_FILTERED',
      ),
    ],
  },
]
