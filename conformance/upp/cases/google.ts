/** Google's generateContent. */
import type { JsonObject } from '@skein/base'
import google from '@skein/ai/google'
import vertex from '@skein/ai/vertex'
import { expect } from 'vitest'
import { person, weather } from './requests.ts'
import { sse, type ErrorCase, type VendorAnswer, type VendorCase } from './vendor-case.ts'

const said = (...contents: JsonObject[]): JsonObject => ({ contents })
const user = (...parts: JsonObject[]): JsonObject => ({ role: 'user', parts })
const ask = (text: string): JsonObject => said(user({ text }))
const inline = (mimeType: string, data = 'AQI='): JsonObject => ({ inlineData: { mimeType, data } })
const file = (mimeType: string, fileUri: string): JsonObject => ({
  fileData: { mimeType, fileUri },
})
const call = (id: string, city: string): JsonObject => ({
  functionCall: { id, name: 'weather', args: { city } },
})
const result = (id: string, response: JsonObject): JsonObject => ({
  functionResponse: { id, name: 'weather', response },
})

const bodies: VendorCase['bodies'] = {
  text: ask('Hello'),
  system: { ...ask('Hello'), systemInstruction: { parts: [{ text: 'Be brief.' }] } },
  params: {
    ...ask('Hello'),
    generationConfig: { temperature: 0.5 },
    unknown_key: { deep: [1, null] },
  },
  tools: {
    ...ask('Weather?'),
    tools: [
      {
        functionDeclarations: [
          {
            name: weather.name,
            description: weather.description,
            parametersJsonSchema: weather.parameters,
          },
        ],
      },
    ],
  },
  toolResults: said(
    user({ text: 'Weather?' }),
    {
      role: 'model',
      parts: [{ text: 'Let me see.' }, call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
    },
    user(result('callOslo1', { sky: 'grey' }), result('callRome2', { error: 'No data.' })),
    user({ text: 'And tomorrow?' }),
  ),
  structure: {
    ...ask('Who?'),
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema: person },
  },
  imageBase64: said(user({ text: 'What is it?' }, inline('image/png'))),
  imageBytes: said(user(inline('image/png'))),
  imageUrl: said(user(file('image/png', 'https://x.test/a.png'))),
  documentBase64: said(user(inline('application/pdf'))),
  documentUrl: said(user(file('application/pdf', 'https://x.test/a.pdf'))),
  documentText: said(user(inline('text/plain', 'T25jZS4='))),
  audio: said(user(inline('audio/wav'))),
  video: said(user(inline('video/mp4'))),
}

const head = { modelVersion: 'm-2026', responseId: 'r1' }
const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }

/** A complete answer, and a stream with the same content: one frame for each list of parts. */
function answer(
  whole: readonly JsonObject[],
  frames: readonly (readonly JsonObject[])[],
  more: JsonObject = {},
): VendorAnswer {
  const frame = (parts: readonly JsonObject[], end: JsonObject = {}): JsonObject => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...end }],
    ...head,
  })
  const end = { finishReason: 'STOP', ...more }
  return {
    whole: { ...frame(whole, end), usageMetadata },
    stream: sse(...frames.map((parts) => frame(parts)), { ...frame([], end), usageMetadata }),
  }
}

/** Signatures and parts no one knows go back verbatim, all calls of a step in one entry. */
const parts = [
  { text: 'Hm', thought: true },
  { text: 'Hi', thoughtSignature: 'sig-1', partMetadata: { a: [1, null] } },
  { ...call('callOslo1', 'Oslo'), thoughtSignature: 'sig-2' },
  { functionCall: { name: 'weather', args: { city: 'Rome' } } },
  { partOf2027: { deep: [1, null] } },
  { text: '', thoughtSignature: 'sig-3' },
]
const grounding = {
  groundingMetadata: { webSearchQueries: ['weather'] },
  citationMetadata: { citations: [{ uri: 'https://x.test' }] },
  urlContextMetadata: { urlMetadata: [{ retrievedUrl: 'https://x.test' }] },
  brand_new: { a: [1] },
}

const failed = (
  name: string,
  code: number,
  status: string,
  message: string,
  expected: ErrorCase['code'],
  details: JsonObject[] = [],
): ErrorCase => ({
  name,
  status: code,
  body: { error: { code, message, status, details } },
  code: expected,
  message,
})
const perDay = {
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }],
}

const place = { project: 'p', location: 'europe-west4' }

/** Gemini of the developer API, and of Vertex AI. */
export const googleCases: readonly VendorCase[] = [
  { provider: 'google', model: google('m'), path: '/v1beta/models/m:generateContent' },
  {
    provider: 'vertex',
    model: vertex('m', place),
    path: '/v1/projects/p/locations/europe-west4/publishers/google/models/m:generateContent',
  },
].map(({ provider, model, path }): VendorCase => ({
  name: provider,
  provider,
  model,
  path,
  bodies,
  streamFields: {},
  systemOf: ({ systemInstruction }) => systemInstruction,
  answers: {
    text: answer([{ text: 'Hello there' }], [[{ text: 'Hello' }], [{ text: ' there' }]]),
    calls: answer(
      [call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
      [
        [call('callOslo1', 'Oslo')],
        [{ functionCall: { id: 'callRome2', name: 'weather', willContinue: true } }],
        [{ functionCall: { partialArgs: [{ jsonPath: '$.city', stringValue: 'Rome' }] } }],
      ],
    ),
    empty: { whole: emptyFrame(), stream: sse(emptyFrame()) },
    structure: answer([{ text: '{"name":"Ada"}' }], [[{ text: '{"name":' }, { text: '"Ada"}' }]]),
    refusal: {
      ...answer([{ text: 'I can' }], [[{ text: 'I can' }]], { finishReason: 'SAFETY' }),
      text: 'I can',
      stopReason: 'content_filter',
    },
  },
  unknown: {
    ...answer(parts, [parts.slice(0, 2), parts.slice(2)], grounding),
    metadata: { id: 'r1', model: 'm-2026', ...grounding },
    sentBack: {
      of: (body) => (body['contents'] as JsonObject[])[1],
      value: { role: 'model', parts },
    },
  },
  native: {
    ...answer(
      [
        { executableCode: { language: 'PYTHON', code: '1+1' } },
        { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2' } },
        { text: 'Two.' },
      ],
      [
        [{ executableCode: { language: 'PYTHON', code: '1+1' } }],
        [{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2' } }, { text: 'Two.' }],
      ],
    ),
    tool: { codeExecution: {} },
    check: ({ response }) => {
      expect(response.text).toBe('Two.')
      expect(response.content).toMatchObject([
        { type: 'native', name: 'executableCode' },
        {
          type: 'native',
          name: 'codeExecutionResult',
          metadata: { [provider]: { native: { codeExecutionResult: { output: '2' } } } },
        },
        { type: 'text' },
      ])
    },
  },
  errors: [
    failed('a bad request', 400, 'INVALID_ARGUMENT', 'Bad field', 'INVALID_REQUEST'),
    failed('a bad key', 400, 'INVALID_ARGUMENT', 'API key not valid.', 'AUTHENTICATION_FAILED'),
    failed('not allowed', 403, 'PERMISSION_DENIED', 'No', 'AUTHENTICATION_FAILED'),
    failed('no such model', 404, 'NOT_FOUND', 'No such model', 'MODEL_NOT_FOUND'),
    failed('too fast', 429, 'RESOURCE_EXHAUSTED', 'Slow down', 'RATE_LIMITED'),
    failed('quota', 429, 'RESOURCE_EXHAUSTED', 'Tomorrow', 'QUOTA_EXCEEDED', [perDay]),
    failed('down', 503, 'UNAVAILABLE', 'Overloaded', 'PROVIDER_ERROR'),
    failed(
      'too long',
      400,
      'INVALID_ARGUMENT',
      'The input token count (2) exceeds the maximum number of tokens allowed (1).',
      'CONTEXT_LENGTH_EXCEEDED',
    ),
    {
      name: 'an error in a list',
      status: 503,
      body: [{ error: { code: 503, message: 'Down', status: 'UNAVAILABLE' } }],
      code: 'PROVIDER_ERROR',
      message: 'Down',
    },
  ],
}))

/** Content may be absent altogether. */
function emptyFrame(): JsonObject {
  return { candidates: [{ finishReason: 'STOP', index: 0 }], usageMetadata, ...head }
}
