import type { JsonObject } from '@skein/base'
import { llm, NoRetry, type Middleware, type ModelReference, type TokenUsage } from '@skein/ai'
import { says, scripted, stops } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { vendors } from './support/vendors.ts'

const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))

const chat = (usage: JsonObject): JsonObject => ({
  choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }],
  usage,
})
const responses = (usage: JsonObject): JsonObject => ({
  id: 'x',
  status: 'completed',
  output: [],
  usage,
})
const messages = (usage: JsonObject): JsonObject => ({
  id: 'x',
  content: [],
  stop_reason: 'end_turn',
  usage,
})
const gemini = (usageMetadata: JsonObject): JsonObject => ({
  candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
  usageMetadata,
})
const ollama = (usage: JsonObject): JsonObject => ({
  message: { content: 'Hi' },
  done: true,
  done_reason: 'stop',
  ...usage,
})

const [one, other] = [{ prompt_tokens: 10, completion_tokens: 5 }, { input_tokens: 10, output_tokens: 5 }] // prettier-ignore
const plain = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
}
const thought = { reasoning_tokens: 3 }

/** What each vendor counts, and what that is here; a count that the vendor leaves out is derived. */
const cases: [string, string | undefined, JsonObject, Partial<TokenUsage>][] = [
  ['openai', 'responses', responses(other), {}],
  ['openai', 'responses', responses({ ...other, total_tokens: 16 }), { totalTokens: 16 }],
  [
    'openai',
    'responses',
    responses({
      ...other,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
      output_tokens_details: thought,
    }),
    { cacheReadTokens: 4, cacheWriteTokens: 2, reasoningTokens: 3 },
  ],
  ['openai', 'chat', chat(one), {}],
  ['openai', 'chat', chat({ ...one, total_tokens: 16 }), { totalTokens: 16 }],
  ['openai', 'chat', chat({ ...one, prompt_tokens_details: { cached_tokens: 4 } }), { cacheReadTokens: 4 }], // prettier-ignore
  ['deepseek', undefined, chat({ ...one, prompt_cache_hit_tokens: 4 }), { cacheReadTokens: 4 }],
  ['moonshot', undefined, chat({ ...one, cached_tokens: 4 }), { cacheReadTokens: 4 }],
  [
    'xai',
    'chat',
    chat({ ...one, total_tokens: 18, completion_tokens_details: thought }),
    { outputTokens: 8, totalTokens: 18, reasoningTokens: 3 },
  ],
  [
    'groq',
    undefined,
    chat({ ...one, total_tokens: 15, completion_tokens_details: thought }),
    { reasoningTokens: 3 },
  ],
  ['openrouter', 'chat', chat({ ...one, cost: 0.5 }), { costUsd: 0.5 }],
  ['anthropic', undefined, messages(other), {}],
  [
    'anthropic',
    undefined,
    messages({
      ...other,
      input_tokens: 4,
      cache_read_input_tokens: 5,
      cache_creation_input_tokens: 1,
      output_tokens_details: { thinking_tokens: 3 },
    }),
    { cacheReadTokens: 5, cacheWriteTokens: 1, reasoningTokens: 3 },
  ],
  ['google', undefined, gemini({ promptTokenCount: 10, candidatesTokenCount: 5 }), {}],
  [
    'google',
    undefined,
    gemini({
      promptTokenCount: 8,
      toolUsePromptTokenCount: 2,
      candidatesTokenCount: 2,
      thoughtsTokenCount: 3,
      cachedContentTokenCount: 4,
      totalTokenCount: 99,
    }),
    { cacheReadTokens: 4, reasoningTokens: 3 },
  ],
  ['ollama', undefined, ollama({ prompt_eval_count: 10, eval_count: 5 }), {}],
  ['ollama', undefined, ollama({ eval_count: 5 }), { inputTokens: 0, totalTokens: 5 }],
]

test.each(cases)('UPP-091 UPP-144 %s %s: the usage of %j', async (vendor, api, body, expected) => {
  const model = (providers.get(vendor) as (id: string, options?: object) => ModelReference)(
    'm',
    api ? { api } : {},
  )
  const fetch = async (): Promise<Response> => Response.json(body)
  const config = { apiKey: 'key-0123456789', fetch, retryStrategy: new NoRetry() }
  const { usage, usageByCycle } = await llm({ model, config }).generate('x')
  expect(usage).toEqual({ ...plain, ...expected })
  expect(usageByCycle).toEqual([{ ...plain, ...expected, raw: expect.anything() as unknown }])
})

test('UPP-113 UPP-103 an answer that had ended before its hook failed is in the turn of the failure, with its usage', async () => {
  const fail: Middleware = {
    name: 'fail',
    onStreamEvent: (event) => {
      if (event.type === 'message_stop') throw new Error('no')
      return event
    },
  }
  const model = scripted([[says('Hi'), stops('end_turn', { usage: { inputTokens: 7 } })]])
  const error: unknown = await llm({ model, middleware: [fail] })
    .stream('x')
    .turn.catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    turn: {
      cycles: 1,
      stopReason: 'end_turn',
      usage: { inputTokens: 7 },
      response: { text: 'Hi' },
    },
  })
})
