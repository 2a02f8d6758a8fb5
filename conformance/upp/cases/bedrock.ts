/** Converse and ConverseStream of Amazon Bedrock. */
import type { JsonObject } from '@skein/base'
import bedrock from '@skein/ai/bedrock'
import { expect } from 'vitest'
import { person, weather } from './requests.ts'
import type { ErrorCase, VendorAnswer, VendorCase } from './vendor-case.ts'

const said = (...messages: JsonObject[]): JsonObject => ({ messages })
const user = (...content: JsonObject[]): JsonObject => ({ role: 'user', content })
const assistant = (...content: JsonObject[]): JsonObject => ({ role: 'assistant', content })
const text = (value: string): JsonObject => ({ text: value })
const ask = (value: string): JsonObject => said(user(text(value)))
const bytes = (kind: string, format: string, more: JsonObject = {}): JsonObject => ({
  [kind]: { format, source: { bytes: 'AQI=' }, ...more },
})
const call = (toolUseId: string, city: string): JsonObject => ({
  toolUse: { toolUseId, name: 'weather', input: { city } },
})
const result = (toolUseId: string, content: JsonObject, more: JsonObject = {}): JsonObject => ({
  toolResult: { toolUseId, content: [content], ...more },
})

const bodies: VendorCase['bodies'] = {
  text: ask('Hello'),
  system: { ...ask('Hello'), system: [text('Be brief.')] },
  params: { ...ask('Hello'), temperature: 0.5, unknown_key: { deep: [1, null] } },
  tools: {
    ...ask('Weather?'),
    toolConfig: {
      tools: [
        {
          toolSpec: {
            name: weather.name,
            description: weather.description,
            inputSchema: { json: weather.parameters as JsonObject },
          },
        },
      ],
    },
  },
  toolResults: {
    ...said(
      user(text('Weather?')),
      assistant(text('Let me see.'), call('callOslo1', 'Oslo'), call('callRome2', 'Rome')),
      // Roles take turns, so the results and the next question are one message.
      user(
        result('callOslo1', { json: { sky: 'grey' } }),
        result('callRome2', text('No data.'), { status: 'error' }),
        text('And tomorrow?'),
      ),
    ),
    // The request has no tools, and a history with calls needs some.
    toolConfig: {
      tools: [{ toolSpec: { name: 'weather', inputSchema: { json: { type: 'object' } } } }],
    },
  },
  structure: {
    ...ask('Who?'),
    outputConfig: {
      textFormat: {
        type: 'json_schema',
        structure: {
          jsonSchema: {
            name: 'answer',
            schema: JSON.stringify({ ...person, additionalProperties: false }),
          },
        },
      },
    },
  },
  imageBase64: said(user(text('What is it?'), bytes('image', 'png'))),
  imageBytes: said(user(bytes('image', 'png'))),
  imageUrl: 'refused',
  documentBase64: said(user(bytes('document', 'pdf', { name: 'a pdf' }))),
  documentUrl: 'refused',
  documentText: said(
    user({ document: { format: 'txt', name: 'document 1ecc29d4', source: { bytes: 'T25jZS4=' } } }),
  ),
  audio: said(user(bytes('audio', 'wav'))),
  video: said(user(bytes('video', 'mp4'))),
}

const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
const metrics = { latencyMs: 7 }

type Event = readonly [type: string, body: JsonObject]

/** A whole answer and the stream that says the same; `support/event-stream.ts` makes the lines binary. */
function answer(
  content: readonly JsonObject[],
  events: readonly Event[],
  { stopReason = 'end_turn', ...more }: JsonObject = {},
): VendorAnswer {
  const all: Event[] = [
    ['messageStart', { role: 'assistant', p: 'abcd' }],
    ...events,
    ['messageStop', { stopReason }],
    ['metadata', { usage, metrics, ...more }],
  ]
  return {
    whole: { output: { message: assistant(...content) }, stopReason, usage, metrics, ...more },
    stream: all.map(([type, body]) => `${JSON.stringify({ type, ...body })}\n`).join(''),
  }
}

/** The events of one block: its deltas, after a start if there is one, and its end. */
function streamed(
  contentBlockIndex: number,
  start: JsonObject | undefined,
  ...deltas: readonly JsonObject[]
): Event[] {
  return [
    ...(start ? [['contentBlockStart', { contentBlockIndex, start }] as const] : []),
    ...deltas.map((delta): Event => ['contentBlockDelta', { contentBlockIndex, delta }]),
    ['contentBlockStop', { contentBlockIndex }],
  ]
}

const citations = [{ title: 'X', source: 'https://x.test' }]
/** Signatures, redacted reasoning, citations and unknown fields go back verbatim. */
const content = [
  { reasoningContent: { reasoningText: { text: 'Hm', signature: 'sig-1' } } },
  { reasoningContent: { redactedContent: 'AQID' } },
  { citationsContent: { content: [text('Hi')], citations } },
  {
    toolUse: { toolUseId: 'callOslo1', name: 'weather', input: { city: 'Oslo' }, caller: { a: 1 } },
  },
]
const beyond = { trace: { promptRouter: { invokedModelId: 'm' } }, brand_new: { a: [1] } }

const failed = (
  name: string,
  status: number,
  __type: string,
  message: string,
  expected: ErrorCase['code'],
): ErrorCase => ({ name, status, body: { __type, message }, code: expected, message })

export const bedrockCases: readonly VendorCase[] = [
  {
    name: 'bedrock',
    provider: 'bedrock',
    model: bedrock('m', { region: 'eu-central-1' }),
    path: '/model/m/converse',
    bodies,
    streamFields: {},
    systemOf: ({ system }) => system,
    answers: {
      text: answer([text('Hello there')], streamed(0, undefined, text('Hello'), text(' there'))),
      calls: answer(
        [call('callOslo1', 'Oslo'), call('callRome2', 'Rome')],
        [
          ...streamed(
            0,
            { toolUse: { toolUseId: 'callOslo1', name: 'weather' } },
            { toolUse: { input: '{"city":"Oslo"}' } },
          ),
          ...streamed(
            1,
            { toolUse: { toolUseId: 'callRome2', name: 'weather' } },
            { toolUse: { input: '' } },
            { toolUse: { input: '{"city":' } },
            { toolUse: { input: '"Rome"}' } },
          ),
        ],
        { stopReason: 'tool_use' },
      ),
      empty: answer([], []),
      structure: answer(
        [text('{"name":"Ada"}')],
        streamed(0, undefined, text('{"name":'), text('"Ada"}')),
      ),
      refusal: {
        ...answer([text('I can')], streamed(0, undefined, text('I can')), {
          stopReason: 'guardrail_intervened',
        }),
        text: 'I can',
        stopReason: 'content_filter',
      },
    },
    unknown: {
      ...answer(
        content,
        [
          ...streamed(
            0,
            undefined,
            { reasoningContent: { text: 'Hm' } },
            { reasoningContent: { signature: 'sig-1' } },
          ),
          ...streamed(1, undefined, { reasoningContent: { redactedContent: 'AQID' } }),
          ...streamed(2, undefined, text('Hi'), { citation: citations[0]! }),
          ...streamed(
            3,
            { toolUse: { toolUseId: 'callOslo1', name: 'weather', caller: { a: 1 } } },
            { toolUse: { input: '{"city":"Oslo"}' } },
          ),
        ],
        { stopReason: 'tool_use', ...beyond },
      ),
      metadata: { metrics, ...beyond },
      sentBack: {
        of: (body) => (body['messages'] as JsonObject[])[1],
        value: assistant(...content),
      },
    },
    native: {
      ...answer(
        [
          { toolUse: { toolUseId: 's1', name: 'grounding', input: {}, type: 'server_tool_use' } },
          { toolResult: { toolUseId: 's1', content: [], type: 'grounding_result' } },
          text('Two.'),
        ],
        [
          ...streamed(0, {
            toolUse: { toolUseId: 's1', name: 'grounding', type: 'server_tool_use' },
          }),
          ...streamed(1, { toolResult: { toolUseId: 's1', type: 'grounding_result' } }),
          ...streamed(2, undefined, text('Two.')),
        ],
      ),
      holder: 'toolConfig',
      tool: { systemTool: { name: 'nova_grounding' } },
      check: ({ response }) => {
        expect(response.text).toBe('Two.')
        expect(response.content).toMatchObject([
          { type: 'native', name: 'toolUse' },
          {
            type: 'native',
            name: 'toolResult',
            metadata: { bedrock: { native: { toolResult: { type: 'grounding_result' } } } },
          },
          { type: 'text' },
        ])
      },
    },
    errors: [
      failed('a bad request', 400, 'ValidationException', 'Bad field', 'INVALID_REQUEST'),
      failed('a bad key', 403, 'UnrecognizedClientException', 'No', 'AUTHENTICATION_FAILED'),
      failed('not allowed', 403, 'AccessDeniedException', 'No', 'AUTHENTICATION_FAILED'),
      failed('no such model', 404, 'ResourceNotFoundException', 'No such model', 'MODEL_NOT_FOUND'),
      failed('too fast', 429, 'ThrottlingException', 'Slow down', 'RATE_LIMITED'),
      failed('quota', 400, 'ServiceQuotaExceededException', 'Too much', 'QUOTA_EXCEEDED'),
      failed('down', 503, 'ServiceUnavailableException', 'Overloaded', 'PROVIDER_ERROR'),
      failed('too long', 400, 'ValidationException', 'Input is too long for requested model.', 'CONTEXT_LENGTH_EXCEEDED'), // prettier-ignore
    ],
  },
]
