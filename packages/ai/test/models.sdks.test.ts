/**
 * `countTokens` and `listModels`, and what the vendors' own SDKs send for the same: openai 7.53.0,
 * @anthropic-ai/sdk 1.8.0, @google/genai 2.32.0, ollama 0.6.4. The answers are written from their types.
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import {
  ExponentialBackoff,
  llm,
  NoRetry,
  UserMessage,
  type ModelReference,
  type Provider,
  type ProviderConfig,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { cerebras } from '@skein/ai/cerebras'
import { deepseek } from '@skein/ai/deepseek'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { fallback, rateLimit, RateLimiter } from '@skein/ai/routing'
import { mistral } from '@skein/ai/mistral'
import { countTokens, listModels } from '@skein/ai/models'
import { moonshot } from '@skein/ai/moonshot'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { openrouter } from '@skein/ai/openrouter'
import { scripted } from '@skein/ai/testing'
import { xai } from '@skein/ai/xai'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'

interface Sent {
  readonly method: string
  readonly url: string
  readonly body: unknown
  readonly headers: Headers
}

/** A `fetch` that gives one answer after the other and keeps what was sent. */
function answering(...answers: readonly (object | (() => Response))[]) {
  const sent: Sent[] = []
  const left = [...answers]
  const fetch = async (input: unknown, init: RequestInit = {}): Promise<Response> => {
    const request = input instanceof Request ? input : new Request(String(input), init)
    const text = await request.text()
    sent.push({
      method: request.method,
      url: request.url,
      body: text === '' ? undefined : JSON.parse(text),
      headers: request.headers,
    })
    const answer = left.length > 1 ? left.shift() : left[0]
    return typeof answer === 'function' ? (answer as () => Response)() : Response.json(answer)
  }
  const config: ProviderConfig = {
    fetch,
    apiKey: 'sk-secret-0123456789',
    retryStrategy: new NoRetry(),
  }
  return { sent, fetch, config }
}

const tool = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
  run: () => 0,
}
const conversation = { system: 'Be brief.', tools: [tool], temperature: 0, maxOutputTokens: 50 }

describe('countTokens', () => {
  test('Anthropic: the body of its SDK', async () => {
    const { sent, fetch, config } = answering({ input_tokens: 17 })
    const model = anthropic('claude-sonnet-4-5')
    expect(await countTokens({ model, config, ...conversation }, 'Hello')).toBe(17)
    const sdk = new Anthropic({ apiKey: 'sk-secret-0123456789', fetch: fetch as never })
    await sdk.messages.countTokens({
      model: 'claude-sonnet-4-5',
      system: 'Be brief.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
      tools: [{ name: 'add', description: 'Adds.', input_schema: tool.parameters as never }],
    })
    expect(sent[0]).toMatchObject({ method: 'POST', url: 'https://api.anthropic.com/v1/messages/count_tokens' }) // prettier-ignore
    expect(sent[0]!.url).toBe(sent[1]!.url)
    expect(sent[0]!.body).toEqual(sent[1]!.body)
    expect(sent[0]!.headers.get('anthropic-version')).toBe('2023-06-01')
  })

  test('OpenAI: the path of its SDK, and only the fields that it has', async () => {
    const { sent, fetch, config } = answering({ object: 'response.input_tokens', input_tokens: 11 })
    const structure = { type: 'object', properties: {}, additionalProperties: false } as const
    expect(
      await countTokens({ model: openai('gpt-5'), config, ...conversation, structure }, 'Hello'),
    ).toBe(11)
    const body = sent[0]!.body as Record<string, unknown>
    expect(Object.keys(body).toSorted()).toEqual([
      'input',
      'instructions',
      'model',
      'text',
      'tools',
    ])
    await new OpenAI({ apiKey: 'k', fetch: fetch as never }).responses.inputTokens.count(body)
    expect(sent[0]!.url).toBe(sent[1]!.url)
    expect(body).toEqual(sent[1]!.body)
  })

  test('Google: the whole request, and the path of its SDK', async () => {
    const { sent, config } = answering({ totalTokens: 9 })
    const model = google('gemini-3-pro')
    expect(await countTokens({ model, config, ...conversation }, 'Hello')).toBe(9)
    expect(sent[0]).toMatchObject({
      url: 'https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:countTokens',
      body: {
        generateContentRequest: {
          model: 'models/gemini-3-pro',
          contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
          systemInstruction: { parts: [{ text: 'Be brief.' }] },
          tools: [{ functionDeclarations: [{ name: 'add' }] }],
        },
      },
    })
    const before = globalThis.fetch
    const theirs = answering({ totalTokens: 9 })
    try {
      globalThis.fetch = theirs.fetch as never
      await new GoogleGenAI({ apiKey: 'k', apiVersion: 'v1beta' }).models.countTokens({ model: 'gemini-3-pro', contents: 'Hello' }) // prettier-ignore
    } finally {
      globalThis.fetch = before
    }
    expect(sent[0]!.url).toBe(theirs.sent[0]!.url)
  })

  test('Moonshot: the messages', async () => {
    const { sent, config } = answering({ data: { total_tokens: 5 } })
    expect(await countTokens({ model: moonshot('kimi-k2'), config }, 'Hello')).toBe(5)
    expect(sent).toMatchObject([
      {
        url: 'https://api.moonshot.ai/v1/tokenizers/estimate-token-count',
        body: { model: 'kimi-k2', messages: [{ role: 'user', content: 'Hello' }] },
      },
    ])
  })

  test.each<[string, ModelReference]>([
    ['openai chat', openai('m', { api: 'chat' })],
    ['azure', azureOpenai('m')],
    ['xai', xai('m')],
    ['groq', groq('m')],
    ['mistral', mistral('m')],
    ['deepseek', deepseek('m')],
    ['cerebras', cerebras('m')],
    ['openrouter', openrouter('m')],
    ['ollama', ollama('m')],
    ['compatible', openaiCompatible({ name: 'local', baseUrl: 'http://127.0.0.1:1/v1' })('m')],
    ['scripted', scripted([])],
    ['fallback', fallback([anthropic('m')])],
  ])('%s: a typed error, and nothing is sent', async (_, model) => {
    const { sent, config } = answering({})
    const given = model.provider.name === 'fallback' ? {} : { config }
    await expect(countTokens({ model, ...given }, 'Hello')).rejects.toMatchObject({
      name: 'UPPError',
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(/has no endpoint that counts tokens/),
    })
    expect(sent).toEqual([])
  })

  test('takes what `generate` takes: a history, messages, blocks, schemas; runs no middleware', async () => {
    const { sent, config } = answering({ input_tokens: 3 })
    const model = rateLimit(anthropic('m'), { limiter: new RateLimiter({ requests: 1 }) })
    const seen: string[] = []
    const middleware = [{ name: 'spy', onStart: () => void seen.push('start') }]
    const options = { model, config, middleware, validate: true }
    const structure = { type: 'object', properties: { a: { type: 'string' } } } as const
    await countTokens({ ...options, validate: false, structure }, [new UserMessage('One')], 'Two')
    expect(sent[0]!.body).toMatchObject({
      messages: [{ role: 'user' }, { role: 'user' }],
      output_config: { format: { type: 'json_schema' } },
    })
    expect(seen).toEqual([])
    await expect(countTokens({ model, config })).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })

  test('is retried, aborted and redacted like a call', async () => {
    const failing = answering(() => Response.json({ error: { message: 'busy' } }, { status: 529 }), { input_tokens: 1 }) // prettier-ignore
    const model = anthropic('m')
    const retryStrategy = new ExponentialBackoff({ maxRetries: 2, baseDelay: 1 })
    expect(await countTokens({ model, config: { ...failing.config, retryStrategy } }, 'x')).toBe(1)
    expect(failing.sent).toHaveLength(2)

    const echo = answering(() =>
      Response.json({ error: { message: 'bad key sk-secret-0123456789' } }, { status: 401 }),
    )
    const error: unknown = await countTokens({ model, config: echo.config }, 'x').catch((e) => e)
    expect(error).toMatchObject({ code: 'AUTHENTICATION_FAILED' })
    expect(JSON.stringify(error) + String(error)).not.toContain('sk-secret')

    const signal = AbortSignal.abort()
    await expect(countTokens({ model, config: echo.config, signal }, 'x')).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    expect(echo.sent).toHaveLength(1)
  })

  test('an answer without a number is an error', async () => {
    const { config } = answering({ tokens: 'many' })
    await expect(countTokens({ model: anthropic('m'), config }, 'x')).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
    })
  })

  test('the model itself is not changed: the next call generates', async () => {
    const { sent, config } = answering(
      { input_tokens: 1 },
      { id: 'm', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage: {} },
    )
    const model = anthropic('m')
    await countTokens({ model, config }, 'x')
    expect((await llm({ model, config }).generate('x')).response.text).toBe('Hi')
    expect(sent.map(({ url }) => new URL(url).pathname)).toEqual([
      '/v1/messages/count_tokens',
      '/v1/messages',
    ])
  })
})

describe('listModels', () => {
  test('Anthropic: every page, as its SDK asks for them', async () => {
    const entry = (id: string) => ({
      type: 'model',
      id,
      display_name: `Claude ${id}`,
      created_at: '2026-02-01T00:00:00Z',
      max_input_tokens: 200_000,
      max_tokens: 64_000,
    })
    const pages = [
      { data: [entry('a')], has_more: true, first_id: 'a', last_id: 'a' },
      { data: [entry('b')], has_more: false, first_id: 'b', last_id: 'b' },
    ]
    const ours = answering(...pages)
    expect(await listModels(anthropic, { config: ours.config })).toEqual(
      ['a', 'b'].map((id) => ({
        id,
        name: `Claude ${id}`,
        contextTokens: 200_000,
        outputTokens: 64_000,
        createdAt: Date.parse('2026-02-01T00:00:00Z'),
        original: entry(id),
      })),
    )
    const theirs = answering(...pages)
    const ids: string[] = []
    const sdk = new Anthropic({ apiKey: 'k', fetch: theirs.fetch as never })
    for await (const { id } of sdk.models.list({ limit: 1000 })) ids.push(id)
    expect(ids).toEqual(['a', 'b'])
    expect(ours.sent.map(({ method, url }) => `${method} ${url}`)).toEqual(
      theirs.sent.map(({ method, url }) => `${method} ${url}`),
    )
    expect(ours.sent[0]!.headers.get('anthropic-version')).toBe('2023-06-01')
    expect(ours.sent[0]!.headers.get('x-api-key')).toBe('sk-secret-0123456789')
  })

  test('Google: every page, ids without their prefix', async () => {
    const entry = { name: 'models/gemini-3-pro', displayName: 'Gemini 3 Pro', inputTokenLimit: 1_048_576, outputTokenLimit: 65_536 } // prettier-ignore
    const { sent, config } = answering(
      { models: [entry], nextPageToken: 'p 2' },
      { models: [{ name: 'tunedModels/mine' }] },
    )
    expect(await listModels(google, { config })).toEqual([
      {
        id: 'gemini-3-pro',
        name: 'Gemini 3 Pro',
        contextTokens: 1_048_576,
        outputTokens: 65_536,
        original: entry,
      },
      { id: 'tunedModels/mine', original: { name: 'tunedModels/mine' } },
    ])
    const base = 'https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000'
    expect(sent.map(({ url }) => url)).toEqual([base, `${base}&pageToken=p+2`])
  })

  test('OpenAI: the path of its SDK', async () => {
    const data = [{ id: 'gpt-5', object: 'model', created: 1_754_000_000, owned_by: 'openai' }]
    const { sent, fetch, config } = answering({ object: 'list', data })
    expect(await listModels(openai, { config })).toEqual([
      { id: 'gpt-5', createdAt: 1_754_000_000_000, original: data[0] },
    ])
    for await (const _ of new OpenAI({ apiKey: 'k', fetch: fetch as never }).models.list()) continue
    expect(sent[0]!.url).toBe(sent[1]!.url)
  })

  test('Ollama: the path of its client', async () => {
    const models = [{ name: 'qwen3:8b', model: 'qwen3:8b', modified_at: '2026-01-01T00:00:00Z', size: 1 }] // prettier-ignore
    const { sent, fetch, config } = answering({ models })
    expect(await listModels(ollama, { config })).toEqual([
      { id: 'qwen3:8b', createdAt: Date.parse('2026-01-01T00:00:00Z'), original: models[0] },
    ])
    await new Ollama({ fetch: fetch as never }).list()
    expect(new URL(sent[0]!.url).pathname).toBe(new URL(sent[1]!.url).pathname)
  })

  test.each<[Provider, object, object]>([
    [groq, { id: 'm', context_window: 8, max_completion_tokens: 4 }, { contextTokens: 8, outputTokens: 4 }], // prettier-ignore
    [mistral, { id: 'm', name: 'M', max_context_length: 8 }, { contextTokens: 8, name: 'M' }],
    [openrouter, { id: 'm', name: 'M', context_length: 8, top_provider: { max_completion_tokens: 2 } }, { contextTokens: 8, outputTokens: 2 }], // prettier-ignore
    [moonshot, { id: 'm', context_length: 8 }, { contextTokens: 8 }],
    [xai, { id: 'm', created: 1 }, { createdAt: 1000 }],
    [deepseek, { id: 'm' }, {}],
    [cerebras, { id: 'm' }, {}],
    [azureOpenai, { id: 'm' }, {}],
    [openaiCompatible({ name: 'local', baseUrl: 'http://127.0.0.1:1/v1' }), { id: 'm' }, {}],
  ])('$name', async (provider, entry, expected) => {
    const { sent, config } = answering({ object: 'list', data: [entry, 'junk', { no: 'id' }] })
    expect(await listModels(provider, { config })).toEqual([
      expect.objectContaining({ id: 'm', original: entry, ...expected }),
    ])
    expect(new URL(sent[0]!.url).pathname).toMatch(/\/v1\/models$/)
  })

  test('a vendor whose list never ends is not asked for ever', async () => {
    const { sent, config } = answering({ data: [{ id: 'a' }], has_more: true, last_id: 'a' })
    expect(await listModels(anthropic, { config })).toHaveLength(100)
    expect(sent).toHaveLength(100)
  })

  test('typed errors: no endpoint, no list, refused, aborted', async () => {
    await expect(listModels(scripted([]).provider)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('lists its models'),
    })
    await expect(
      listModels(openai, { config: answering({ data: 'none' }).config }),
    ).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
    const refused = answering(() => Response.json({ error: { message: 'no' } }, { status: 401 }))
    await expect(listModels(openai, { config: refused.config })).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
    })
    await expect(
      listModels(openai, { config: refused.config, signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: 'CANCELLED' })
  })
})
