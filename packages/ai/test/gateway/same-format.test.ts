/** A client of OpenAI in front of vendors that share one of its formats, or of OpenAI's other format. */
import { type ModelReference, NoRetry } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { cerebras } from '@skein/ai/cerebras'
import { deepseek } from '@skein/ai/deepseek'
import { gateway, servedModel } from '@skein/ai/gateway'
import { groq } from '@skein/ai/groq'
import { mistral } from '@skein/ai/mistral'
import { moonshot } from '@skein/ai/moonshot'
import { openai } from '@skein/ai/openai'
import { fallback } from '@skein/ai/routing'
import { fails, says, vendorServer, type VendorServer } from '@skein/ai/testing'
import { xai } from '@skein/ai/xai'
import type { JsonObject } from '@skein/base'
import { expect, test } from 'vitest'
import { hi, post } from './clients.ts'

const config = (vendor: VendorServer) => ({
  apiKey: 'k',
  fetch: vendor.fetch,
  retryStrategy: new NoRetry(),
})

async function sent(model: ModelReference, path: string, body: JsonObject) {
  const vendor = vendorServer([says('ok')])
  const handler = gateway({ models: { m: servedModel({ model, config: config(vendor) }) } })
  const response = await post(handler, path, { model: 'm', ...body })
  expect(response.status).toBe(200)
  const { messages: _, input: __, ...rest } = vendor.requests[0]!.body
  return { body: rest, dropped: response.headers.get('skein-dropped-params') }
}

const chat = '/v1/chat/completions'
const given = {
  messages: hi,
  max_completion_tokens: 50,
  seed: 3,
  reasoning_effort: 'high',
  user: 'u',
}

// Mistral refuses `max_completion_tokens` ("Extra inputs are not permitted"); others take no notice of it.
test.each<[ModelReference, JsonObject]>([
  [mistral('mistral-medium-3-5'), { max_tokens: 50, random_seed: 3, reasoning_effort: 'high' }],
  [deepseek('deepseek-chat'), { max_tokens: 50, seed: 3, thinking: { type: 'enabled' } }],
  [moonshot('kimi-k2'), { max_completion_tokens: 50, seed: 3, thinking: { type: 'enabled' } }],
  [groq('llama'), { max_completion_tokens: 50, seed: 3, reasoning_effort: 'high' }],
  [cerebras('llama'), { max_completion_tokens: 50, seed: 3, reasoning_effort: 'high' }],
  [
    openai('gpt-5', { api: 'chat' }),
    { max_completion_tokens: 50, seed: 3, reasoning_effort: 'high' },
  ],
])('%o gets limits, seed and effort under its own names', async (model, own) => {
  const { body } = await sent(model, chat, given)
  expect(body).toEqual({ model: model.modelId, user: 'u', ...own })
})

test('what the client wrote in the names of the vendor stays', async () => {
  const own = { max_tokens: 20, random_seed: 5, thinking: { type: 'disabled' } }
  const first = await sent(mistral('mistral-medium-3-5'), chat, { messages: hi, max_completion_tokens: 50, seed: 3, ...own }) // prettier-ignore
  expect(first.body).toMatchObject(own)
  expect(first.body).not.toHaveProperty('max_completion_tokens')
  const second = await sent(deepseek('deepseek-chat'), chat, { messages: hi, reasoning_effort: 'high', ...own }) // prettier-ignore
  expect(second.body).toMatchObject(own)
})

test('members of one format but several vendors get their own names', async () => {
  const [first, second] = [vendorServer([fails({ code: 'RATE_LIMITED', statusCode: 429 })]), vendorServer([says('ok')])] // prettier-ignore
  const model = fallback([
    { model: groq('llama'), config: config(first) },
    { model: mistral('mistral-medium-3-5'), config: config(second) },
  ])
  const response = await post(gateway({ models: { m: model } }), chat, { model: 'm', ...given })
  expect(response.status).toBe(200)
  expect(first.requests[0]!.body).toMatchObject({ max_completion_tokens: 50, seed: 3, user: 'u' })
  expect(second.requests[0]!.body).toMatchObject({ max_tokens: 50, random_seed: 3, user: 'u' })
  expect(second.requests[0]!.body).not.toHaveProperty('max_completion_tokens')
  expect(second.requests[0]!.body).not.toHaveProperty('seed')
})

const shared = {
  metadata: { a: 'b' },
  prompt_cache_key: 'key',
  safety_identifier: 's',
  service_tier: 'flex',
  store: true,
  user: 'u',
}

test('a client of Chat loses nothing of OpenAI on the way to Responses', async () => {
  const body = { messages: hi, ...shared, verbosity: 'low', reasoning_effort: 'xhigh', seed: 1 }
  const { body: own, dropped } = await sent(openai('gpt-5.4'), chat, body)
  const reasoning = { effort: 'xhigh' }
  expect(own).toEqual({ model: 'gpt-5.4', ...shared, text: { verbosity: 'low' }, reasoning })
  expect(dropped).toBe('seed')
})

test('verbosity and a schema are both sent', async () => {
  const schema = { type: 'object', properties: {}, required: [], additionalProperties: false }
  const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
  const vendor = vendorServer([says('{}')])
  const m = servedModel({ model: openai('gpt-5'), config: config(vendor) })
  const body = { model: 'm', messages: hi, verbosity: 'low', response_format }
  expect((await post(gateway({ models: { m } }), chat, body)).status).toBe(200)
  expect(vendor.requests[0]!.body).toMatchObject({ text: { verbosity: 'low', format: { type: 'json_schema' } } }) // prettier-ignore
})

test('and a client of Responses on the way to Chat', async () => {
  const body = {
    input: 'Hi',
    ...shared,
    text: { verbosity: 'high' },
    reasoning: { effort: 'minimal' },
  }
  const { body: own, dropped } = await sent(openai('gpt-5', { api: 'chat' }), '/v1/responses', body)
  expect(own).toEqual({ model: 'gpt-5', ...shared, verbosity: 'high', reasoning_effort: 'minimal' })
  expect(dropped).toBeNull()
})

test('another vendor is sent none of it', async () => {
  const body = { messages: hi, ...shared, verbosity: 'low' }
  const { body: own, dropped } = await sent(xai('grok-4', { api: 'responses' }), chat, body)
  expect(own).toEqual({ model: 'grok-4' })
  expect(dropped).toBe('metadata, prompt_cache_key, safety_identifier, service_tier, store, user, verbosity') // prettier-ignore
})

test.each([
  ['xhigh', 'high'],
  ['max', 'high'],
  ['minimal', 'low'],
])('the effort %s becomes %s for a vendor without it', async (effort, nearest) => {
  const model = anthropic('claude-opus-4-8')
  const { body, dropped } = await sent(model, chat, { messages: hi, reasoning_effort: effort })
  expect(body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: nearest } })
  expect(dropped).toBeNull()
})
