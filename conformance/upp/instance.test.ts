/** One instance: models, derived instances, single inferences, batches of tools. */
import {
  embedding,
  image,
  llm,
  Thread,
  UserMessage,
  type LLMOptions,
  type Middleware,
  type Tool,
  type ToolUseStrategy,
} from '@skein/ai'
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

describe('a model', () => {
  test.each(llmVendors)('UPP-039 $name: is bound with the id that it was given', ({ provider }) => {
    for (const id of ['m', 'models/m', 'owner/m:free', 'Models/M ']) {
      const instance = llm({ model: provider(id), config: { apiKey } })
      expect([instance.model.modelId, instance.model.provider]).toEqual([id, provider.name])
    }
  })

  const none = [
    undefined,
    null,
    {},
    { modelId: 'm' },
    'gpt-5',
    { modelId: 'm', provider: {} },
    { modelId: 'm', provider: Object.assign(() => {}, { handlers: {} }) },
    { modelId: 'm', provider: () => {} },
  ]

  test.each(none)(
    'UPP-041 UPP-034 %j is none: INVALID_REQUEST of the modality, immediately',
    (given) => {
      for (const [modality, open] of Object.entries({ llm, embedding, image })) {
        const options = { model: given } as never
        const refused = expect.objectContaining({
          name: 'UPPError',
          code: 'INVALID_REQUEST',
          modality,
        })
        expect(() => open(options)).toThrow(refused)
        expect(() => open(undefined as never)).toThrow(refused)
      }
    },
  )
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
      const derived = before.with({ [name]: value } as object)
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

test('UPP-085 a thread copies the list it is made from, and adds all of what it is given or nothing', () => {
  const given = ['a', 'b'].map((text) => new UserMessage(text))
  const thread = new Thread({ messages: given })
  given.pop()
  expect(thread.length).toBe(2)
  thread.push(new UserMessage('c'))
  expect([thread.length, given.length]).toEqual([3, 1])
  expect(() => thread.push(given[0]!, { role: 'user' } as never, given[0]!)).toThrow(/Argument 1/)
  expect(thread.messages.map(({ text }) => text)).toEqual(['a', 'b', 'c'])
})

test('UPP-085 UPP-048 anyone who walks through a thread sees the messages it began with', () => {
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

test('UPP-049 stream and generate answer invalid inputs alike: later, not when they are called', async () => {
  const instance = llm({ model: scripted([]) })
  for (const given of [[], [7], ['ok', 7], [[], { role: 'user' }], [[null], 'x']] as never[][]) {
    const refused = { code: 'INVALID_REQUEST', provider: 'scripted', modality: 'llm' }
    const stream = instance.stream(...given)
    await expect(stream.turn).rejects.toMatchObject(refused)
    await expect(instance.generate(...given)).rejects.toMatchObject(refused)
  }
})

test('UPP-008 UPP-044 each call has a state of its own, which its hooks share', async () => {
  const states: Map<string, unknown>[] = []
  const note = (name: string): Middleware => ({
    name,
    onStart: ({ state }) => void states.push(state.set(name, 1)),
    onEnd: ({ state }) => void states.push(state),
  })
  const middleware = [note('a'), note('b')]
  const instance = llm({ model: scripted([says('x'), says('y')]), middleware })
  await instance.generate('x')
  await instance.stream('y').turn
  const [first, ...others] = states.slice(0, 4)
  expect(others).toEqual([first, first, first])
  expect(new Set(states.slice(0, 4)).size).toBe(1)
  expect(new Set(states).size).toBe(2)
  expect([...first!.keys()]).toEqual(['a', 'b'])
})

test('UPP-078 UPP-081 after a pause the response is the last part, and every part counts', async () => {
  const metadata = { scripted: { part: 1 } }
  const parts = ['one', 'two', 'three'].map((text, index) => [
    says(text),
    stops(index < 2 ? 'pause' : 'end_turn', { metadata }),
  ])
  const turn = await llm({ model: scripted(parts) }).generate('x')
  expect([turn.response.text, turn.response === turn.messages.at(-1)]).toEqual(['three', true])
  expect([turn.cycles, turn.messages.length, turn.stopReason]).toEqual([3, 4, 'end_turn'])
})

test('UPP-081 inferences are counted from 1, or from the number that they are given', async () => {
  const cycles: number[] = []
  const count: Middleware = { name: 'count', onCycle: (_, cycle) => void cycles.push(cycle) }
  const model = scripted([...[1, 2, 3, 4].map((n) => calls('t', { n })), says('done'), says('x')])
  const instance = llm({ model, tools: [tool('t')], middleware: [count] })
  const turn = await instance.generate('x')
  expect([turn.cycles, turn.usageByCycle.length]).toEqual([5, 5])
  await instance.infer([new UserMessage('x')], { cycle: 7 }).next()
  expect(cycles).toEqual([1, 2, 3, 4, 5, 7])
})

test('UPP-083 an execution has the tool’s own result, whatever form the model sees', async () => {
  const model = scripted([calls('t', { n: 1 }), says('done')])
  const shown = { ...tool('t', () => ({ rows: [1, 2] })), toModel: () => 'two rows' }
  const turn = await llm({ model, tools: [shown] }).generate('x')
  expect(turn.toolExecutions).toEqual([
    {
      toolName: 't',
      toolCallId: 'call_1',
      arguments: { n: 1 },
      result: { rows: [1, 2] },
      isError: false,
      duration: expect.any(Number),
    },
  ])
  expect(model.requests[1]!.messages.at(-1)).toMatchObject({ results: [{ result: 'two rows' }] })
})
