/** Answers that vendors give seldom, whole and streamed: what becomes of each. */
import type { JsonObject } from '@skein/base'
import { llm, type ModelReference, type TokenUsage, type Turn } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { deepseek } from '@skein/ai/deepseek'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { moonshot } from '@skein/ai/moonshot'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { emits, scripted } from '@skein/ai/testing'
import { xai } from '@skein/ai/xai'
import { describe, expect, test } from 'vitest'
import { exchange, type Reply } from './support/exchange.ts'

/** Asks once; calls are left to the caller. */
async function ask(model: ModelReference, reply: Reply): Promise<Turn> {
  const { config } = exchange(reply)
  const instance = llm({ model, config, toolStrategy: { maxIterations: 0 } })
  return reply.json === undefined ? instance.stream('x').turn : instance.generate('x')
}

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

  test('UPP-062 a call that gets a new id keeps its metadata, and the vendor’s id next to it', async () => {
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

describe('usage', () => {
  const counts = (
    input: number,
    output: number,
    total: number,
    read = 0,
    write = 0,
  ): TokenUsage => ({
    inputTokens: input,
    outputTokens: output,
    totalTokens: total,
    cacheReadTokens: read,
    cacheWriteTokens: write,
  })
  const tokens = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }
  const chatUsage = (usage: JsonObject): JsonObject => ({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }], usage }) // prettier-ignore
  const responsesUsage = { input_tokens: 10, input_tokens_details: { cached_tokens: 6, cache_write_tokens: 3 }, output_tokens: 4, total_tokens: 14 } // prettier-ignore
  const anthropicUsage = { input_tokens: 1, cache_read_input_tokens: 6, cache_creation_input_tokens: 3, output_tokens: 4 } // prettier-ignore
  const googleUsage = { promptTokenCount: 7, toolUsePromptTokenCount: 3, candidatesTokenCount: 1, thoughtsTokenCount: 3, cachedContentTokenCount: 6, totalTokenCount: 14 } // prettier-ignore

  test.each<[string, ModelReference, JsonObject, TokenUsage]>([
    [
      'OpenAI',
      openai('m', { api: 'chat' }),
      chatUsage({ ...tokens, prompt_tokens_details: { cached_tokens: 6, cache_write_tokens: 3 } }),
      counts(10, 4, 14, 6, 3),
    ],
    [
      'DeepSeek',
      deepseek('m'),
      chatUsage({ ...tokens, prompt_cache_hit_tokens: 6, prompt_cache_miss_tokens: 4 }),
      counts(10, 4, 14, 6),
    ],
    ['Moonshot', moonshot('m'), chatUsage({ ...tokens, cached_tokens: 6 }), counts(10, 4, 14, 6)],
    [
      'xAI, reasoning apart',
      xai('m'),
      chatUsage({
        ...tokens,
        total_tokens: 17,
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      { ...counts(10, 7, 17), reasoningTokens: 3 },
    ],
    [
      'Groq, in x_groq',
      groq('m'),
      { ...chatUsage(null as never), x_groq: { usage: tokens } },
      counts(10, 4, 14),
    ],
    [
      'Responses',
      openai('m'),
      { id: 'r', status: 'completed', output: [], usage: responsesUsage },
      counts(10, 4, 14, 6, 3),
    ],
    [
      'Anthropic',
      anthropic('m'),
      { content: [], stop_reason: 'end_turn', usage: anthropicUsage },
      counts(10, 4, 14, 6, 3),
    ],
    [
      'Google',
      google('m'),
      {
        candidates: [{ content: { parts: [] }, finishReason: 'STOP' }],
        usageMetadata: googleUsage,
      },
      { ...counts(10, 4, 14, 6), reasoningTokens: 3 },
    ],
    [
      'Ollama',
      ollama('m'),
      { message: { content: 'Hi' }, done: true, prompt_eval_count: 10, eval_count: 4 },
      counts(10, 4, 14),
    ],
    ['none told', groq('m'), chatUsage(null as never), counts(0, 0, 0)],
  ])(
    'UPP-080 %s: five counters, whatever the vendor calls them',
    async (_name, model, json, usage) => {
      // prettier-ignore
      expect((await ask(model, { json })).usage).toEqual(usage)
    },
  )
})
