/** Responses: OpenAI's own, and the vendors that serve it too. */
import type { JsonObject } from '@skein/base'
import type { ModelReference } from '@skein/ai'
import azureOpenai from '@skein/ai/azure-openai'
import openai from '@skein/ai/openai'
import openrouter from '@skein/ai/openrouter'
import xai from '@skein/ai/xai'
import { expect } from 'vitest'
import { person, weather } from './requests.ts'
import {
  sse,
  type Answers,
  type ErrorCase,
  type VendorAnswer,
  type VendorCase,
} from './vendor-case.ts'

type Bodies = VendorCase['bodies']

const said = (...input: JsonObject[]): JsonObject => ({ model: 'm', input })
const user = (...content: JsonObject[]): JsonObject => ({ type: 'message', role: 'user', content })
const text = (value: string): JsonObject => ({ type: 'input_text', text: value })
const ask = (value: string): JsonObject => said(user(text(value)))
const image = (image_url: string): JsonObject => ({ type: 'input_image', image_url })
const { run: _, ...declared } = weather

const bodies: Bodies = {
  text: ask('Hello'),
  system: { ...ask('Hello'), instructions: 'Be brief.' },
  params: { ...ask('Hello'), temperature: 0.5, unknown_key: { deep: [1, null] } },
  tools: { ...ask('Weather?'), tools: [{ type: 'function', ...declared, strict: false }] },
  toolResults: said(
    user(text('Weather?')),
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', annotations: [], text: 'Let me see.' }],
    },
    { type: 'function_call', call_id: 'callOslo1', name: 'weather', arguments: '{"city":"Oslo"}' },
    { type: 'function_call', call_id: 'callRome2', name: 'weather', arguments: '{"city":"Rome"}' },
    { type: 'function_call_output', call_id: 'callOslo1', output: '{"sky":"grey"}' },
    { type: 'function_call_output', call_id: 'callRome2', output: 'Error: No data.' },
    user(text('And tomorrow?')),
  ),
  structure: {
    ...ask('Who?'),
    text: { format: { type: 'json_schema', name: 'answer', schema: person, strict: true } },
  },
  imageBase64: said(user(text('What is it?'), image('data:image/png;base64,AQI='))),
  imageBytes: said(user(image('data:image/png;base64,AQI='))),
  imageUrl: said(user(image('https://x.test/a.png'))),
  documentBase64: said(
    user({ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AQI=' }),
  ),
  documentUrl: said(user({ type: 'input_file', file_url: 'https://x.test/a.pdf' })),
  documentText: said(user(text('Once.'))),
  audio: 'refused',
  video: 'refused',
}

const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }

/** A whole response and the stream that says the same; `deltas` are events of items by position. */
function answer(
  output: readonly JsonObject[],
  deltas: readonly JsonObject[],
  rest: JsonObject = {},
): VendorAnswer {
  const whole = {
    id: 'resp_1',
    object: 'response',
    model: 'm-2026',
    status: 'completed',
    output,
    usage,
    ...rest,
  }
  const announced = ({ content: _content, ...item }: JsonObject): JsonObject => ({
    ...item,
    ...('arguments' in item && { arguments: '' }),
    status: 'in_progress',
  })
  const events = [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
    ...output.flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item: announced(item) },
      ...deltas.filter((delta) => delta['output_index'] === output_index),
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type: 'response.completed', response: whole },
  ]
  return { whole, stream: sse(...events.map((event, i) => ({ ...event, sequence_number: i }))) }
}

const message = (...content: JsonObject[]): JsonObject => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content,
})
const output = (value: string): JsonObject => ({
  type: 'output_text',
  text: value,
  annotations: [],
})
const textDelta = (delta: string): JsonObject => ({
  type: 'response.output_text.delta',
  output_index: 0,
  content_index: 0,
  delta,
})
const call = (id: string, city: string): JsonObject => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name: 'weather',
  arguments: `{"city":"${city}"}`,
  status: 'completed',
})

const answers: Answers = {
  text: answer([message(output('Hello there'))], [textDelta('Hello'), textDelta(' there')]),
  calls: answer(
    [call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
    [
      { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"city":' },
      { type: 'response.function_call_arguments.delta', output_index: 0, delta: '"Oslo"}' },
      {
        type: 'response.function_call_arguments.done',
        output_index: 1,
        arguments: '{"city":"Rome"}',
      },
    ],
  ),
  empty: answer([], []),
  structure: answer([message(output('{"name":"Ada"}'))], [textDelta('{"name":"Ada"}')]),
  refusal: {
    ...answer(
      [message({ type: 'refusal', refusal: 'I cannot.' })],
      [
        {
          type: 'response.content_part.added',
          output_index: 0,
          content_index: 0,
          part: { type: 'refusal', refusal: '' },
        },
        { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'I cannot.' },
      ],
    ),
    text: 'I cannot.',
    stopReason: 'refusal',
  },
}

/** Reasoning and items no one knows go back verbatim, in their places. */
const items = [
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA', brand_new: 1 },
  { ...message({ ...output('Hi'), brand_new: { a: [1] } }), phase: 'final_answer' },
  { type: 'quantum_call', id: 'q_1', fingerprint: 'opaque' },
  { ...call('callOslo1', 'Oslo'), namespace: 'sky' },
]
const unknown: VendorCase['unknown'] = {
  ...answer(items, [], { brand_new: { b: 2 } }),
  metadata: { id: 'resp_1', model: 'm-2026', status: 'completed', brand_new: { b: 2 } },
  sentBack: { of: ({ input }) => (input as JsonObject[]).slice(1, 5), value: items },
}

const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { query: 'q' } }
const citation = { type: 'url_citation', url: 'https://x.test', start_index: 0, end_index: 5 }
const native: NonNullable<VendorCase['native']> = {
  ...answer(
    [search, message({ type: 'output_text', text: 'Sunny.', annotations: [citation] })],
    [],
  ),
  tool: { type: 'web_search', search_context_size: 'low' },
  check: ({ response }) => {
    const [called, told] = response.content
    expect(called).toMatchObject({ type: 'native', name: 'web_search_call' })
    const metadata = (block: typeof called) => Object.values(block?.metadata ?? {})[0]
    expect(metadata(called)?.['native']).toEqual(search)
    expect(metadata(told)?.['native']).toEqual({ type: 'output_text', annotations: [citation] })
    expect(response.text).toBe('Sunny.')
  },
}

const error = (code: string | null, message: string): JsonObject => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
const errors: readonly ErrorCase[] = [
  {
    name: 'a bad request',
    status: 400,
    body: error(null, 'Bad field'),
    code: 'INVALID_REQUEST',
    message: 'Bad field',
  },
  {
    name: 'a bad key',
    status: 401,
    body: error('invalid_api_key', 'Bad key'),
    code: 'AUTHENTICATION_FAILED',
    message: 'Bad key',
  },
  {
    name: 'no such model',
    status: 400,
    body: error('model_not_found', 'No such model'),
    code: 'MODEL_NOT_FOUND',
    message: 'No such model',
  },
  {
    name: 'no money',
    status: 429,
    body: error('insufficient_quota', 'Pay first'),
    code: 'QUOTA_EXCEEDED',
    message: 'Pay first',
  },
  {
    name: 'a failure in the answer',
    status: 200,
    body: { status: 'failed', error: { code: 'server_error', message: 'Sorry' } },
    code: 'PROVIDER_ERROR',
    message: 'Sorry',
  },
  {
    name: 'too fast, told in the answer',
    status: 200,
    body: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'Slow' } },
    code: 'RATE_LIMITED',
    message: 'Slow',
  },
]

function responsesCase(model: ModelReference, deviations: Partial<Bodies> = {}): VendorCase {
  const provider = model.provider.name
  return {
    name: `${provider} (responses)`,
    provider,
    model,
    path: '/responses',
    bodies: { ...bodies, ...deviations },
    streamFields: { stream: true },
    systemOf: ({ instructions }) => instructions,
    answers,
    unknown,
    native,
    errors,
  }
}

export const openaiResponsesCases: readonly VendorCase[] = [
  responsesCase(openai('m')),
  responsesCase(azureOpenai('m')),
  responsesCase(openrouter('m', { api: 'responses' }), {
    audio: said(user({ type: 'input_audio', input_audio: { data: 'AQI=', format: 'wav' } })),
    video: said(user({ type: 'input_video', video_url: 'data:video/mp4;base64,AQI=' })),
  }),
  responsesCase(xai('m', { api: 'responses' }), {
    documentBase64: 'refused',
    documentUrl: 'refused',
    documentText: 'refused',
  }),
]
