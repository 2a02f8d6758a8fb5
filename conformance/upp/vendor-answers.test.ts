/** Answers that vendors give seldom, whole and streamed: what becomes of each, and which error. */
import type { JsonObject } from '@skein/base'
import { llm, type ModelReference, type Turn, type UPPError } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { emits, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { requests } from './cases/requests.ts'
import { answering } from './support/ask-vendor.ts'
import { exchange, type Reply } from './support/exchange.ts'
import { vendorCases } from './vendors.ts'

/** Asks once; calls are left to the caller. */
async function ask(model: ModelReference, reply: Reply): Promise<Turn> {
  const { config } = exchange(reply)
  const instance = llm({ model, config, toolStrategy: { maxIterations: 0 } })
  return reply.json === undefined ? instance.stream('x').turn : instance.generate('x')
}

const failureOf = (model: ModelReference, reply: Reply): Promise<UPPError> =>
  ask(model, reply).then(
    ({ response }) => Promise.reject(new Error(`no error, but ${response.text}`)),
    (error: UPPError) => error,
  )

/** Frames of Chat Completions: each delta, then the end. */
const chat = (...deltas: readonly JsonObject[]): Reply => ({
  events: [
    ...deltas.map((delta) => ({ choices: [{ index: 0, delta }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
  ],
})

describe('calls', () => {
  const first = { function: { name: 'a', arguments: '{"n":1}' } }
  const second = { function: { name: 'b', arguments: { n: 2 } } }

  test.each<[string, Reply]>([
    ['whole', { json: { choices: [{ message: { tool_calls: [first, second] }, finish_reason: 'tool_calls' }] } }], // prettier-ignore
    ['in one chunk', chat({ tool_calls: [first, second] })],
    ['in two chunks', chat({ tool_calls: [first] }, { tool_calls: [second] })],
  ])('UPP-058 Chat Completions, %s: parallel calls without id and index', async (_name, reply) => {
    const { response } = await ask(groq('m'), reply)
    expect(response.toolCalls).toMatchObject([
      { toolName: 'a', arguments: { n: 1 } },
      { toolName: 'b', arguments: { n: 2 } },
    ])
    expect(new Set(response.toolCalls!.map(({ toolCallId }) => toolCallId)).size).toBe(2)
  })

  test('UPP-062 unknown fields of a call come from all its pieces, and go back to the vendor', async () => {
    const pieces = [
      { index: 0, id: 'c1', x_first: { a: 1 }, function: { name: 'a', arguments: '{' } },
      { index: 0, x_second: [2], function: { arguments: '}' } },
    ].map((piece) => ({ tool_calls: [piece] }))
    const reply = chat(...pieces)
    const { config, requests: sent } = exchange(reply, reply)
    const model = llm({ model: groq('m'), config, toolStrategy: { maxIterations: 0 } })
    const { messages } = await model.stream('x').turn
    await model.stream(messages, 'y').turn
    const [, answer] = sent[1]!.body['messages'] as JsonObject[]
    expect(answer!['tool_calls']).toEqual([
      {
        x_first: { a: 1 },
        x_second: [2],
        id: 'c1',
        type: 'function',
        function: { name: 'a', arguments: '{}' },
      },
    ])
  })

  test('UPP-062 a call that gets a new id keeps its metadata, and the vendor’s id beside it', async () => {
    const call = { id: 'same', x_note: 1, function: { name: 'a', arguments: '{}' } }
    const tool_calls = [0, 1].map((index) => ({ ...call, index }))
    const { response } = await ask(groq('m'), chat({ tool_calls: [tool_calls[0]!] }, { tool_calls: [tool_calls[1]!] })) // prettier-ignore
    const own = { api: 'openai-chat', native: { x_note: 1 } }
    expect(response.toolCalls!.map(({ metadata }) => metadata)).toEqual([
      { groq: own },
      { groq: own, skein: { vendorCallId: 'same' } },
    ])
  })

  test.each([
    [['{"a":1}', ''], { a: 1 }],
    [['', '{"a":', '', '1}'], { a: 1 }],
    [[''], {}],
    [[], { a: 0 }],
  ])('UPP-058 Anthropic: the pieces %j of an input', async (pieces, expected) => {
    const input = pieces.length === 0 ? { a: 0 } : {}
    const events: JsonObject[] = [
      { type: 'message_start', message: { id: 'm', content: [], usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 't', name: 'a', input } }, // prettier-ignore
      ...pieces.map((partial_json) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
      { type: 'message_stop' },
    ]
    const { response } = await ask(anthropic('m'), { events })
    expect(response.toolCalls).toEqual([{ toolCallId: 't', toolName: 'a', arguments: expected }])
  })
})

describe('content', () => {
  const candidate = (...parts: JsonObject[]): JsonObject => ({
    content: { role: 'model', parts },
    finishReason: 'STOP',
  })
  const signed = { text: 'Hm', thought: true, thoughtSignature: 's1' }
  const thoughts = { candidates: [candidate(signed, { text: 'Hi', thoughtSignature: 's2' })] }
  const several = {
    candidates: [
      { ...candidate({ text: 'other' }), index: 1 },
      { ...candidate({ text: 'mine' }), index: 0 },
    ],
  }

  test.each<[string, (frame: JsonObject) => Reply]>([
    ['whole', (frame) => ({ json: frame })],
    ['streamed', (frame) => ({ events: [frame] })],
  ])(
    'UPP-058 Google, %s: signed thoughts, and the first of several candidates',
    async (_, reply) => {
      const { response } = await ask(google('m'), reply(thoughts))
      const native = (thoughtSignature: string): JsonObject => ({
        google: { api: 'google-generate', native: { thoughtSignature } },
      })
      expect(response.content).toEqual([
        { type: 'reasoning', text: 'Hm', metadata: native('s1') },
        { type: 'text', text: 'Hi', metadata: native('s2') },
      ])
      expect((await ask(google('m'), reply(several))).response.text).toBe('mine')
    },
  )

  const parts = [
    { type: 'output_text', text: 'Well. ', annotations: [] },
    { type: 'refusal', refusal: 'No.' },
  ]
  const response = {
    id: 'r',
    status: 'completed',
    output: [{ type: 'message', id: 'msg', role: 'assistant', content: parts }],
  }

  test.each<[string, Reply]>([
    ['whole', { json: response }],
    ['streamed', { events: [{ type: 'response.completed', response }] }],
  ])('UPP-058 Responses, %s: a refusal after a text', async (_name, reply) => {
    const turn = await ask(openai('m'), reply)
    expect([turn.response.text, turn.stopReason]).toEqual(['Well. No.', 'refusal'])
  })

  test.each(['audio', 'video', 'image'] as const)(
    'UPP-067 %s that comes in pieces is one block with all its bytes',
    async (kind) => {
      const piece = (...data: number[]) =>
        ({
          type: `${kind}_delta`,
          index: 0,
          delta: { data: Uint8Array.from(data), mimeType: `${kind}/x` },
        }) as const
      const model = scripted([emits(piece(1, 2), piece(3), piece(4, 5))])
      const { content } = (await llm({ model }).generate('x')).response
      const data = Uint8Array.of(1, 2, 3, 4, 5)
      const mimeType = `${kind}/x`
      expect(content).toEqual([
        kind === 'image'
          ? { type: kind, source: { type: 'bytes', data }, mimeType }
          : { type: kind, data, mimeType },
      ])
    },
  )

  test.each(['https://x.test/a.png', 'http://127.0.0.1/a.png', 'gs://bucket/a.png'])(
    'UPP-069 an image answered by the address %s has it as its source',
    async (url) => {
      const delta = { data: new Uint8Array(), mimeType: 'image/png', url }
      const model = scripted([emits({ type: 'image_delta', index: 0, delta })])
      const { content } = (await llm({ model }).generate('x')).response
      const source = { type: 'url', url }
      expect(content).toEqual([{ type: 'image', source, mimeType: 'image/png' }])
    },
  )
})

describe('errors', () => {
  const line = (message: JsonObject): JsonObject => ({ model: 'm', message, done: false })
  const frame = (part: JsonObject): JsonObject => ({ candidates: [{ content: { parts: [part] } }] })
  const googleError = { error: { code: 503, message: 'It broke', status: 'UNAVAILABLE' } }
  const chatError = { error: { message: 'It broke', type: 'server_error' } }
  const flat = { type: 'error', code: 'rate_limit_exceeded', message: 'It broke' }
  const start = { type: 'message_start', message: { id: 'm', content: [], usage: {} } }
  const thinking = { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: 'Hm' } } // prettier-ignore
  const overloaded = { type: 'error', error: { type: 'rate_limit_error', message: 'It broke' } }

  test.each<[string, ModelReference, Reply, string]>([
    [
      'Ollama, after reasoning',
      ollama('m'),
      { lines: [line({ thinking: 'Hm' }), { error: 'It broke' }] },
      'PROVIDER_ERROR',
    ],
    [
      'Ollama, after text',
      ollama('m'),
      { lines: [line({ content: 'Hi' }), { error: 'It broke' }] },
      'PROVIDER_ERROR',
    ],
    [
      'Google, after reasoning',
      google('m'),
      { events: [frame({ text: 'Hm', thought: true }), googleError] },
      'PROVIDER_ERROR',
    ],
    [
      'Google, after text',
      google('m'),
      { events: [frame({ text: 'Hi' }), googleError] },
      'PROVIDER_ERROR',
    ],
    [
      'Google, after a call',
      google('m'),
      { events: [frame({ functionCall: { name: 'a' } }), googleError] },
      'PROVIDER_ERROR',
    ],
    [
      'Groq, after reasoning',
      groq('m'),
      { events: [{ choices: [{ delta: { reasoning: 'Hm' } }] }, chatError] },
      'PROVIDER_ERROR',
    ],
    [
      'Groq, in x_groq',
      groq('m'),
      { events: [{ choices: [{ delta: { content: 'Hi' } }] }, { x_groq: chatError }] },
      'PROVIDER_ERROR',
    ],
    [
      'Responses, flat',
      openai('m'),
      { events: [{ type: 'response.output_text.delta', output_index: 0, delta: 'Hi' }, flat] },
      'RATE_LIMITED',
    ],
    [
      'Anthropic, after reasoning',
      anthropic('m'),
      { events: [start, thinking, overloaded] },
      'RATE_LIMITED',
    ],
  ])('UPP-060 UPP-036 %s', async (_name, model, reply, code) => {
    // prettier-ignore
    const { provider } = model
    const error = await failureOf(model, reply)
    expect(error).toMatchObject({ code, message: 'It broke', provider: provider.name, modality: 'llm' }) // prettier-ignore
    expect(error.turn?.response.content.length).toBe(_name.includes('call') ? 0 : 1)
  })

  test('UPP-036 Google: a prompt that is blocked after content has come', async () => {
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }
    const error = await failureOf(google('m'), { events: [frame({ text: 'Hi' }), blocked] })
    expect(error).toMatchObject({ code: 'CONTENT_FILTERED', vendorCode: 'PROHIBITED_CONTENT' })
  })

  test('UPP-036 Google: a daily quota is spent, whichever limit is named first', async () => {
    const quota = (...ids: string[]): Reply => ({
      status: 429,
      json: {
        error: {
          status: 'RESOURCE_EXHAUSTED',
          message: 'Too many requests',
          details: [
            {
              '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
              violations: ids.map((quotaId) => ({ quotaId })),
            },
          ],
        },
      },
    })
    const codeOf = async (...ids: string[]): Promise<string> =>
      (await failureOf(google('m'), quota(...ids))).code
    expect(await codeOf('RequestsPerMinute')).toBe('RATE_LIMITED')
    expect(await codeOf('RequestsPerMinute', 'RequestsPerDay')).toBe('QUOTA_EXCEEDED')
    expect(await codeOf('RequestsPerDay', 'RequestsPerMinute')).toBe('QUOTA_EXCEEDED')
  })

  test('UPP-036 Azure: the inner error says what a general code does not', async () => {
    const error = {
      message: 'The prompt was refused.',
      code: 'BadRequest',
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    }
    const failed = await failureOf(azureOpenai('m'), { status: 400, json: { error } })
    expect(failed).toMatchObject({ code: 'CONTENT_FILTERED', vendorCode: 'BadRequest' })
  })

  test('UPP-036 Ollama: an answer that is not done is not an answer', async () => {
    const message = { role: 'assistant', content: 'Hel' }
    for (const end of [{}, { done: false }]) {
      const error = await failureOf(ollama('m'), { json: { model: 'm', message, ...end } })
      expect(error.code).toBe('INVALID_RESPONSE')
    }
  })
})

describe.each(vendorCases)('$name', (vendor) => {
  const { text, calls, structure } = vendor.answers
  const whole = { text, calls, structure }

  test.each(Object.keys(whole) as (keyof typeof whole)[])(
    'UPP-036 %s: a stream that ends too early is INVALID_RESPONSE, wherever it ends',
    async (kind) => {
      const { stream } = whole[kind]
      const separator = stream.startsWith('{') ? '\n' : '\n\n'
      const frames = stream.split(separator).filter((frame) => frame !== '')
      const outcome = async (count: number): Promise<unknown> => {
        const cut = frames.slice(0, count).map((frame) => frame + separator).join('') // prettier-ignore
        const { fetch } = answering({ whole: null, stream: cut })
        const { options, history, input } = requests[kind === 'text' ? 'text' : kind === 'calls' ? 'tools' : 'structure'] // prettier-ignore
        const config = { apiKey: 'key', fetch, retryStrategy: { onRetry: () => null } }
        const toolStrategy = { maxIterations: 0 }
        const model = llm({ model: vendor.model, config, ...options, toolStrategy })
        return model.stream(history, input).turn.then(
          ({ response, stopReason }) => JSON.stringify([response.content, response.toolCalls?.map(({ toolName, arguments: args }) => [toolName, args]), stopReason]), // prettier-ignore
          ({ code }: UPPError) => code,
        )
      }
      const complete = await outcome(frames.length)
      expect(complete).not.toBe('INVALID_RESPONSE')
      const outcomes: unknown[] = []
      for (let count = 0; count < frames.length; count++) outcomes.push(await outcome(count))
      // What follows the end of an answer, such as usage, may be missing.
      expect(outcomes.filter((one) => one !== 'INVALID_RESPONSE' && one !== complete)).toEqual([])
      expect(outcomes.slice(0, Math.max(1, frames.length - 3)).every((one) => one === 'INVALID_RESPONSE')) // prettier-ignore
        .toBe(true)
    },
  )
})
