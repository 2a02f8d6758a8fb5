/** Endpoints next to inference, and errors of providers of one's own, in every form of call. */
import {
  createProvider,
  embedding,
  image,
  Image,
  llm,
  NoRetry,
  UPPError,
  UserMessage,
  type Middleware,
  type ProviderConfig,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { listModels } from '@skein/ai/models'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { says, scripted } from '@skein/ai/testing'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { png, stub } from './support/stub.ts'
import { llmVendors } from './support/vendors.ts'

const apiKey = 'sk-test-0123456789'

describe('endpoints next to inference', () => {
  const listed = { data: [{ id: 'a' }], models: [{ name: 'a' }] }
  const list = (): Response => Response.json(listed)

  test.each(llmVendors)(
    'UPP-012 UPP-013 UPP-015 $name: listModels takes the same config as a call',
    async ({ provider }) => {
      const retried: unknown[] = []
      const { fetch, seen } = stub((_, count) =>
        count === 1 ? new Response('{}', { status: 503 }) : list(),
      )
      const config: ProviderConfig = {
        apiKey: async () => apiKey,
        baseUrl: 'https://proxy.test/prefix/',
        fetch,
        headers: {
          'X-Team': 'blue',
          'X-Count': 7,
          Accept: 'text/plain',
          'X-None': undefined,
          'X-Key-Owner': 'me',
        },
        retryStrategy: { onRetry: ({ code }, attempt) => (retried.push([code, attempt]), 0) },
      }
      const models = await listModels(provider, { config })
      expect(models.map(({ id }) => id)).toEqual(['a'])
      expect(retried).toEqual([['PROVIDER_ERROR', 1]])
      expect(seen).toHaveLength(2)
      for (const { url, method, headers } of seen) {
        expect(url).toMatch(/^https:\/\/proxy\.test\/prefix\/[a-z]/)
        expect(method).toBe('GET')
        const {
          'x-team': team,
          'x-count': count,
          'x-key-owner': owner,
          accept,
          ...rest
        } = Object.fromEntries(headers)
        expect([team, count, owner, accept]).toEqual(['blue', '7', 'me', 'text/plain'])
        const values = Object.entries(rest).filter(([name]) => name !== 'anthropic-version')
        expect(values.map(([, value]) => value.replace('Bearer ', ''))).toEqual([apiKey])
      }
    },
  )

  test('UPP-018 UPP-019 the fixed headers of a vendor are sent next to custom ones, which win', async () => {
    const { fetch, seen } = stub(list)
    const local = openaiCompatible({
      name: 'local',
      baseUrl: 'https://x.test/v1',
      headers: { 'X-Fixed': '1', 'X-Both': 'fixed' },
    })
    const headers = { 'x-own': '2', 'x-BOTH': 'own' }
    await listModels(local, { config: { fetch } })
    await listModels(local, { config: { fetch, headers } })
    await listModels(anthropic, { config: { apiKey, fetch, headers: { 'x-own': '2' } } })
    const sent = seen.map(({ headers: one }) => Object.fromEntries(one))
    const accept = 'application/json'
    expect(sent).toEqual([
      { accept, 'x-fixed': '1', 'x-both': 'fixed' },
      { accept, 'x-fixed': '1', 'x-both': 'own', 'x-own': '2' },
      { accept, 'x-own': '2', 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' },
    ])
  })

  test('UPP-019 null takes a header away, however its name is written', async () => {
    const { fetch, seen } = stub(list)
    const headers = { 'X-API-KEY': null, 'Anthropic-Version': null, ACCEPT: null, 'x-own': '2' }
    await listModels(anthropic, { config: { apiKey, fetch, headers } })
    expect(Object.fromEntries(seen[0]!.headers)).toEqual({ 'x-own': '2' })
  })
})

describe('raw errors of a provider', () => {
  const thrown = new TypeError('the provider broke')
  const fail = (): never => {
    throw thrown
  }
  const provider = createProvider({
    name: 'broken',
    llm: {
      ...scripted([]).provider.handlers.llm!,
      bind: () => ({
        modelId: 'm',
        provider: 'broken',
        capabilities: scripted([]).provider.handlers.llm!.capabilities,
        complete: async () => fail(),
        stream: fail,
      }),
    },
    embedding: {
      maxBatchSize: 1,
      imageInput: false,
      bind: () => ({ modelId: 'm', provider: 'broken', embed: async () => fail() }),
    },
    image: {
      bind: () => ({
        modelId: 'm',
        provider: 'broken',
        capabilities: { generate: true, streaming: true, edit: true },
        generate: async () => fail(),
        edit: async () => fail(),
        stream: fail,
      }),
    },
  })
  const model = provider('m')
  const dot = Image.fromBase64(png, 'image/png')
  type Run = (middleware: readonly Middleware[]) => Promise<unknown>
  const runs: readonly [string, string, Run][] = [
    ['generate', 'llm', (middleware) => llm({ model, middleware }).generate('x')],
    ['stream', 'llm', (middleware) => llm({ model, middleware }).stream('x').turn],
    ['infer', 'llm', (middleware) => llm({ model, middleware }).infer([new UserMessage('x')]).next()], // prettier-ignore
    ['embed', 'embedding', (middleware) => embedding({ model, middleware }).embed('x')],
    ['embed in chunks', 'embedding', (middleware) => embedding({ model, middleware }).embed('x', { chunked: true }).result], // prettier-ignore
    ['make an image', 'image', (middleware) => image({ model, middleware }).generate('x')],
    ['edit an image', 'image', (middleware) => image({ model, middleware }).edit({ prompt: 'x', image: dot })], // prettier-ignore
    ['stream an image', 'image', (middleware) => image({ model, middleware }).stream('x').result],
  ]

  test.each(runs)('UPP-030 UPP-034 UPP-035 %s', async (_name, modality, run) => {
    const seen: unknown[] = []
    const watch: Middleware = { name: 'watch', onError: (error) => void seen.push(error) }
    const error: unknown = await run([watch]).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(UPPError)
    expect(error).toMatchObject({
      message: 'the provider broke',
      code: 'PROVIDER_ERROR',
      provider: 'broken',
      modality,
      cause: thrown,
    })
    expect(seen).toEqual([error])
  })
})

test('UPP-016 NoRetry and a strategy that answers null send one request, whatever the vendor says', async () => {
  for (const retryStrategy of [new NoRetry(), { onRetry: () => null }]) {
    const { fetch, seen } = stub(
      () => new Response('{}', { status: 503, headers: { 'x-should-retry': 'true' } }),
    )
    const config = { apiKey, fetch, retryStrategy }
    await expect(llm({ model: anthropic('m'), config }).generate('x')).rejects.toMatchObject({
      code: 'PROVIDER_ERROR',
      shouldRetry: true,
    })
    expect(seen).toHaveLength(1)
  }
})

test('UPP-037 a printed request shows neither the key nor the value of any header', async () => {
  const model = scripted([says('x')])
  const headers = { Authorization: 'Bearer token-4711', 'x-team': 'team-4711' }
  await llm({ model, config: { apiKey: 'key-4711', timeout: 5, headers } }).generate('x')
  const { config } = model.requests[0]!
  const shown = {
    timeout: 5,
    apiKey: '[hidden]',
    headers: { Authorization: '[hidden]', 'x-team': '[hidden]' },
  }
  expect(JSON.parse(JSON.stringify({ config }))).toEqual({ config: shown })
  expect(inspect({ config }, { depth: 9, getters: true })).not.toContain('4711')
  expect([config.apiKey, config.headers]).toEqual(['key-4711', headers])
})
