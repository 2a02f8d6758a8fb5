/** The common settings of `llm` in the words of every vendor. */
import { llm, NoRetry, type LLMOptions, type Settings, type Warning } from '@skein/ai'
import { cacheMiddleware, memoryCache } from '@skein/ai/middleware'
import { fallback } from '@skein/ai/routing'
import { google } from '@skein/ai/google'
import { fails, says, scripted, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { vendors, type VendorUnderTest } from '../testing/vendors.ts'

const vendorNamed = (name: string): VendorUnderTest => vendors.find((one) => one.name === name)!

async function sent(
  { model, prefix }: Pick<VendorUnderTest, 'model' | 'prefix'>,
  options: Partial<LLMOptions>,
): Promise<{ body: JsonObject; warnings: readonly Warning[] }> {
  const server = vendorServer([says('Hi')])
  const { warnings } = await llm({
    model,
    config: {
      fetch: server.fetch,
      baseUrl: `http://vendor.test${prefix}`,
      apiKey: 'k',
      retryStrategy: new NoRetry(),
    },
    ...options,
  }).generate('x')
  return { body: server.requests[0]!.body, warnings }
}

const tool = {
  name: 'find',
  description: '',
  parameters: { type: 'object', properties: {} },
  run: () => 1,
}
const all: Settings = {
  temperature: 0,
  maxOutputTokens: 2000,
  topP: 0.5,
  stop: 'END',
  seed: 7,
  toolChoice: 'required',
  reasoning: 'low',
}

const chat = {
  max_tokens: 2000,
  temperature: 0,
  top_p: 0.5,
  stop: ['END'],
  seed: 7,
  reasoning_effort: 'low',
  tool_choice: 'required',
}
const { max_tokens: _, ...chatRest } = chat
const openaiChat = { ...chatRest, max_completion_tokens: 2000 }
const { reasoning_effort: __, ...noEffort } = chat
const { reasoning_effort: ____, ...moonshotChat } = openaiChat
const { seed: ___, ...noSeed } = noEffort
const { stop: _____, ...noStop } = noEffort
const { reasoning_effort: ______, ...openaiNoEffort } = openaiChat
const responses = {
  max_output_tokens: 2000,
  temperature: 0,
  top_p: 0.5,
  reasoning: { effort: 'low' },
  tool_choice: 'required',
}
const googleConfig = {
  maxOutputTokens: 2000,
  temperature: 0,
  topP: 0.5,
  stopSequences: ['END'],
  seed: 7,
}
const toolConfig = { functionCallingConfig: { mode: 'ANY' } }

interface Words {
  readonly body: object
  readonly dropped: readonly string[]
}

const words: Readonly<Record<string, Words>> = {
  anthropic: {
    body: {
      max_tokens: 2000,
      temperature: 0,
      stop_sequences: ['END'],
      tool_choice: { type: 'any' },
    },
    // A Claude with a budget does not think while a call is forced, and takes temperature or topP.
    dropped: ['seed', 'topP', 'reasoning'],
  },
  'openai responses': {
    body: { max_output_tokens: 2000, reasoning: { effort: 'low' }, tool_choice: 'required' },
    dropped: ['stop', 'seed', 'temperature', 'topP'],
  },
  'openai chat': { body: openaiNoEffort, dropped: ['reasoning'] },
  google: {
    body: {
      generationConfig: { ...googleConfig, thinkingConfig: { thinkingLevel: 'low' } },
      toolConfig,
    },
    dropped: [],
  },
  vertex: {
    body: {
      generationConfig: { ...googleConfig, thinkingConfig: { thinkingLevel: 'low' } },
      toolConfig,
    },
    dropped: [],
  },
  'vertex claude': {
    body: {
      anthropic_version: 'vertex-2023-10-16',
      max_tokens: 2000,
      temperature: 0,
      stop_sequences: ['END'],
      tool_choice: { type: 'any' },
    },
    // A Claude with a budget does not think while a call is forced, and takes temperature or topP.
    dropped: ['seed', 'topP', 'reasoning'],
  },
  'google 2.5': {
    body: {
      generationConfig: { ...googleConfig, thinkingConfig: { thinkingBudget: 1024 } },
      toolConfig,
    },
    dropped: [],
  },
  bedrock: {
    body: {
      inferenceConfig: { maxTokens: 2000, temperature: 0, stopSequences: ['END'] },
      toolConfig: {
        toolChoice: { any: {} },
        tools: [{ toolSpec: { name: 'find', inputSchema: { json: tool.parameters } } }],
      },
    },
    // As for Anthropic: a Claude with a budget does not think while a call is forced.
    dropped: ['seed', 'topP', 'reasoning'],
  },
  'google interactions': {
    body: {
      generation_config: {
        max_output_tokens: 2000,
        temperature: 0,
        top_p: 0.5,
        stop_sequences: ['END'],
        seed: 7,
        thinking_level: 'low',
        tool_choice: 'any',
      },
    },
    dropped: [],
  },
  ollama: {
    body: {
      think: true,
      options: { num_predict: 2000, temperature: 0, top_p: 0.5, stop: ['END'], seed: 7 },
    },
    dropped: ['toolChoice'],
  },
  openrouter: { body: { ...noEffort, reasoning: { effort: 'low' } }, dropped: [] },
  groq: { body: openaiChat, dropped: [] },
  xai: { body: noStop, dropped: ['stop', 'reasoning'] },
  'xai responses': {
    body: { max_output_tokens: 2000, temperature: 0, top_p: 0.5, tool_choice: 'required' },
    dropped: ['stop', 'seed', 'reasoning'],
  },
  deepseek: { body: { ...noEffort, thinking: { type: 'enabled' } }, dropped: [] },
  mistral: { body: { ...noSeed, random_seed: 7 }, dropped: ['reasoning'] },
  cerebras: { body: openaiChat, dropped: [] },
  moonshot: { body: { ...moonshotChat, thinking: { type: 'enabled' } }, dropped: [] },
  'azure-openai': { body: responses, dropped: ['stop', 'seed'] },
  'openai-compatible': { body: chat, dropped: [] },
}

/** The fields of a body that say something else than a setting. */
const others = new Set(['model', 'messages', 'input', 'contents', 'tools', 'stream'])
const settingsIn = (body: JsonObject): object =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !others.has(name)))

describe.each(vendors)('$name', (vendor) => {
  test('every setting in its words, and a warning for each that it does not have', async () => {
    const { body, dropped } = words[vendor.name]!
    const asked = await sent(vendor, { ...all, tools: [tool] })
    expect(settingsIn(asked.body)).toEqual(body)
    expect(asked.warnings).toEqual(
      dropped.map((name) => ({
        code: 'setting_dropped',
        message: expect.stringContaining(name),
        pointer: `/settings/${name}`,
      })),
    )
  })

  test('nothing is sent that is not set', async () => {
    const plain = await sent(vendor, { temperature: undefined })
    const { temperature: _none, ...body } = plain.body
    expect(body).toEqual(plain.body)
    expect(plain).toEqual(await sent(vendor, {}))
    const one = await sent(vendor, { maxOutputTokens: 77 })
    const given = JSON.stringify(one.body)
    expect(given).toMatch(/":77[,}]/)
    expect(given).not.toMatch(/temperature|top_?p|seed|reasoning|thinking/i)
  })

  test('UPP-005 UPP-006 params stay as they are, and win', async () => {
    const written = (await sent(vendor, all)).body
    const params = settingsIn(
      (await sent(vendor, { ...all, temperature: 1, maxOutputTokens: 99 })).body,
    )
    const both = await sent(vendor, { ...all, params: params as Record<string, unknown> })
    expect(settingsIn(both.body)).toEqual(params)
    expect(settingsIn(written)).not.toEqual(params)
  })
})

test.each(['openai chat', 'moonshot', 'xai', 'mistral'])(
  '%s: the output limit has two names in this format; the one in params wins, and both are never sent',
  async (name) => {
    const limits = async (params: object): Promise<object> => {
      const options = { params, maxOutputTokens: 5 } as LLMOptions
      const { max_tokens, max_completion_tokens } = (await sent(vendorNamed(name), options)).body
      return { max_tokens, max_completion_tokens }
    }
    expect(await limits({ max_tokens: 7 })).toEqual({ max_tokens: 7 })
    expect(await limits({ max_completion_tokens: 8 })).toEqual({ max_completion_tokens: 8 })
  },
)

test('a part of a nested parameter wins alone', async () => {
  const vendor = vendorNamed('google')
  const params = { generationConfig: { temperature: 1 } }
  const { body } = await sent(vendor, { temperature: 0, seed: 7, params })
  expect(body['generationConfig']).toEqual({ temperature: 1, seed: 7 })
})

describe('reasoning', () => {
  test.each<[string, Settings['reasoning'], object, 'exact' | 'adjusted' | 'dropped']>([
    ['anthropic', 'off', { thinking: { type: 'disabled' } }, 'exact'],
    ['anthropic', 'high', { thinking: { type: 'enabled', budget_tokens: 3276 } }, 'exact'],
    [
      'anthropic',
      { budget: 2048 },
      { thinking: { type: 'enabled', budget_tokens: 2048 } },
      'exact',
    ],
    [
      'anthropic',
      { budget: 99 },
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      'adjusted',
    ],
    ['openai responses', 'off', { reasoning: { effort: 'minimal' } }, 'adjusted'],
    ['openai responses', { budget: 2048 }, { reasoning: { effort: 'low' } }, 'adjusted'],
    ['openai chat', 'off', {}, 'exact'],
    ['openai chat', 'high', {}, 'dropped'],
    ['google 2.5', 'off', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, 'exact'],
    [
      'google 2.5',
      'high',
      { generationConfig: { thinkingConfig: { thinkingBudget: 24_576 } } },
      'exact',
    ],
    [
      'google',
      'off',
      { generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } },
      'adjusted',
    ],
    [
      'google',
      { budget: 99 },
      { generationConfig: { thinkingConfig: { thinkingBudget: 99 } } },
      'exact',
    ],
    ['ollama', 'off', { think: false }, 'exact'],
    ['ollama', 'high', { think: true }, 'exact'],
    ['ollama', { budget: 99 }, {}, 'dropped'],
    ['openrouter', { budget: 99 }, { reasoning: { max_tokens: 99 } }, 'exact'],
    ['openrouter', 'off', { reasoning: { effort: 'none' } }, 'exact'],
    ['deepseek', 'off', { thinking: { type: 'disabled' } }, 'exact'],
    ['mistral', 'off', {}, 'exact'],
    ['mistral', 'high', {}, 'dropped'],
    ['azure-openai', 'off', { reasoning: { effort: 'none' } }, 'exact'],
  ])('%s: %j', async (name, reasoning, expected, outcome) => {
    const options = { reasoning, maxOutputTokens: 4096 }
    const { body, warnings } = await sent(vendorNamed(name), options)
    expect(body).toMatchObject(expected)
    if (Object.keys(expected).length === 0)
      expect(JSON.stringify(body)).not.toMatch(/reasoning|think|effort/)
    expect(warnings.map(({ code, pointer }) => [code, pointer])).toEqual(
      outcome === 'exact' ? [] : [[`setting_${outcome}`, '/settings/reasoning']],
    )
  })
})

test.each<[string, object]>([
  ['openai chat', { tool_choice: { type: 'function', function: { name: 'find' } } }],
  ['openai responses', { tool_choice: { type: 'function', name: 'find' } }],
  ['anthropic', { tool_choice: { type: 'tool', name: 'find' } }],
  [
    'google',
    { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['find'] } } },
  ],
])('%s: one tool can be required', async (name, expected) => {
  const options = { tools: [tool], toolChoice: { tool: 'find' } }
  expect((await sent(vendorNamed(name), options)).body).toMatchObject(expected)
})

test('a fallback writes the settings in the words of the model that answers', async () => {
  const server = vendorServer([says('Hi')])
  const config = { fetch: server.fetch, baseUrl: 'http://vendor.test/v1beta', apiKey: 'k' }
  const model = fallback([scripted([fails()]), { model: google('gemini-3-pro'), config }])
  await llm({ model, maxOutputTokens: 9 }).generate('x')
  expect(server.requests[0]!.body['generationConfig']).toEqual({ maxOutputTokens: 9 })
})

test('other providers see the settings in the request; with() changes them', async () => {
  const model = scripted([says('a'), says('b'), says('c')])
  const instance = llm({ model, temperature: 0.5 })
  await instance.generate('x')
  await instance.with({ seed: 1 }).generate('x')
  await instance.with({ temperature: undefined }).generate('x')
  expect(model.requests.map(({ settings }) => settings)).toEqual([
    { temperature: 0.5 },
    { temperature: 0.5, seed: 1 },
    undefined,
  ])
})

test('answers to other settings are not taken from the cache', async () => {
  const model = scripted([says('a'), says('b')])
  const instance = llm({
    model,
    middleware: [cacheMiddleware({ store: memoryCache() })],
    temperature: 0,
  })
  expect((await instance.generate('x')).response.text).toBe('a')
  expect((await instance.generate('x')).response.text).toBe('a')
  expect((await instance.with({ temperature: 1 }).generate('x')).response.text).toBe('b')
})
