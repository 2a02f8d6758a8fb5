/** Google's Interactions. */
import type { JsonObject } from '@skein/base'
import google from '@skein/ai/google'
import { expect } from 'vitest'
import { person, weather } from './requests.ts'
import { sse, type ErrorCase, type VendorAnswer, type VendorCase } from './vendor-case.ts'

const said = (...input: JsonObject[]): JsonObject => ({ model: 'm', input })
const user = (...content: JsonObject[]): JsonObject => ({ type: 'user_input', content })
const text = (value: string): JsonObject => ({ type: 'text', text: value })
const ask = (value: string): JsonObject => said(user(text(value)))
const output = (...content: JsonObject[]): JsonObject => ({ type: 'model_output', content })
const inline = (type: string, mime_type: string, data = 'AQI='): JsonObject => ({
  type,
  mime_type,
  data,
})
const call = (id: string, city: string): JsonObject => ({
  type: 'function_call',
  id,
  name: 'weather',
  arguments: { city },
})
const result = (
  call_id: string,
  value: JsonObject | string,
  more: JsonObject = {},
): JsonObject => ({
  type: 'function_result',
  call_id,
  name: 'weather',
  result: value,
  ...more,
})

const bodies: VendorCase['bodies'] = {
  text: ask('Hello'),
  system: { ...ask('Hello'), system_instruction: 'Be brief.' },
  params: {
    ...ask('Hello'),
    generation_config: { temperature: 0.5 },
    unknown_key: { deep: [1, null] },
  },
  tools: {
    ...ask('Weather?'),
    tools: [
      {
        type: 'function',
        name: weather.name,
        description: weather.description,
        parameters: weather.parameters as JsonObject,
      },
    ],
  },
  toolResults: said(
    user(text('Weather?')),
    output(text('Let me see.')),
    call('callOslo1', 'Oslo'),
    call('callRome2', 'Rome'),
    result('callOslo1', { sky: 'grey' }),
    result('callRome2', 'No data.', { is_error: true }),
    user(text('And tomorrow?')),
  ),
  structure: {
    ...ask('Who?'),
    response_format: {
      type: 'text',
      mime_type: 'application/json',
      schema: person as JsonObject,
    },
  },
  imageBase64: said(user(text('What is it?'), inline('image', 'image/png'))),
  imageBytes: said(user(inline('image', 'image/png'))),
  imageUrl: said(user({ type: 'image', mime_type: 'image/png', uri: 'https://x.test/a.png' })),
  documentBase64: said(user(inline('document', 'application/pdf'))),
  documentUrl: said(
    user({ type: 'document', mime_type: 'application/pdf', uri: 'https://x.test/a.pdf' }),
  ),
  documentText: said(user(inline('document', 'text/plain', 'T25jZS4='))),
  audio: said(user(inline('audio', 'audio/wav'))),
  video: said(user(inline('video', 'video/mp4'))),
}

const usage = { total_input_tokens: 3, total_output_tokens: 2, total_tokens: 5 }
const head = { id: 'i1', model: 'm-2026', object: 'interaction' }

type Event = readonly [event_type: string, fields: JsonObject]

/** A whole answer and the stream that says the same. */
function answer(
  steps: readonly JsonObject[],
  events: readonly Event[],
  { status = 'completed', ...more }: JsonObject = {},
): VendorAnswer {
  const interaction = { ...head, status, usage, ...more }
  return {
    whole: { ...interaction, steps: [user(text('Asked.')), ...steps] },
    stream: sse(
      { event_type: 'interaction.created', interaction: { ...head, status: 'in_progress' } },
      ...events.map(([event_type, fields]) => ({ event_type, ...fields })),
      { event_type: 'interaction.completed', interaction },
      '[DONE]',
    ),
  }
}

/** The events of one step: its start, its deltas, its end. */
function streamed(index: number, step: JsonObject, ...deltas: readonly JsonObject[]): Event[] {
  return [
    ['step.start', { index, step }],
    ...deltas.map((delta): Event => ['step.delta', { index, delta }]),
    ['step.stop', { index }],
  ]
}

const thought = { type: 'thought', signature: 'sig-1', summary: [text('Hm')] }
const annotations = [
  { type: 'url_citation', url: 'https://x.test', title: 'X', start_index: 0, end_index: 2 },
]
const search = {
  type: 'google_search_call',
  id: 's1',
  arguments: { queries: ['weather'] },
  signature: 'sig-2',
}
const found = { type: 'google_search_result', call_id: 's1', result: [{ title: 'X' }], signature: 'sig-3' } // prettier-ignore
const future = { type: 'step_of_2027', deep: [1, null] }
/** Signatures and unknown steps go back verbatim. */
const steps = [
  thought,
  search,
  found,
  output({ ...text('Hi'), annotations }),
  { ...call('callOslo1', 'Oslo'), signature: 'sig-4' },
  future,
  { type: 'thought', signature: 'sig-5' },
]
const beyond = { service_tier: 'flex', brand_new: { a: [1] } }

const failed = (
  name: string,
  status: number,
  code: string,
  message: string,
  expected: ErrorCase['code'],
): ErrorCase => ({
  name,
  status,
  body: { error: { code, message } },
  code: expected,
  message,
})

export const googleInteractionsCases: readonly VendorCase[] = [
  {
    name: 'google (interactions)',
    provider: 'google',
    model: google('m', { api: 'interactions' }),
    path: '/v1beta/interactions',
    bodies,
    streamFields: { stream: true },
    systemOf: ({ system_instruction }) => system_instruction,
    answers: {
      text: answer(
        [output(text('Hello there'))],
        streamed(0, { type: 'model_output' }, text('Hello'), text(' there')),
      ),
      calls: answer(
        [call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
        [
          ...streamed(0, call('callOslo1', 'Oslo')),
          ...streamed(
            1,
            { type: 'function_call', id: 'callRome2', name: 'weather', arguments: {} },
            { type: 'arguments_delta', arguments: '{"city":' },
            { type: 'arguments_delta', arguments: '"Rome"}' },
          ),
        ],
        { status: 'requires_action' },
      ),
      empty: answer([], []),
      structure: answer(
        [output(text('{"name":"Ada"}'))],
        streamed(0, { type: 'model_output' }, text('{"name":'), text('"Ada"}')),
      ),
      refusal: {
        ...answer(
          [{ ...output(text('I can')), error: { code: 3, message: 'SAFETY' } }],
          streamed(0, { type: 'model_output', error: { code: 3, message: 'SAFETY' } }, text('I can')), // prettier-ignore
        ),
        text: 'I can',
        stopReason: 'content_filter',
      },
    },
    unknown: {
      ...answer(
        steps,
        [
          ...streamed(
            0,
            { type: 'thought' },
            { type: 'thought_summary', content: text('Hm') },
            { type: 'thought_signature', signature: 'sig-1' },
          ),
          ...streamed(
            1,
            { type: 'google_search_call', id: 's1', arguments: {} },
            { type: 'google_search_call', arguments: { queries: ['weather'] }, signature: 'sig-2' },
          ),
          ...streamed(2, found),
          ...streamed(3, { type: 'model_output' }, text('Hi'), {
            type: 'text_annotation_delta',
            annotations,
          }),
          ...streamed(4, { ...call('callOslo1', 'Oslo'), signature: 'sig-4' }),
          ...streamed(5, future),
          ...streamed(6, { type: 'thought', signature: 'sig-5' }),
        ],
        { status: 'requires_action', ...beyond },
      ),
      metadata: { id: 'i1', model: 'm-2026', ...beyond },
      sentBack: {
        of: (body) => (body['input'] as JsonObject[]).slice(1, 1 + steps.length),
        value: steps,
      },
    },
    native: {
      ...answer(
        [
          { type: 'code_execution_call', id: 'x1', arguments: { code: '1+1' } },
          { type: 'code_execution_result', call_id: 'x1', result: '2' },
          output(text('Two.')),
        ],
        [
          ...streamed(0, { type: 'code_execution_call', id: 'x1', arguments: { code: '1+1' } }),
          ...streamed(
            1,
            { type: 'code_execution_result', call_id: 'x1' },
            { type: 'code_execution_result', result: '2' },
          ),
          ...streamed(2, output(text('Two.'))),
        ],
      ),
      tool: { type: 'code_execution' },
      check: ({ response }) => {
        expect(response.text).toBe('Two.')
        expect(response.content).toMatchObject([
          { type: 'native', name: 'code_execution_call' },
          {
            type: 'native',
            name: 'code_execution_result',
            metadata: { google: { native: { result: '2' } } },
          },
          { type: 'text' },
        ])
      },
    },
    errors: [
      failed('a bad request', 400, 'invalid_argument', 'Bad field', 'INVALID_REQUEST'),
      failed('a bad key', 400, 'invalid_argument', 'API key not valid.', 'AUTHENTICATION_FAILED'),
      failed('not allowed', 403, 'permission_denied', 'No', 'AUTHENTICATION_FAILED'),
      failed('no such model', 404, 'not_found', 'No such model', 'MODEL_NOT_FOUND'),
      failed('too fast', 429, 'resource_exhausted', 'Slow down', 'RATE_LIMITED'),
      failed('down', 503, 'unavailable', 'Overloaded', 'PROVIDER_ERROR'),
      failed(
        'too long',
        400,
        'invalid_argument',
        'The input token count (2) exceeds the maximum number of tokens allowed (1).',
        'CONTEXT_LENGTH_EXCEEDED',
      ),
      {
        name: 'a numeric code',
        status: 429,
        body: { error: { code: 429, message: 'Slow', status: 'RESOURCE_EXHAUSTED' } },
        code: 'RATE_LIMITED',
        message: 'Slow',
      },
    ],
  },
]
