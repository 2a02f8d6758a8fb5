/** Which parameters the settings become for each model of the catalog. */
import { readFileSync } from 'node:fs'
import { llm, NoRetry, type LLMOptions, type ModelReference, type Warning } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { modelCatalog } from '@skein/ai/catalog'
import { google } from '@skein/ai/google'
import { mistral } from '@skein/ai/mistral'
import { openai } from '@skein/ai/openai'
import { says, vendorServer } from '@skein/ai/testing'
import { xai } from '@skein/ai/xai'
import { isPlainObject, type JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { modelSettingsPage, page } from '../../../../scripts/model-settings/model-settings.ts'

const families: Readonly<Record<string, (id: string) => ModelReference>> = {
  anthropic: (id) => anthropic(id),
  openai: (id) => openai(id),
  google: (id) => google(id),
  xai: (id) => xai(id),
  mistral: (id) => mistral(id),
}

const prefix = (model: ModelReference): string =>
  model.provider.name === 'google' ? '/v1beta' : '/v1'

async function sent(
  model: ModelReference,
  options: Partial<LLMOptions>,
): Promise<{ body: JsonObject; warnings: readonly Warning[] }> {
  const server = vendorServer([says('Hi')])
  const config = {
    fetch: server.fetch,
    baseUrl: `http://vendor.test${prefix(model)}`,
    apiKey: 'k',
    retryStrategy: new NoRetry(),
  }
  const { warnings } = await llm({ model, config, ...options }).generate('x')
  return { body: server.requests[0]!.body, warnings }
}

test('docs/model-settings.md says what is sent today', async () => {
  expect(readFileSync(page, 'utf8')).toBe(await modelSettingsPage())
})

test('each model of the five families has a rule with dated sources', () => {
  const entries = Object.entries(modelCatalog).filter(([key]) => key.split('/')[0]! in families)
  expect(entries.length).toBeGreaterThan(200)
  for (const [key, { accepts, acceptsSources }] of entries) {
    expect([key, accepts === null]).toEqual([key, false])
    expect([key, acceptsSources.length > 0]).toEqual([key, true])
    for (const { date } of acceptsSources) expect(date).toMatch(/^\d{4}-\d{2}-\d{2}$/)
  }
  expect(modelCatalog['groq/llama-3.1-8b-instant']?.accepts).toBeNull()
})

test('a limit in a rule is that of the catalog', () => {
  for (const [key, { accepts, limits }] of Object.entries(modelCatalog)) {
    const own = accepts?.maxOutputTokens
    if (own === undefined || limits.outputTokens === null) continue
    // The image model of Gemini 2.5 and the previews share a rule with the others.
    expect([key, own]).toEqual([key, limits.outputTokens])
  }
})

/** Words of vendors that cannot think, or refuse to be told so: not one of the newest rules. */
const thinkers = /claude-(?:opus|sonnet|haiku|fable|mythos)-[45]|claude-3-7/

test.each(
  Object.keys(modelCatalog).filter((key) => key.startsWith('anthropic/') && thinkers.test(key)),
)('reasoning: high makes %s think', async (key) => {
  const { body, warnings } = await sent(anthropic(key.slice('anthropic/'.length)), {
    reasoning: 'high',
  })
  expect((body['thinking'] as JsonObject)['type']).toMatch(/^(?:enabled|adaptive)$/)
  const budget = (body['thinking'] as JsonObject)['budget_tokens']
  if (budget !== undefined) expect(budget).toBeLessThan(body['max_tokens'] as number)
  expect(warnings).toEqual([])
})

/** The parameters of one request, without its text. */
const settingsOf = ({ model: _m, messages: _a, input: _b, contents: _c, ...rest }: JsonObject) =>
  rest
const adaptive = (effort: string): object => ({
  thinking: { type: 'adaptive' },
  output_config: { effort },
})
const enabled = (budget_tokens: number): object => ({
  thinking: { type: 'enabled', budget_tokens },
})

// What vendors document, written by hand: model, settings, parameters, pointers of the warnings.
test.each<[ModelReference, Partial<LLMOptions>, object, readonly string[]]>([
  [
    anthropic('claude-sonnet-4-5'),
    { reasoning: 'high' },
    { max_tokens: 64_000, ...enabled(24_576) },
    [],
  ],
  [
    anthropic('claude-opus-4-8'),
    { reasoning: 'low' },
    { max_tokens: 128_000, ...adaptive('low') },
    [],
  ],
  [anthropic('claude-opus-4-7'), { reasoning: 'off' }, { max_tokens: 128_000 }, []],
  [
    anthropic('claude-opus-4-7'),
    { reasoning: { budget: 9000 } },
    { max_tokens: 128_000, ...adaptive('medium') },
    ['reasoning'],
  ],
  [
    anthropic('claude-opus-4-7'),
    { temperature: 0, topP: 0.5 },
    { max_tokens: 128_000 },
    ['temperature', 'topP'],
  ],
  [
    anthropic('claude-sonnet-5'),
    { reasoning: 'off', temperature: 0 },
    { max_tokens: 128_000, thinking: { type: 'disabled' } },
    ['temperature'],
  ],
  [
    anthropic('claude-fable-5'),
    { reasoning: 'off' },
    { max_tokens: 128_000, ...adaptive('low') },
    ['reasoning'],
  ],
  [
    anthropic('claude-sonnet-5-5'),
    { reasoning: 'off' },
    { max_tokens: 128_000, thinking: { type: 'between_tools' } },
    ['reasoning'],
  ],
  [
    anthropic('claude-sonnet-4-6'),
    { reasoning: 'high', temperature: 0 },
    { max_tokens: 128_000, ...adaptive('high') },
    ['temperature'],
  ],
  [
    anthropic('claude-sonnet-4-6'),
    { reasoning: 'high', temperature: 1 },
    { max_tokens: 128_000, ...adaptive('high') },
    [],
  ],
  [
    anthropic('claude-sonnet-4-5'),
    { reasoning: 'high', maxOutputTokens: 900 },
    { max_tokens: 900 },
    ['reasoning'],
  ],
  [
    anthropic('claude-sonnet-4-5'),
    { maxOutputTokens: 90_000 },
    { max_tokens: 64_000 },
    ['maxOutputTokens'],
  ],
  [
    anthropic('claude-opus-4-5-20251101'),
    { reasoning: 'low' },
    { max_tokens: 64_000, ...enabled(1024), output_config: { effort: 'low' } },
    [],
  ],
  [
    anthropic('claude-3-5-haiku'),
    { reasoning: 'high', temperature: 0 },
    { max_tokens: 8192, temperature: 0 },
    ['reasoning'],
  ],
  [
    anthropic('claude-zeta-7'),
    { reasoning: 'high', temperature: 0 },
    { max_tokens: 32_000, ...adaptive('high') },
    ['temperature'],
  ],
  [
    openai('gpt-5.1'),
    { reasoning: 'off', temperature: 0 },
    { reasoning: { effort: 'none' }, temperature: 0 },
    [],
  ],
  [openai('gpt-5.1'), { temperature: 0 }, { temperature: 0 }, []],
  [openai('gpt-5.6-sol'), { temperature: 0 }, {}, ['temperature']],
  [openai('gpt-6-astra'), { reasoning: 'off' }, { reasoning: { effort: 'low' } }, ['reasoning']],
  [openai('gpt-5-pro'), { reasoning: 'low' }, { reasoning: { effort: 'high' } }, ['reasoning']],
  [
    openai('o3', { api: 'chat' }),
    { reasoning: 'off', stop: 'x' },
    { reasoning_effort: 'low' },
    ['stop', 'reasoning'],
  ],
  [
    openai('gpt-4.1'),
    { temperature: 0, maxOutputTokens: 99_999 },
    { temperature: 0, max_output_tokens: 32_768 },
    ['maxOutputTokens'],
  ],
  [
    openai('gpt-9-nova'),
    { reasoning: 'high', temperature: 0 },
    { reasoning: { effort: 'high' } },
    ['temperature'],
  ],
  [openai('ft:gpt-4o-2024-08-06:me::1'), { temperature: 0 }, { temperature: 0 }, []],
  [
    azureOpenai('production'),
    { reasoning: 'off', temperature: 0 },
    { reasoning: { effort: 'none' }, temperature: 0 },
    [],
  ],
  [azureOpenai('my-gpt-5'), { temperature: 0 }, {}, ['temperature']],
  [
    google('gemini-2.5-pro'),
    { reasoning: 'off' },
    { generationConfig: { thinkingConfig: { thinkingBudget: 128 } } },
    ['reasoning'],
  ],
  [
    google('gemini-2.5-flash-lite'),
    { reasoning: { budget: 100 } },
    { generationConfig: { thinkingConfig: { thinkingBudget: 512 } } },
    ['reasoning'],
  ],
  [google('gemini-2.0-flash'), { reasoning: 'high' }, {}, ['reasoning']],
  [
    google('gemini-3-pro-preview'),
    { reasoning: 'medium' },
    { generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } },
    ['reasoning'],
  ],
  [
    google('gemini-3-flash-preview'),
    { reasoning: 'off' },
    { generationConfig: { thinkingConfig: { thinkingLevel: 'minimal' } } },
    ['reasoning'],
  ],
  [
    google('gemini-3.8-flash'),
    { reasoning: 'off' },
    { generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } },
    ['reasoning'],
  ],
  [xai('grok-4'), { reasoning: 'high' }, {}, ['reasoning']],
  [xai('grok-4.3'), { reasoning: 'off' }, { reasoning_effort: 'none' }, []],
  [
    mistral('mistral-medium-3-5'),
    { reasoning: 'low' },
    { reasoning_effort: 'high' },
    ['reasoning'],
  ],
])('%o with %j', async (model, options, params, warned) => {
  const { body, warnings } = await sent(model, options)
  expect(settingsOf(body)).toEqual(params)
  expect(warnings.map(({ pointer }) => pointer)).toEqual(warned.map((name) => `/settings/${name}`))
})

describe('params', () => {
  test('are sent as they are, and decide what settings may be sent beside them', async () => {
    const params = { thinking: { type: 'enabled', budget_tokens: 5000 } }
    const { body, warnings } = await sent(anthropic('claude-sonnet-4-5'), {
      params,
      temperature: 0,
    })
    expect(settingsOf(body)).toEqual({ max_tokens: 64_000, ...params })
    expect(warnings).toMatchObject([{ pointer: '/settings/temperature' }])
    const refused = { temperature: 0.5, thinking: { type: 'disabled' } }
    const fable = await sent(anthropic('claude-fable-5'), { params: refused })
    expect(settingsOf(fable.body)).toEqual({ max_tokens: 128_000, ...refused })
    expect(fable.warnings).toEqual([])
  })
})

test('no combination of settings loses one without a warning', async () => {
  const options = {
    temperature: 0.5,
    topP: 0.9,
    stop: 'END',
    reasoning: 'high',
    maxOutputTokens: 30_000,
  } as const
  for (const [key, { limits }] of Object.entries(modelCatalog)) {
    const [vendor, ...rest] = key.split('/')
    const make = families[vendor!]
    if (!make || limits.contextTokens === null) continue
    const { body, warnings } = await sent(make(rest.join('/')), options)
    const names = JSON.stringify(
      isPlainObject(body['generationConfig']) ? body['generationConfig'] : body,
    )
    const warned = warnings.map(({ pointer }) => pointer)
    const written: Readonly<Record<string, RegExp>> = {
      temperature: /"temperature":0.5/,
      topP: /"top_?p":0.9/i,
      stop: /"END"/,
      reasoning: /thinking|reasoning|effort/,
      maxOutputTokens: /:30000/,
    }
    for (const [name, pattern] of Object.entries(written))
      expect([key, name, pattern.test(names) || warned.includes(`/settings/${name}`)]).toEqual([
        key,
        name,
        true,
      ])
  }
})
