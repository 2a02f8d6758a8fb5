/** Models of several vendors behind one name: every member gets the client's request in its own words. */
import { anthropic } from '@skein/ai/anthropic'
import { gateway, servedModel } from '@skein/ai/gateway'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { fallback, route } from '@skein/ai/routing'
import { NoRetry } from '@skein/ai'
import { fails, says, type VendorServer, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { hi, post } from './clients.ts'

const config = (vendor: VendorServer) => ({
  apiKey: 'k',
  fetch: vendor.fetch,
  retryStrategy: new NoRetry(),
})
const failing = () => vendorServer([fails({ code: 'RATE_LIMITED', statusCode: 429 })])
const answering = () => vendorServer([says('ok')])

const chat: JsonObject = {
  model: 'm',
  messages: hi,
  max_completion_tokens: 77,
  stop: ['END'],
  temperature: 0.5,
  reasoning_effort: 'low',
  seed: 3,
  logit_bias: { 1: 2 },
}
const messages: JsonObject = {
  model: 'm',
  messages: hi,
  max_tokens: 77,
  stop_sequences: ['END'],
  thinking: { type: 'enabled', budget_tokens: 2000 },
  container: 'c1',
}

describe('a fallback over two formats', () => {
  test('a client of OpenAI: Anthropic fails, Google answers', async () => {
    const [first, second] = [failing(), answering()]
    const model = fallback([
      { model: anthropic('claude-sonnet-4-5'), config: config(first) },
      { model: google('gemini-2.5-flash'), config: config(second) },
    ])
    const response = await post(gateway({ models: { m: model } }), '/v1/chat/completions', chat)
    expect(response.status).toBe(200)
    const [asked] = first.requests
    expect(asked!.body).toMatchObject({ max_tokens: 77, stop_sequences: ['END'], temperature: 0.5 })
    for (const name of ['max_completion_tokens', 'stop', 'reasoning_effort', 'seed', 'logit_bias'])
      expect(asked!.body).not.toHaveProperty(name)
    expect(second.requests[0]!.body).toMatchObject({
      generationConfig: { maxOutputTokens: 77, stopSequences: ['END'], seed: 3 },
    })
    // Only what no member has is without an effect.
    expect(response.headers.get('skein-dropped-params')).toBe('logit_bias')
  })

  test('a client of Anthropic: its own vendor gets its words unchanged, the other what it knows', async () => {
    const [first, second] = [failing(), answering()]
    const model = fallback([
      { model: anthropic('claude-sonnet-4-5'), config: config(first) },
      { model: openai('gpt-4.1', { api: 'chat' }), config: config(second) },
    ])
    const served = servedModel({ model, system: 'House rules.', maxOutputTokens: 9 })
    const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }]
    const response = await post(
      gateway({ models: { m: served } }),
      '/v1/messages',
      { ...messages, system },
      { 'anthropic-beta': 'files-api-2025-04-14' },
    )
    expect(response.status).toBe(200)
    const [asked] = first.requests
    expect(asked!.body).toMatchObject({
      max_tokens: 77,
      stop_sequences: ['END'],
      thinking: { type: 'enabled', budget_tokens: 2000 },
      container: 'c1',
      system: [{ type: 'text', text: 'House rules.' }, ...system],
    })
    expect(asked!.headers['anthropic-beta']).toBe('files-api-2025-04-14')
    const [other] = second.requests
    expect(other!.body).toMatchObject({ max_completion_tokens: 77, stop: ['END'] })
    for (const name of ['max_tokens', 'stop_sequences', 'thinking', 'container', 'system'])
      expect(other!.body).not.toHaveProperty(name)
    expect(other!.headers).not.toHaveProperty('anthropic-beta')
    expect(second.model.requests[0]!.system).toBe('House rules.\n\nBe brief.')
  })

  test('a client of Responses reaches a route to Ollama, nested in a fallback', async () => {
    const vendor = answering()
    const down = { model: openai('gpt-5'), config: config(failing()) }
    const model = fallback([down, route([{ model: ollama('qwen3'), config: config(vendor) }])])
    const body = { model: 'm', input: 'Hi', max_output_tokens: 5, top_p: 0.3 }
    expect((await post(gateway({ models: { m: model } }), '/v1/responses', body)).status).toBe(200)
    expect(vendor.requests[0]!.body).toMatchObject({ options: { num_predict: 5, top_p: 0.3 } })
    expect(vendor.requests[0]!.body).not.toHaveProperty('max_output_tokens')
  })
})
