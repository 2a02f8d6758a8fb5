/** One instance: derived instances, single inferences, batches of tools, capabilities. */
import {
  createProvider,
  image,
  llm,
  Thread,
  UserMessage,
  type BoundImageModel,
  type LLMCapabilities,
  type LLMOptions,
  type Middleware,
  type Tool,
  type ToolUseStrategy,
} from '@skein/ai'
import { fallback } from '@skein/ai/middleware'
import { openai } from '@skein/ai/openai'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { llmVendors } from './support/vendors.ts'

const apiKey = 'sk-test-0123456789'
const tool = (name: string, run: (params: { n: number }) => unknown = () => name): Tool => ({
  name,
  description: '',
  parameters: { type: 'object' },
  run,
})

describe('a model reference', () => {
  test('UPP-039 UPP-011 is frozen, and the caller’s options are copied, not frozen', () => {
    const options: { api?: 'chat' } = { api: 'chat' }
    const reference = openai('gpt-5', options)
    expect(reference).toEqual({ modelId: 'gpt-5', provider: openai, options: { api: 'chat' } })
    expect([Object.isFrozen(reference), Object.isFrozen(reference.options)]).toEqual([true, true])
    expect(Object.isFrozen(options)).toBe(false)
    delete options.api
    expect(llm({ model: reference, config: { apiKey } }).model.wire).toBe('openai-chat')
  })
})

describe('with', () => {
  const changes: { readonly [Name in keyof LLMOptions]?: LLMOptions[Name] } = {
    model: scripted([says('{}')]),
    config: { apiKey: 'other' },
    params: { b: 2 },
    system: 'Be long.',
    tools: [tool('new')],
    structure: { type: 'object' },
    temperature: 0,
    seed: 0,
  }

  test.each(Object.entries(changes))(
    'UPP-042 UPP-043 UPP-008 %s is changed in the derived instance, and nothing else anywhere',
    async (name, value) => {
      const model = scripted([says('{}'), says('{}'), says('{}')])
      const given = {
        model,
        config: { apiKey: 'first' },
        params: { a: 1 },
        system: 'Be brief.',
        tools: [tool('old')],
      }
      const before = llm(given)
      await before.generate('x')
      const derived = before.with({ [name]: value })
      await derived.generate('x')
      await before.generate('x')
      const asked = name === 'model' ? (value as typeof model).requests : model.requests.slice(1, 2)
      const isOwn = (field: string): boolean => field in given && field !== 'model'
      const [first, again] = [model.requests[0]!, model.requests.at(-1)!]
      const settled = (request: object): object =>
        Object.fromEntries(
          Object.entries(request).filter(([field]) => isOwn(field) || field === 'settings'),
        )
      expect(settled(again)).toEqual(settled(first))
      const isSetting = name === 'temperature' || name === 'seed'
      const changed = isSetting ? { settings: { [name]: value } } : { [name]: value }
      expect(asked).toHaveLength(1)
      expect(asked[0]).toMatchObject(name === 'model' ? settled(first) : { ...settled(first), ...changed }) // prettier-ignore
      expect(derived.model.modelId).toBe(
        (name === 'model' ? (value as typeof model) : model).modelId,
      )
    },
  )

  test('UPP-042 another model is bound with its own id and capabilities', () => {
    const config = { apiKey }
    const before = llm({ model: openai('gpt-5'), config })
    const derived = before.with({ model: openai('gpt-4o-audio', { api: 'chat' }) })
    expect([derived.model.modelId, derived.capabilities.audioInput]).toEqual(['gpt-4o-audio', true])
    expect([before.model.modelId, before.capabilities.audioInput]).toEqual(['gpt-5', false])
  })
})

describe.each([[true], [false]])('executeTools, streaming: %s', (streaming) => {
  const asked = [
    { toolCallId: 'c1', toolName: 'own', arguments: { n: 1 } },
    { toolCallId: 'c2', toolName: 'missing', arguments: {} },
  ]

  test('UPP-043 UPP-044 the tools of the batch, strategy, middleware and provider of the instance', async () => {
    const log: string[] = []
    const toolStrategy: ToolUseStrategy = {
      onBeforeCall: (_, { n }) => ({ proceed: true, params: { n: Number(n) + 1 } }),
    }
    const watch: Middleware = {
      name: 'watch',
      onToolCall: ({ toolName, arguments: args }) => void log.push(`${toolName} ${args['n']}`),
      onToolResult: (_, result) => void log.push(`result ${result}`),
    }
    const model = scripted([])
    const instance = llm({ model, tools: [tool('own', () => 'of the instance'), tool('missing')], toolStrategy, middleware: [watch] }) // prettier-ignore
    const tools = [tool('own', ({ n }) => `of the batch ${n}`)]
    const run = instance.executeTools({ calls: asked, tools, streaming })
    let step = await run.next()
    let events = 0
    for (; !step.done; step = await run.next()) events += step.value.length
    expect(step.value.settled.map(({ outcome }) => outcome)).toEqual([
      { type: 'done', result: 'of the batch 2' },
      { type: 'error', message: expect.stringContaining('"missing"') },
    ])
    expect(log).toEqual(['own 2', 'result of the batch 2'])
    expect(events > 0).toBe(streaming)
  })

  test('UPP-030 UPP-034 a hook that throws is INVALID_REQUEST of the instance’s provider', async () => {
    const thrown = new Error('no')
    const toolStrategy: ToolUseStrategy = {
      onToolCall: () => {
        throw thrown
      },
    }
    const instance = llm({ model: scripted([]), tools: [tool('own')], toolStrategy })
    const running = instance.executeTools({ calls: asked, streaming }).next()
    await expect(running).rejects.toMatchObject({
      name: 'UPPError',
      code: 'INVALID_REQUEST',
      provider: 'scripted',
      modality: 'llm',
      cause: thrown,
    })
  })
})

test('UPP-043 an inference listens to its own signal and to that of its instance', async () => {
  for (const which of ['instance', 'own'] as const) {
    const controllers = { instance: new AbortController(), own: new AbortController() }
    const model = scripted(() => {
      controllers[which].abort(which)
      return says('too late')
    })
    const instance = llm({ model, signal: controllers.instance.signal })
    const running = instance.infer([new UserMessage('x')], { signal: controllers.own.signal })
    await expect(running.next()).rejects.toMatchObject({ code: 'CANCELLED', cause: which })
  }
})

test('UPP-085 UPP-048 whoever walks through a thread sees the messages it began with', () => {
  const thread = new Thread({ messages: ['a', 'b', 'c'].map((text) => new UserMessage(text)) })
  const seen: string[] = []
  for (const { text } of thread) {
    seen.push(text)
    if (text === 'a') thread.push(new UserMessage('d'))
    if (text === 'b') thread.clear()
  }
  expect(seen).toEqual(['a', 'b', 'c'])
  expect([thread.length, thread.messages]).toEqual([0, []])
})

describe('capabilities', () => {
  /** The kinds of input besides text, by vendor and API; everything else is supported by all. */
  const inputs: readonly (readonly [vendor: string, api: string | undefined, kinds: string])[] = [
    ['anthropic', undefined, 'image document'],
    ['azure-openai', undefined, 'image document'],
    ['azure-openai', 'chat', 'image document audio'],
    ['cerebras', undefined, 'image'],
    ['deepseek', undefined, ''],
    ['google', undefined, 'image document video audio'],
    ['groq', undefined, 'image'],
    ['mistral', undefined, 'image document audio'],
    ['moonshot', undefined, 'image video'],
    ['ollama', undefined, 'image'],
    ['openai', undefined, 'image document'],
    ['openai', 'chat', 'image document audio'],
    ['openai-compatible', undefined, 'image document audio'],
    ['openrouter', undefined, 'image document video audio'],
    ['openrouter', 'responses', 'image document video audio'],
    ['xai', undefined, 'image'],
    ['xai', 'responses', 'image'],
  ]

  test('every shipped vendor is listed', () => {
    const listed = new Set(inputs.map(([vendor]) => vendor))
    expect([...listed].toSorted()).toEqual(llmVendors.map(({ name }) => name).toSorted())
  })

  test.each(inputs)('UPP-050 %s, API %s: text, %s', (vendor, api, kinds) => {
    const { provider } = llmVendors.find(({ name }) => name === vendor)!
    const model = provider('m', (api && { api }) as never)
    const has = (kind: string): boolean => kinds.split(' ').includes(kind)
    const expected = {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: has('image'),
      documentInput: has('document'),
      videoInput: has('video'),
      audioInput: has('audio'),
    }
    expect(llm({ model, config: { apiKey } }).capabilities).toEqual(expected)
    if (api === undefined) expect(provider.handlers.llm!.capabilities).toEqual(expected)
  })

  const names = Object.keys(llm({ model: scripted([]) }).capabilities) as (keyof LLMCapabilities)[]

  test.each(names)('UPP-050 %s of a combination is what all its members have', (name) => {
    const lacking = scripted([], { capabilities: { [name]: false } })
    const { capabilities } = llm({ model: fallback([scripted([]), lacking]) })
    expect(names.filter((one) => !capabilities[one])).toEqual([name])
  })

  test('UPP-051 those of images are as they were when the instance was made', () => {
    const changing = { generate: true, streaming: false, edit: false }
    const bound: BoundImageModel = {
      modelId: 'm',
      provider: 'p',
      capabilities: changing,
      generate: async () => ({ images: [] }),
    }
    const instance = image({ model: createProvider({ name: 'p', image: { bind: () => bound } })('m') }) // prettier-ignore
    changing.edit = true
    expect(instance.capabilities).toEqual({ generate: true, streaming: false, edit: false })
    expect(Object.isFrozen(instance.capabilities)).toBe(true)
  })
})

test('UPP-052 the core asks again only for tools and pauses', async () => {
  const reasons = ['max_tokens', 'context_window', 'refusal', 'content_filter', 'stop_sequence', 'other', 'end_turn'] as const // prettier-ignore
  for (const reason of reasons) {
    const model = scripted([[says('cut'), stops(reason)], says('more')])
    const turn = await llm({ model, tools: [tool('t')] }).generate('x')
    expect([reason, turn.cycles, turn.response.text]).toEqual([reason, 1, 'cut'])
    expect(model.requests).toHaveLength(1)
  }
  const model = scripted([calls('t', {}), says('done')])
  expect((await llm({ model, tools: [tool('t')] }).generate('x')).cycles).toBe(2)
})
