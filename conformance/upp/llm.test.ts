import { isDeepFrozen, manualClock, sequentialIds } from '@skein/base'
import {
  createProvider,
  embedding,
  image,
  isUPPError,
  llm,
  Thread,
  UserMessage,
  type History,
  type InferenceInput,
  type BoundLLMModel,
  type LLMInstance,
  type LLMOptions,
  type Message,
  type ModelReference,
  type StreamEvent,
  type Turn,
} from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { calls, emits, fails, reasons, says, scripted, stops, waits } from '@skein/ai/testing'
import { getEventListeners } from 'node:events'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'

const texts = (messages: readonly Message[]): string[] =>
  messages.map((message) => `${message.type}: ${message.text}`)

const add = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  run: ({ a, b }: { a: number; b: number }) => a + b,
}

/** The two ways to ask; every input rule holds for both. */
const ways: [string, (model: LLMInstance, ...given: never[]) => Promise<Turn>][] = [
  ['generate', (model, ...given) => model.generate(...given)],
  ['stream', (model, ...given) => model.stream(...given).turn],
]

describe('options', () => {
  test('UPP-042 UPP-001 an instance has generate, stream, model and capabilities', async () => {
    const model = llm({ model: scripted([says('hi'), says('ho')]) })
    expect(model.model).toMatchObject({ modelId: 'script', provider: 'scripted' })
    expect(model.capabilities).toEqual(model.model.capabilities)
    expect(model.capabilities.streaming).toBe(true)
    const waiting = model.generate('a')
    expect(waiting).toBeInstanceOf(Promise)
    expect((await waiting).response.text).toBe('hi')
    const stream = model.stream('b')
    expect(typeof stream[Symbol.asyncIterator]).toBe('function')
    expect((await stream.turn).response.text).toBe('ho')
  })

  test('UPP-043 UPP-004 UPP-006 every option reaches the provider, params as written', async () => {
    const model = scripted([says('{}')])
    const structure = { type: 'object', $defs: { x: { const: 1 } } }
    const params = { temperature: 0.5, unknown_key: { deep: [1, null] } }
    const config = { baseUrl: 'http://127.0.0.1:9', timeout: 5, apiKey: 'sk-4711' }
    await llm({ model, config, params, system: 'Be brief.', tools: [add], structure }).generate('x')
    const [request] = model.requests
    expect(request).toMatchObject({ system: 'Be brief.', structure })
    expect(request?.params).toEqual(params)
    expect(request?.tools).toEqual([add])
    expect(request?.config).toEqual(config)
    expect(request?.config.apiKey).toBe('sk-4711')
  })

  test('UPP-043 the tool strategy is used', async () => {
    const model = scripted([calls('add', { a: 1, b: 2 })])
    const toolStrategy = { maxIterations: 0 }
    const turn = await llm({ model, tools: [add], toolStrategy }).generate('x')
    expect(turn.openCalls).toHaveLength(1)
    expect(model.requests).toHaveLength(1)
  })

  test('UPP-005 nothing is invented when nothing is given', async () => {
    const model = scripted([says('x')])
    await llm({ model }).generate('x')
    const [request] = model.requests
    expect(request?.params).toEqual({})
    expect(request?.tools).toEqual([])
    expect('system' in request! || 'structure' in request!).toBe(false)
    expect(Object.keys(request!.config)).toEqual([])
  })

  test('UPP-044 middleware is an option', async () => {
    const seen: string[] = []
    const middleware = [{ name: 'probe', onStart: () => void seen.push('start') }]
    await llm({ model: scripted([says('x')]), middleware }).generate('x')
    expect(seen).toEqual(['start'])
  })

  test('UPP-008 an instance keeps no history between calls', async () => {
    const model = scripted([says('one'), says('two')])
    const instance = llm({ model, system: 'S' })
    await instance.generate('first')
    await instance.generate('second')
    expect(texts(model.requests[1]!.messages)).toEqual(['user: second'])
    expect(model.requests[1]!.system).toBe('S')
  })

  test('UPP-039 UPP-041 UPP-040 a model of a provider without llm is refused at construction', () => {
    const provider = createProvider({ name: 'only-pictures' })
    const reference = provider('m1')
    expect(reference).toEqual({ modelId: 'm1', provider })
    const make = (): unknown => llm({ model: reference })
    expect(make).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        modality: 'llm',
        provider: 'only-pictures',
      }),
    )
    expect(() => llm({} as LLMOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
  })

  test('UPP-143 a provider may serve some modalities only', async () => {
    const model = scripted([says('x')])
    expect(Object.keys(model.provider.handlers)).toEqual(['llm'])
    expect((await llm({ model }).generate('x')).response.text).toBe('x')

    const result = {
      embeddings: [{ vector: [1], dimensions: 1, index: 0 }],
      usage: { totalTokens: 1 },
    }
    const vectors = createProvider({
      name: 'vectors',
      embedding: {
        maxBatchSize: 1,
        imageInput: false,
        bind: ({ modelId }) => ({ modelId, provider: 'vectors', embed: async () => result }),
      },
    })
    expect(Object.keys(vectors.handlers)).toEqual(['embedding'])
    expect(await embedding({ model: vectors('m') }).embed('x')).toEqual(result)

    const capabilities = { generate: true, streaming: false, edit: false }
    const painter = createProvider({
      name: 'painter',
      image: {
        bind: ({ modelId }) => ({
          modelId,
          provider: 'painter',
          capabilities,
          generate: async () => ({ images: [] }),
        }),
      },
    })
    expect(Object.keys(painter.handlers)).toEqual(['image'])
    expect(await image({ model: painter('m') }).generate('x')).toEqual({ images: [] })
    for (const one of [vectors, painter])
      expect(() => llm({ model: one('m') })).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST', provider: one.name }),
      )
  })

  test('UPP-050 UPP-051 capabilities are seven booleans, fixed for the instance', () => {
    const instance = llm({ model: scripted([], { capabilities: { videoInput: false } }) })
    expect(instance.capabilities).toEqual({
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: true,
      documentInput: true,
      videoInput: false,
      audioInput: true,
    })
    expect(Object.isFrozen(instance.capabilities)).toBe(true)
    expect(instance.capabilities).toBe(instance.capabilities)
  })

  test('UPP-051 capabilities stay as they were when the instance was made', () => {
    const { handlers } = scripted([]).provider
    const changing = { ...handlers.llm!.capabilities, videoInput: false }
    const bind = (reference: ModelReference): BoundLLMModel => ({
      ...handlers.llm!.bind(reference),
      capabilities: changing,
    })
    const model = createProvider({ name: 'changing', llm: { capabilities: changing, bind } })('m')
    const instance = llm({ model })
    changing.videoInput = true
    expect(instance.capabilities.videoInput).toBe(false)
    expect(() => Object.assign(instance.capabilities, { videoInput: true })).toThrow(TypeError)
  })

  test('UPP-158 the key shows neither on the instance nor in a printed request', async () => {
    const model = scripted([says('x')])
    let printed = ''
    const instance = llm({
      model,
      config: { apiKey: 'sk-canary-1234', headers: { authorization: 'Bearer tok-canary-5678' } },
      middleware: [
        {
          name: 'printer',
          onRequest: (context) => {
            printed += JSON.stringify(context.request) + inspect(context, { depth: 9 })
          },
        },
      ],
    })
    await instance.generate('x')
    printed += JSON.stringify(instance) + inspect(instance, { depth: 9, showHidden: true })
    expect(printed).toContain('messages')
    expect(printed).not.toContain('canary')
  })

  test('with() changes options for one derived instance only', async () => {
    const model = scripted([says('a'), says('b')])
    const base = llm({ model, system: 'base' })
    await base.with({ system: 'other', params: { n: 1 } }).generate('x')
    await base.generate('x')
    expect(model.requests.map(({ system, params }) => ({ system, params }))).toEqual([
      { system: 'other', params: { n: 1 } },
      { system: 'base', params: {} },
    ])
  })

  test('ids and times come from the given sources, so that runs repeat', async () => {
    const run = async (): Promise<string> => {
      const model = scripted([calls('add', { a: 1, b: 2 }), says('3')])
      const clock = manualClock(1_000)
      const turn = await llm({ model, tools: [add], clock, ids: sequentialIds('m') }).generate('x')
      return JSON.stringify(turn)
    }
    expect(await run()).toBe(await run())
    expect(await run()).toContain('"id":"m4"')
  })
})

describe.each(ways)('inputs of %s', (_, ask) => {
  const asked = async (...given: unknown[]): Promise<readonly Message[]> => {
    const model = scripted([says('ok')])
    await ask(llm({ model }), ...(given as never[]))
    return model.requests[0]!.messages
  }

  test('UPP-045 UPP-053 a string, a message or a block becomes the user message', async () => {
    const message = new UserMessage('said', { id: 'u1' })
    expect(texts(await asked('said'))).toEqual(['user: said'])
    expect(await asked(message)).toEqual([message])
    expect(texts(await asked('  said\n '))).toEqual(['user:   said\n '])
    expect(texts(await asked({ type: 'text', text: 'said' }))).toEqual(['user: said'])
    expect(texts(await asked([message], 'now'))).toEqual(['user: said', 'user: now'])
  })

  test('UPP-046 several inputs keep their order; neighbours share a message', async () => {
    const image = { type: 'image', source: { type: 'url', url: 'x:' }, mimeType: 'image/png' }
    const given: unknown[] = ['look', image, new UserMessage('own'), { type: 'text', text: 'end' }]
    const messages = await asked(...given)
    expect(texts(messages)).toEqual(['user: look', 'user: own', 'user: end'])
    expect(messages[0]?.images).toEqual([image])
    const [mixed] = await asked(image, 'is this', { type: 'text', text: ' a cat?' }, image)
    const types = (mixed as UserMessage).content.map((block) => block.type)
    expect(types).toEqual(['image', 'text', 'text', 'image'])
    expect(mixed?.text).toBe('is this a cat?')
  })

  test('UPP-047 a history comes first and is left alone', async () => {
    const history = [new UserMessage('old')]
    expect(texts(await asked(history, 'new'))).toEqual(['user: old', 'user: new'])
    expect(history).toHaveLength(1)
    expect(texts(await asked(history))).toEqual(['user: old'])
  })

  test('UPP-048 a thread serves as history and is left alone', async () => {
    const thread = new Thread({ messages: [new UserMessage('old')] })
    const before = JSON.stringify(thread)
    expect(texts(await asked(thread, 'new'))).toEqual(['user: old', 'user: new'])
    expect(texts(await asked(thread))).toEqual(['user: old'])
    expect(JSON.stringify(thread)).toBe(before)
  })

  test('UPP-048 anything with messages serves as history', async () => {
    const thread = { id: 't', messages: Object.freeze([new UserMessage('old')]) }
    expect(texts(await asked(thread, 'new'))).toEqual(['user: old', 'user: new'])
    expect(thread.messages).toHaveLength(1)
  })

  test('UPP-084 messages that went through JSON work as they are', async () => {
    const model = scripted([calls('add', { a: 1, b: 2 }), says('3')])
    const { messages } = await llm({ model, tools: [add] }).generate('sum')
    const plain = JSON.parse(JSON.stringify(messages)) as Message[]
    const sent = await asked(plain, 'again')
    expect(texts(sent)).toEqual([
      'user: sum',
      'assistant: ',
      'tool_result: 3',
      'assistant: 3',
      'user: again',
    ])
    expect(sent.slice(0, 4).map(({ id }) => id)).toEqual(messages.map(({ id }) => id))
    expect(sent[1]).toMatchObject({ hasToolCalls: true, timestamp: messages[1]?.timestamp })
  })

  test.each<[string, unknown[]]>([
    ['nothing', []],
    ['an empty history', [[]]],
    ['a history of strings', [['hello']]],
    ['a foreign message', [{ role: 'user', content: 'hi' }]],
    ['a number', [42]],
    ['a block users cannot send', [{ type: 'reasoning', text: 'x' }]],
    ['binary in an assistant message', [[{ type: 'assistant', content: [{ type: 'binary' }] }]]],
  ])('%s is INVALID_REQUEST, and nothing is sent', async (_name, given) => {
    const model = scripted([says('no')])
    const error = await ask(llm({ model }), ...(given as never[])).catch((e: unknown) => e)
    expect(isUPPError(error) && error.code).toBe('INVALID_REQUEST')
    expect(model.requests).toHaveLength(0)
  })
})

test('UPP-049 stream takes the same inputs as generate and sends the same', async () => {
  const old = new UserMessage('old', { id: 'o' })
  const given: (InferenceInput | History)[][] = [
    ['a'],
    [{ type: 'text', text: 'a' }],
    ['a', 'b'],
    [new UserMessage('c', { id: 'c' }), 'd'],
    [[old], 'e'],
    [new Thread({ messages: [old] }), 'f', 'g'],
  ]
  for (const inputs of given) {
    const sent = await Promise.all(
      ways.map(async ([, ask]) => {
        const model = scripted([says('ok')])
        const ids = sequentialIds()
        await ask(llm({ model, ids, clock: manualClock() }), ...(inputs as never[]))
        return model.requests[0]!.messages
      }),
    )
    expect(sent[0]!.length).toBeGreaterThan(0)
    expect(sent[0]).toEqual(sent[1])
  }
})

test('UPP-049 UPP-008 generate waits for the provider, stream makes it stream', async () => {
  const { provider, modelId } = scripted([says('a'), says('b')])
  const inner = provider.handlers.llm!
  const ways: string[] = []
  const watched = createProvider({
    name: 'watched',
    llm: {
      capabilities: inner.capabilities,
      bind: (reference) => {
        const model = inner.bind(reference)
        return {
          ...model,
          provider: 'watched',
          modelId,
          capabilities: inner.capabilities,
          complete: (request) => (ways.push('complete'), model.complete(request)),
          stream: (request) => (ways.push('stream'), model.stream(request)),
        }
      },
    },
  })
  const model = llm({ model: watched('m') })
  expect((await model.generate('x')).response.text).toBe('a')
  expect((await model.stream('x').turn).response.text).toBe('b')
  expect(ways).toEqual(['complete', 'stream'])
})

test('the history of a stream is taken when it is made, not when it is read', async () => {
  const model = scripted([says('ok')])
  const history = [new UserMessage('old')]
  const stream = llm({ model }).stream(history, 'new')
  history.push(new UserMessage('later'))
  await stream.turn
  expect(texts(model.requests[0]!.messages)).toEqual(['user: old', 'user: new'])
})

describe('missing capabilities', () => {
  const media = (type: string): unknown =>
    type === 'image' || type === 'document'
      ? { type, source: { type: 'url', url: 'x:' }, mimeType: 'a/b' }
      : { type, data: new Uint8Array(1), mimeType: 'a/b' }

  test.each(['image', 'document', 'audio', 'video'] as const)(
    'UPP-167 %s input is refused before any request',
    async (type) => {
      const model = scripted([says('no')], { capabilities: { [`${type}Input`]: false } })
      const asking = llm({ model }).generate(media(type) as InferenceInput)
      await expect(asking).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        provider: 'scripted',
        modality: 'llm',
      })
      expect(model.requests).toHaveLength(0)
    },
  )

  test('UPP-167 tools are refused', () => {
    const model = scripted([], { capabilities: { tools: false } })
    expect(() => llm({ model, tools: [add] })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
  })

  test('UPP-167 streaming is refused, generate still works', async () => {
    const model = scripted([says('ok')], { capabilities: { streaming: false } })
    const instance = llm({ model })
    await expect(instance.stream('x').turn).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    expect(model.requests).toHaveLength(0)
    expect((await instance.generate('x')).response.text).toBe('ok')
  })
})

describe('the turn', () => {
  const twoRounds = [
    [reasons('hm'), calls('add', { a: 1, b: 2 })],
    calls('add', { a: 3, b: 3 }),
    says('six'),
  ]

  test('UPP-077 UPP-078 messages are the inputs and all that was produced, in order', async () => {
    const history = [new UserMessage('old')]
    const instance = llm({ model: scripted(twoRounds), tools: [add] })
    const turn = await instance.generate(history, 'sum', new UserMessage('more'))
    expect(texts(turn.messages)).toEqual([
      'user: sum',
      'user: more',
      'assistant: ',
      'tool_result: 3',
      'assistant: ',
      'tool_result: 6',
      'assistant: six',
    ])
    expect(turn.response).toBe(turn.messages.at(-1))
    expect(turn.response.text).toBe('six')
  })

  test('UPP-080 UPP-081 usage is summed over cycles, and cycles are counted', async () => {
    const turn = await llm({ model: scripted(twoRounds), tools: [add] }).generate('sum')
    expect(turn.cycles).toBe(3)
    expect(turn.usageByCycle).toHaveLength(3)
    for (const field of ['inputTokens', 'outputTokens', 'totalTokens'] as const) {
      expect(turn.usage[field]).toBe(turn.usageByCycle.reduce((sum, one) => sum + one[field], 0))
      expect(turn.usage[field]).toBeGreaterThan(0)
    }
    expect(turn.usage).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 0 })
  })

  test('UPP-080 all five counters are summed, and what vendors count next to them', async () => {
    const counts = { inputTokens: 100, outputTokens: 7, totalTokens: 107 }
    const first = { ...counts, cacheReadTokens: 40, cacheWriteTokens: 3 }
    const second = { ...counts, cacheReadTokens: 5, cacheWriteTokens: 20 }
    const model = scripted([
      [
        calls('add', { a: 1, b: 2 }),
        stops('tool_use', { usage: { ...first, reasoningTokens: 2 } }),
      ],
      [says('3'), stops('end_turn', { usage: { ...second, reasoningTokens: 1, costUsd: 0.5 } })],
    ])
    const turn = await llm({ model, tools: [add] }).generate('sum')
    expect(turn.usageByCycle).toMatchObject([first, second])
    expect(turn.usage).toEqual({
      inputTokens: 200,
      outputTokens: 14,
      totalTokens: 214,
      cacheReadTokens: 45,
      cacheWriteTokens: 23,
      reasoningTokens: 3,
      costUsd: 0.5,
    })
  })

  test('UPP-080 what a vendor counts by kind is summed kind by kind, also kinds of one cycle only', async () => {
    const counts = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
    const all = { ...counts, cacheReadTokens: 0, cacheWriteTokens: 0 }
    const first = {
      ...all,
      cacheWriteTokensByTtl: { '5m': 1, '1h': 2 },
      tokensByModality: { inputAudio: 3 },
    }
    const second = {
      ...all,
      cacheWriteTokensByTtl: { '1h': 10, '1d': 20 },
      tokensByModality: { outputImage: 4 },
      serverToolUse: { web_search_requests: 5 },
    }
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const model = scripted([
        [calls('add', { a: 1, b: 2 }), stops('tool_use', { usage: one })],
        [says('3'), stops('end_turn', { usage: other })],
      ])
      const { usage } = await llm({ model, tools: [add] }).generate('sum')
      expect(usage).toEqual({
        inputTokens: 2,
        outputTokens: 2,
        totalTokens: 4,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        cacheWriteTokensByTtl: { '5m': 1, '1h': 12, '1d': 20 },
        tokensByModality: { inputAudio: 3, outputImage: 4 },
        serverToolUse: { web_search_requests: 5 },
      })
    }
  })

  test('a turn is frozen with all it holds', async () => {
    const turn = await llm({ model: scripted(twoRounds), tools: [add] }).generate('sum')
    expect(isDeepFrozen(turn)).toBe(true)
  })

  test('UPP-082 text that happens to be JSON is text: no data, and the loop continues', async () => {
    const model = scripted([[says('42'), calls('add', { a: 1, b: 1 })], says('{"a":1}')])
    const turn = await llm({ model, tools: [add] }).generate('x')
    expect('data' in turn).toBe(false)
    expect(turn.toolExecutions).toHaveLength(1)
    expect(turn.response.text).toBe('{"a":1}')
  })

  test('the stop reason is on the turn, unified and in the vendor’s word; warnings are kept', async () => {
    const stop: StreamEvent = {
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: 'refusal',
        rawStopReason: 'refused',
        usage: zeroUsage,
        warnings: [{ code: 'from_wire', message: 'dropped' }],
      },
    }
    const start: StreamEvent = { type: 'message_start', index: 0, delta: {} }
    const tools = [{ ...add, dependsOn: ['zz'] }]
    const model = scripted([calls('add', { a: 1, b: 2 }), emits(start, stop)])
    const turn = await llm({ model, tools }).generate('x')
    expect(turn).toMatchObject({ stopReason: 'refusal', rawStopReason: 'refused' })
    expect(turn.warnings.map(({ code }) => code)).toEqual(['unknown_dependency', 'from_wire'])
  })

  test('the stop reason of a plain answer', async () => {
    const turn = await llm({ model: scripted([says('x')]) }).generate('x')
    expect(turn.stopReason).toBe('end_turn')
    expect(turn.openCalls).toEqual([])
    expect(turn.warnings).toEqual([])
    expect('rawStopReason' in turn).toBe(false)
  })
})

test('UPP-139 cancelling uses the platform’s AbortSignal, also for generate', async () => {
  const model = scripted([[says('a'), waits(Infinity)]])
  const controller = new AbortController()
  const asking = llm({ model }).with({ signal: controller.signal }).generate('x')
  setTimeout(() => controller.abort(new Error('user left')), 5)
  await expect(asking).rejects.toMatchObject({
    code: 'CANCELLED',
    cause: expect.objectContaining({ message: 'user left' }) as unknown,
  })
  expect(model.requests[0]!.signal).toBeInstanceOf(AbortSignal)
})

test('UPP-139 answers are the platform’s promises and async iterables', async () => {
  const instance = llm({ model: scripted([says('a'), says('b')]) })
  const generated = instance.generate('x')
  expect(generated).toBeInstanceOf(Promise)
  await generated
  const stream = instance.stream('x')
  expect(stream.turn).toBeInstanceOf(Promise)
  const events: AsyncIterator<StreamEvent> = stream[Symbol.asyncIterator]()
  const next = events.next()
  expect(next).toBeInstanceOf(Promise)
  expect(await next).toMatchObject({ done: false, value: { type: 'message_start' } })
})

test('a signal that is aborted already sends nothing', async () => {
  const model = scripted([says('no')])
  const asking = llm({ model, signal: AbortSignal.abort() }).generate('x')
  await expect(asking).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(model.requests).toHaveLength(0)
})

test('a long-lived signal keeps no listener of a call that is over', async () => {
  const { signal } = new AbortController()
  const model = scripted([calls('add', { a: 1, b: 2 }), says('3'), says('x'), fails('no')])
  const instance = llm({ model, tools: [add], signal })
  await instance.generate('x')
  await instance.stream('x').turn
  await instance.generate('x').catch(() => {})
  expect(getEventListeners(signal, 'abort')).toEqual([])
  for (const request of model.requests)
    expect(getEventListeners(request.signal, 'abort')).toEqual([])
})
