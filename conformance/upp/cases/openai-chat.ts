/** Chat Completions: OpenAI's own, and the vendors that speak it with deviations. */
import type { JsonObject } from '@skein/base'
import type { ModelReference } from '@skein/ai'
import azureOpenai from '@skein/ai/azure-openai'
import cerebras from '@skein/ai/cerebras'
import deepseek from '@skein/ai/deepseek'
import groq from '@skein/ai/groq'
import mistral from '@skein/ai/mistral'
import moonshot from '@skein/ai/moonshot'
import openai from '@skein/ai/openai'
import openaiCompatible from '@skein/ai/openai-compatible'
import openrouter from '@skein/ai/openrouter'
import xai from '@skein/ai/xai'
import { expect } from 'vitest'
import type { RequestName } from './requests.ts'
import { person, weather } from './requests.ts'
import {
  sse,
  type Answers,
  type ErrorCase,
  type VendorAnswer,
  type VendorCase,
} from './vendor-case.ts'

type Bodies = VendorCase['bodies']

const said = (...messages: JsonObject[]): JsonObject => ({ model: 'm', messages })
const user = (content: string | JsonObject[]): JsonObject => ({ role: 'user', content })
const part = (...parts: JsonObject[]): JsonObject => said(user(parts))
const call = (id: string, city: string): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'weather', arguments: `{"city":"${city}"}` },
})
const { run: _, ...declared } = weather
const jsonSchema = {
  type: 'json_schema',
  json_schema: { name: 'answer', schema: person, strict: true },
}
const image = (url: string): JsonObject => ({ type: 'image_url', image_url: { url } })
const pdf = 'data:application/pdf;base64,AQI='

const bodies: Bodies = {
  text: said(user('Hello')),
  system: said({ role: 'system', content: 'Be brief.' }, user('Hello')),
  params: { ...said(user('Hello')), temperature: 0.5, unknown_key: { deep: [1, null] } },
  tools: { ...said(user('Weather?')), tools: [{ type: 'function', function: declared }] },
  toolResults: said(
    user('Weather?'),
    {
      role: 'assistant',
      content: 'Let me see.',
      tool_calls: [call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
    },
    { role: 'tool', tool_call_id: 'callOslo1', content: '{"sky":"grey"}' },
    { role: 'tool', tool_call_id: 'callRome2', content: 'Error: No data.' },
    user('And tomorrow?'),
  ),
  structure: { ...said(user('Who?')), response_format: jsonSchema },
  imageBase64: part({ type: 'text', text: 'What is it?' }, image('data:image/png;base64,AQI=')),
  imageBytes: part(image('data:image/png;base64,AQI=')),
  imageUrl: part(image('https://x.test/a.png')),
  documentBase64: part({ type: 'file', file: { filename: 'a.pdf', file_data: pdf } }),
  documentUrl: 'refused',
  documentText: part({ type: 'text', text: 'Once.' }),
  audio: part({ type: 'input_audio', input_audio: { data: 'AQI=', format: 'wav' } }),
  video: 'refused',
}

const refusing = (...names: RequestName[]): Partial<Bodies> =>
  Object.fromEntries(names.map((name) => [name, 'refused']))
const noDocuments = refusing('documentBase64', 'documentUrl', 'documentText')
const imagesOnly = { ...noDocuments, ...refusing('audio') }
const textOnly = { ...imagesOnly, ...refusing('imageBase64', 'imageBytes', 'imageUrl') }

/** Vendors whose JSON mode takes no schema: it goes into the prompt. */
const toldSchema: Partial<Bodies> = {
  structure: {
    ...said(
      {
        role: 'system',
        content: `Answer with one JSON object that matches this JSON Schema, and nothing else:\n${JSON.stringify(person)}`,
      },
      user('Who?'),
    ),
    response_format: { type: 'json_object' },
  },
}

const head = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm-2026' }
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

/** A whole answer and the stream that says the same. */
function answer(
  message: JsonObject,
  deltas: readonly JsonObject[],
  finish_reason: string,
  rest: JsonObject = {},
): VendorAnswer {
  const chunk = { ...head, object: 'chat.completion.chunk' }
  const choice = (delta: JsonObject, reason: string | null = null): JsonObject => ({
    ...chunk,
    choices: [{ index: 0, delta, finish_reason: reason }],
  })
  return {
    whole: {
      ...head,
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
      usage,
      ...rest,
    },
    stream: `: keep-alive\n\n${sse(
      choice({ role: 'assistant', content: '' }),
      ...deltas.map((delta) => choice(delta)),
      choice({}, finish_reason),
      { ...chunk, choices: [], usage, ...rest },
      '[DONE]',
    )}`,
  }
}

const text = answer(
  { content: 'Hello there' },
  [{ content: 'Hello' }, { content: ' there' }],
  'stop',
)
const answers: Answers = {
  text,
  calls: answer(
    { content: null, tool_calls: [call('callOslo1', 'Oslo'), call('callRome2', 'Rome')] },
    [
      { tool_calls: [{ index: 0, ...call('callOslo1', 'Oslo') }] },
      {
        tool_calls: [
          {
            index: 1,
            id: 'callRome2',
            type: 'function',
            function: { name: 'weather', arguments: '{"city"' },
          },
        ],
      },
      { tool_calls: [{ index: 1, function: { arguments: ':"Rome"}' } }] },
    ],
    'tool_calls',
  ),
  empty: answer({ content: null }, [], 'stop'),
  structure: answer(
    { content: '{"name":"Ada"}' },
    [{ content: '{"name":' }, { content: '"Ada"}' }],
    'stop',
  ),
  refusal: {
    ...answer(
      { content: null, refusal: 'I cannot.' },
      [{ refusal: 'I can' }, { refusal: 'not.' }],
      'stop',
    ),
    text: 'I cannot.',
    stopReason: 'refusal',
  },
}

/** A call's unknown fields go back with it; those of the answer are kept for the caller. */
const signed = { ...call('callOslo1', 'Oslo'), extra_content: { vendor: { signature: 'x' } } }
const unknown: VendorCase['unknown'] = {
  ...answer(
    { content: 'Hi', brand_new: { a: [1] }, tool_calls: [signed] },
    [{ content: 'Hi', brand_new: { a: [1] } }, { tool_calls: [signed] }],
    'tool_calls',
    { system_fingerprint: 'fp' },
  ),
  metadata: { id: 'chatcmpl-1', model: 'm-2026', brand_new: { a: [1] }, system_fingerprint: 'fp' },
  sentBack: { of: sentCalls, value: [signed] },
}

function sentCalls(body: JsonObject): unknown {
  return (body['messages'] as JsonObject[]).find(({ role }) => role === 'assistant')?.['tool_calls']
}

const openaiError = (code: string | null, message: string, type = 'invalid_request_error') => ({
  error: { message, type, param: null, code },
})
const errors: readonly ErrorCase[] = [
  {
    name: 'a bad request',
    status: 400,
    body: openaiError(null, 'Bad field'),
    code: 'INVALID_REQUEST',
    message: 'Bad field',
  },
  {
    name: 'a bad key',
    status: 401,
    body: openaiError('invalid_api_key', 'Bad key'),
    code: 'AUTHENTICATION_FAILED',
    message: 'Bad key',
  },
  {
    name: 'no such model',
    status: 404,
    body: openaiError('model_not_found', 'No such model'),
    code: 'MODEL_NOT_FOUND',
    message: 'No such model',
  },
  {
    name: 'too fast',
    status: 429,
    body: openaiError('rate_limit_exceeded', 'Slow down', 'requests'),
    code: 'RATE_LIMITED',
    message: 'Slow down',
  },
  {
    name: 'no money',
    status: 429,
    body: openaiError('insufficient_quota', 'Pay first', 'insufficient_quota'),
    code: 'QUOTA_EXCEEDED',
    message: 'Pay first',
  },
  {
    name: 'too long',
    status: 400,
    body: openaiError('context_length_exceeded', 'Too long'),
    code: 'CONTEXT_LENGTH_EXCEEDED',
    message: 'Too long',
  },
  {
    name: 'filtered',
    status: 400,
    body: openaiError('content_filter', 'Filtered'),
    code: 'CONTENT_FILTERED',
    message: 'Filtered',
  },
  {
    name: 'down',
    status: 503,
    body: openaiError(null, 'Down', 'server_error'),
    code: 'PROVIDER_ERROR',
    message: 'Down',
  },
]

/** Of the format; what a vendor did appears in its answer's own fields. */
const native: NonNullable<VendorCase['native']> = {
  ...answer(
    { content: 'Sunny.', annotations: [{ type: 'url_citation', url: 'https://x.test' }] },
    [{ content: 'Sunny.' }, { annotations: [{ type: 'url_citation', url: 'https://x.test' }] }],
    'stop',
  ),
  tool: { type: 'web_search', depth: 2 },
  check: ({ response }) => {
    expect(response.text).toBe('Sunny.')
    const [metadata] = Object.values(response.metadata ?? {})
    expect(metadata?.['annotations']).toEqual([{ type: 'url_citation', url: 'https://x.test' }])
  },
}

interface Deviation {
  readonly name?: string
  readonly bodies?: Partial<Bodies>
  readonly streamFields?: JsonObject
  readonly unknown?: VendorCase['unknown']
  readonly errors?: readonly ErrorCase[]
}

function chatCase(model: ModelReference, deviation: Deviation = {}): VendorCase {
  const provider = model.provider.name
  return {
    name: deviation.name ?? provider,
    provider,
    model,
    path: '/chat/completions',
    bodies: { ...bodies, ...deviation.bodies },
    streamFields: deviation.streamFields ?? {
      stream: true,
      stream_options: { include_usage: true },
    },
    systemOf: ({ messages }) => (messages as JsonObject[])[0],
    answers,
    unknown: deviation.unknown ?? unknown,
    native,
    errors: [...errors, ...(deviation.errors ?? [])],
  }
}

/** OpenRouter wants reasoning details and annotations back as well. */
const details = [{ type: 'reasoning.text', text: 'Hm', signature: 'sig', index: 0 }]
const openrouterUnknown: VendorCase['unknown'] = {
  ...answer(
    { content: 'Hi', reasoning: 'Hm', reasoning_details: details, annotations: [{ file: 1 }] },
    [
      { reasoning: 'Hm', reasoning_details: [{ type: 'reasoning.text', text: 'Hm', index: 0 }] },
      { content: 'Hi', annotations: [{ file: 1 }] },
      { reasoning_details: [{ type: 'reasoning.text', signature: 'sig', index: 0 }] },
    ],
    'stop',
  ),
  metadata: { reasoning_details: details, annotations: [{ file: 1 }] },
  sentBack: {
    of: (body) => (body['messages'] as JsonObject[]).find(({ role }) => role === 'assistant'),
    value: {
      role: 'assistant',
      content: 'Hi',
      reasoning_details: details,
      annotations: [{ file: 1 }],
    },
  },
}

export const openaiChatCases: readonly VendorCase[] = [
  chatCase(openai('m', { api: 'chat' }), { name: 'openai (chat)' }),
  chatCase(azureOpenai('m', { api: 'chat' }), { name: 'azure-openai (chat)' }),
  chatCase(openaiCompatible({ name: 'local', baseUrl: 'https://local.test/v1' })('m'), {
    name: 'openai-compatible',
  }),
  chatCase(groq('m'), { bodies: imagesOnly }),
  chatCase(xai('m'), { bodies: imagesOnly }),
  chatCase(cerebras('m'), { bodies: imagesOnly }),
  chatCase(deepseek('m'), {
    bodies: { ...textOnly, ...toldSchema },
    errors: [
      {
        name: 'no balance',
        status: 402,
        body: { error: { message: 'Insufficient Balance', type: 'unknown_error' } },
        code: 'QUOTA_EXCEEDED',
        message: 'Insufficient Balance',
      },
    ],
  }),
  chatCase(moonshot('m'), {
    bodies: {
      ...imagesOnly,
      video: part({ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AQI=' } }),
    },
  }),
  chatCase(mistral('m'), {
    bodies: {
      audio: part({ type: 'input_audio', input_audio: 'AQI=' }),
      documentBase64: part({ type: 'document_url', document_url: pdf, document_name: 'a.pdf' }),
      documentUrl: part({
        type: 'document_url',
        document_url: 'https://x.test/a.pdf',
        document_name: 'document.pdf',
      }),
    },
    streamFields: { stream: true },
    errors: [
      {
        name: 'a list of faults',
        status: 422,
        body: { detail: [{ loc: ['body', 'top_p'], msg: 'too much' }] },
        code: 'INVALID_REQUEST',
        message: 'body.top_p: too much',
      },
    ],
  }),
  chatCase(openrouter('m'), {
    bodies: {
      documentUrl: part({
        type: 'file',
        file: { filename: 'document.pdf', file_data: 'https://x.test/a.pdf' },
      }),
      video: part({ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AQI=' } }),
    },
    unknown: openrouterUnknown,
    errors: [
      {
        name: 'no credits',
        status: 402,
        body: { error: { code: 402, message: 'Insufficient credits' } },
        code: 'QUOTA_EXCEEDED',
        message: 'Insufficient credits',
      },
    ],
  }),
]
