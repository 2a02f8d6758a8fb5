import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { llm, type LLMOptions } from '../llm.ts'
import { fallback } from '../routing/fallback.ts'
import { azureOpenaiResource } from '../vendors/azure-openai.ts'
import { openai } from '../vendors/openai.ts'
import { Image } from '../media/image.ts'
import { UserMessage } from '../contract/message.ts'
import { calls, fails, says, scripted, stops } from '../testing/index.ts'
import type { StreamEvent } from '../contract/event.ts'
import { defer } from '../contract/tool.ts'
import { cacheMiddleware, type CacheOptions, memoryCache } from './cache.ts'

function setup(options: Partial<LLMOptions> = {}, cache: Partial<CacheOptions> = {}) {
  const store = memoryCache()
  const model = scripted((_, index) => says(`Answer ${index}.`))
  const middleware = [cacheMiddleware({ store, ...cache })]
  return { store, model, instance: llm({ model, middleware, ...options }) }
}

const textOf = (events: readonly StreamEvent[]): string =>
  events.map((event) => (event.type === 'text_delta' ? event.delta.text : '')).join('')

test('the same request is answered from the store, waiting or streaming, and the turn says so', async () => {
  const { model, instance } = setup()
  const first = await instance.generate('Hi')
  const events: StreamEvent[] = []
  const stream = instance.stream('Hi')
  for await (const event of stream) events.push(event)
  const second = await stream.turn
  expect(model.requests).toHaveLength(1)
  expect(textOf(events)).toBe('Answer 0.')
  expect(events.map(({ type }) => type)).toContain('content_block_start')
  expect(second.response.content).toEqual(first.response.content)
  expect(second.warnings.map(({ code }) => code)).toEqual(['cache_hit'])
  expect(first.usage.totalTokens).toBeGreaterThan(0)
  expect(second.usage.totalTokens).toBe(0)
})

test('what shapes the answer shapes the key; ids, times and keys do not', async () => {
  const { model, instance } = setup()
  const asked = async (options: Partial<LLMOptions>, input: string | UserMessage = 'Hi') => {
    const before = model.requests.length
    await instance.with(options).generate(input)
    return model.requests.length > before
  }
  const tool = { name: 'now', description: '', parameters: {}, run: () => '' }
  expect(await asked({})).toBe(true)
  expect(await asked({ config: { apiKey: 'sk-secret' } })).toBe(false)
  expect(await asked({ config: { headers: { traceparent: '00-1-2-01' } } })).toBe(false)
  expect(await asked({}, new UserMessage('Hi', { id: 'other' }))).toBe(false)
  expect(await asked({ params: { temperature: 0 } })).toBe(true)
  expect(await asked({ system: 'Be brief.' })).toBe(true)
  expect(await asked({ tools: [tool] })).toBe(true)
  expect(await asked({ structure: { type: 'object' } }).catch(() => true)).toBe(true)
  expect(await asked({ config: { baseUrl: 'https://other.example/v1' } })).toBe(true)
  const picture = Image.fromBytes(new Uint8Array([1, 2]), 'image/png').toBlock()
  expect(await asked({}, new UserMessage([picture]))).toBe(true)
  expect(await asked({}, new UserMessage([picture]))).toBe(false)
})

describe('what decides who answers is part of the key', () => {
  /** Counts how many of these models, asked the same through one store, had to answer themselves. */
  async function answered(...options: readonly LLMOptions[]): Promise<number> {
    const middleware = [cacheMiddleware({ store: memoryCache() })]
    let count = 0
    const fetch = async (): Promise<Response> => {
      count++
      const content = [{ type: 'output_text', text: 'Hello.', annotations: [] }]
      return Response.json({
        id: 'resp_1',
        status: 'completed',
        output: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }],
        choices: [{ index: 0, finish_reason: 'stop', message: { content: 'Hello.' } }],
        usage: {},
      })
    }
    for (const one of options)
      await llm({ ...one, middleware, config: { apiKey: 'k', fetch, ...one.config } }).generate('Q')
    return count
  }

  const eu = azureOpenaiResource('contoso-eu')
  const us = azureOpenaiResource('contoso-us')
  const api = (baseUrl: string) => ({ model: openai('g'), config: { baseUrl } })

  test.each<[string, number, LLMOptions[]]>([
    ['the same model twice', 1, [{ model: openai('g') }, { model: openai('g') }]],
    ['two resources of Azure', 2, [{ model: eu('d') }, { model: us('d') }]],
    ['two APIs', 2, [{ model: openai('g') }, { model: openai('g', { api: 'chat' }) }]],
    [
      'members at two addresses',
      2,
      ['https://a.test/v1', 'https://b.test/v1'].map((url) => ({ model: fallback([api(url)]) })),
    ],
    [
      'members with other params',
      2,
      [0, 1].map((temperature) => ({
        model: fallback([{ model: openai('g'), params: { temperature } }]),
      })),
    ],
    [
      'a header that names the tenant',
      2,
      ['a', 'b'].map((project) => ({
        model: openai('g'),
        config: { headers: { 'OpenAI-Project': project } },
      })),
    ],
  ])('%s', async (_, count, options) => {
    expect(await answered(...options)).toBe(count)
  })
})

test('no secret is in what is stored', async () => {
  const writes: string[] = []
  const store = {
    get: () => undefined,
    set: (...args: unknown[]) => void writes.push(String(args)),
  }
  const { instance } = setup({ config: { apiKey: 'sk-canary' } }, { store })
  await instance.generate('Hi')
  expect(writes).toHaveLength(1)
  expect(writes.join()).not.toContain('sk-canary')
})

test('scopes share nothing', async () => {
  let tenant = 'a'
  const { model, instance } = setup({}, { scope: () => tenant })
  await instance.generate('Hi')
  tenant = 'b'
  await instance.generate('Hi')
  expect(model.requests).toHaveLength(2)
})

test('an answer is used until its time is over', async () => {
  const clock = manualClock()
  const { model, instance } = setup({}, { store: memoryCache({ clock }), ttlMs: 100 })
  await instance.generate('Hi')
  clock.advance(99)
  await instance.generate('Hi')
  expect(model.requests).toHaveLength(1)
  clock.advance(1)
  await instance.generate('Hi')
  expect(model.requests).toHaveLength(2)
})

describe('not kept', () => {
  const now = { name: 'now', description: '', parameters: {}, run: () => 'noon' as unknown }

  test.each([
    ['a failure', fails()],
    ['a failure in the middle', [says('Half'), fails()]],
    ['an answer that a limit ended', [says('Half'), stops('max_tokens')]],
    ['a refusal', [says('No.'), stops('refusal')]],
  ] as const)('%s', async (_, step) => {
    const model = scripted([step, says('Now.')])
    const { instance, store } = setup({ model })
    await instance.generate('Hi').catch(() => {})
    expect(store.size).toBe(0)
    expect((await instance.generate('Hi')).response.text).toBe('Now.')
  })

  test('a turn with a deferred call', async () => {
    const later = { ...now, run: () => defer({ kind: 'input', request: null }) }
    const model = scripted([calls('now', {})])
    const { instance, store } = setup({ model, tools: [later] })
    expect((await instance.generate('Hi')).openCalls).toHaveLength(1)
    expect(store.size).toBe(0)
  })

  test('a turn that failed after its first inference', async () => {
    const model = scripted([calls('now', {}), fails()])
    const { instance, store } = setup({ model, tools: [now] })
    await expect(instance.generate('Hi')).rejects.toThrow()
    expect(store.size).toBe(0)
  })

  test('but every inference of a tool loop that ended well is', async () => {
    const model = scripted([calls('now', {}), says('Noon.')])
    const { instance, store } = setup({ model, tools: [now] })
    await instance.generate('Hi')
    expect((await instance.generate('Hi')).response.text).toBe('Noon.')
    expect(store.size).toBe(2)
    expect(model.requests).toHaveLength(2)
  })
})

test('a store that fails is reported and the call goes on', async () => {
  const errors: unknown[] = []
  const broken = {
    get: () => Promise.reject(new Error('down')),
    set: () => Promise.reject(new Error('still down')),
  }
  const onStoreError = (error: unknown): void => void errors.push(error)
  const { instance } = setup({}, { store: broken, onStoreError })
  expect((await instance.generate('Hi')).response.text).toBe('Answer 0.')
  expect(errors.map(String)).toEqual(['Error: down', 'Error: still down'])
  const damaged = { get: () => '[{"type":"text_delta"}]', set: () => {} }
  const other = setup({}, { store: damaged, onStoreError })
  expect((await other.instance.generate('Hi')).response.text).toBe('Answer 0.')
})

test('a request that JSON cannot say goes through uncached', async () => {
  const { model, instance } = setup({ params: { limit: 10n } })
  await instance.generate('Hi').catch(() => {})
  await instance.generate('Hi').catch(() => {})
  expect(model.requests).toHaveLength(2)
})

test('the memory store drops what was not used for longest', () => {
  const store = memoryCache({ maxEntries: 2, maxCharacters: 5 })
  store.set('a', '1')
  store.set('b', '2')
  store.get('a')
  store.set('c', '3')
  expect([store.get('a'), store.get('b'), store.get('c')]).toEqual(['1', undefined, '3'])
  store.set('d', '12345')
  expect(store.size).toBe(1)
  store.set('e', '123456')
  expect(store.get('d')).toBe('12345')
})
