import { manualClock, type JsonObject } from '@skein/base'
import {
  llm,
  loggingMiddleware,
  parsedObjectMiddleware,
  UserMessage,
  type LLMRequest,
  type LogLevel,
  type Middleware,
  type MiddlewareContext,
  type ParsedStreamEvent,
  type StreamContext,
  type StreamEvent,
  type Tool,
  type Turn,
} from '@skein/ai'
import { calls, fails, says, scripted, waits, type ScriptStep, emits } from '@skein/ai/testing'
import { describe, expect, test, vi } from 'vitest'

const echo: Tool = {
  name: 'echo',
  description: 'Gives back what it got.',
  parameters: { type: 'object' },
  run: (args: JsonObject) => args,
}

const hookNames = [
  'onStart',
  'onRequest',
  'onCycle',
  'onToolCall',
  'onToolResult',
  'onStreamEnd',
  'onResponse',
  'onTurn',
  'onEnd',
  'onError',
] as const

/** A middleware that writes down each of its hooks, some of them late. */
function probe(name: string, log: string[]): Middleware {
  const hooks = hookNames.map((hook, index) => [
    hook,
    async () => {
      if (index % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      log.push(`${name}.${hook}`)
    },
  ])
  return { name, ...(Object.fromEntries(hooks) as object) }
}

async function consume(stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

const withTool: ScriptStep[] = [calls('echo', { n: 1 }), says('done')]

describe('order', () => {
  test('UPP-096 UPP-101 UPP-102 start and request in order, response and end in reverse', async () => {
    const log: string[] = []
    const middleware = [probe('a', log), probe('b', log)]
    await llm({ model: scripted([says('x')]), middleware }).generate('x')
    expect(log).toEqual([
      'a.onStart',
      'b.onStart',
      'a.onRequest',
      'b.onRequest',
      'a.onCycle',
      'b.onCycle',
      'b.onResponse',
      'a.onResponse',
      'b.onTurn',
      'a.onTurn',
      'b.onEnd',
      'a.onEnd',
    ])
  })

  test.each(['onStart', 'onRequest'] as const)(
    'UPP-101 %s of a middleware begins when that of the one before has ended',
    async (hook) => {
      const log: string[] = []
      const slow = (name: string, turns: number): Middleware => ({
        name,
        [hook]: async () => {
          log.push(`${name} begins`)
          for (let turn = 0; turn < turns; turn++) await Promise.resolve()
          log.push(`${name} ends`)
        },
      })
      const middleware = [slow('a', 9), slow('b', 3), slow('c', 0)]
      await llm({ model: scripted([says('x')]), middleware }).generate('x')
      expect(log).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
    },
  )

  test('UPP-104 UPP-097 tool hooks surround each execution', async () => {
    const log: string[] = []
    const seen: unknown[] = []
    const watching: Middleware = {
      name: 'watching',
      onToolCall: ({ toolName, arguments: args }, { modality }) =>
        void seen.push([toolName, args, modality]),
      onToolResult: ({ toolCallId }, result) => void seen.push([toolCallId, result]),
    }
    const running = { ...echo, run: (args: JsonObject) => (log.push('run'), args) }
    const middleware = [probe('a', log), watching]
    await llm({ model: scripted(withTool), tools: [running], middleware }).stream('x').turn
    expect(log).toEqual([
      'a.onStart',
      'a.onRequest',
      'a.onCycle',
      'a.onToolCall',
      'run',
      'a.onToolResult',
      'a.onCycle',
      'a.onStreamEnd',
      'a.onResponse',
      'a.onTurn',
      'a.onEnd',
    ])
    expect(seen).toEqual([
      ['echo', { n: 1 }, 'llm'],
      ['call_1', { n: 1 }],
    ])
  })

  test('UPP-096 middleware belongs to its instance', async () => {
    const log: string[] = []
    const model = scripted([says('x'), says('y')])
    const plain = llm({ model })
    await plain.with({ middleware: [probe('a', log)] }).generate('x')
    const before = log.length
    await plain.generate('x')
    expect(before).toBeGreaterThan(0)
    expect(log).toHaveLength(before)
  })

  test.each<[string, (stream: ReturnType<ReturnType<typeof llm>['stream']>) => Promise<unknown>]>([
    ['only iterated', (stream) => consume(stream)],
    ['only its turn read', (stream) => stream.turn],
    ['both', (stream) => Promise.all([consume(stream), stream.turn])],
    ['its turn read twice after iteration', (stream) => consume(stream).then(() => stream.turn)],
  ])('end hooks run exactly once when a stream is %s', async (_, read) => {
    const log: string[] = []
    const middleware = [probe('a', log)]
    await read(llm({ model: scripted([says('x')]), middleware }).stream('x'))
    for (const hook of ['onStreamEnd', 'onResponse', 'onTurn', 'onEnd'])
      expect(log.filter((entry) => entry === `a.${hook}`)).toHaveLength(1)
  })
})

describe('context', () => {
  test('UPP-098 the context has its fields, each at its time', async () => {
    const clock = manualClock(100)
    const seen: Record<string, Partial<MiddlewareContext>> = {}
    const note =
      (hook: string) =>
      (context: MiddlewareContext): void => {
        seen[hook] = { ...context }
        clock.advance(10)
      }
    const middleware: Middleware[] = [
      {
        name: 'note',
        onStart: (context) => {
          context.state.set('note:started', true)
          note('onStart')(context)
        },
        onRequest: note('onRequest'),
        onResponse: note('onResponse'),
        onEnd: note('onEnd'),
      },
    ]
    const turn = await llm({ model: scripted([says('x')]), middleware, clock }).generate('hello')
    expect(seen['onStart']).toMatchObject({
      modality: 'llm',
      modelId: 'script',
      provider: 'scripted',
      streaming: false,
      startTime: 100,
    })
    expect((seen['onStart']!.request as LLMRequest).messages.map(({ text }) => text)).toEqual([
      'hello',
    ])
    expect(seen['onRequest']?.response).toBeUndefined()
    expect(seen['onRequest']?.endTime).toBeUndefined()
    expect(seen['onResponse']?.response).toBe(turn)
    expect(seen['onEnd']).toMatchObject({ endTime: 120, response: turn })
    expect(seen['onEnd']?.state?.get('note:started')).toBe(true)
    await llm({ model: scripted([says('x')]), middleware, clock }).stream('x').turn
    expect(seen['onStart']?.streaming).toBe(true)
  })

  test('UPP-099 UPP-100 the stream context is the shared state map only', async () => {
    const contexts: StreamContext[] = []
    const counting: Middleware = {
      name: 'counting',
      onStart: ({ state }) => void state.set('counting:events', 0),
      onStreamEvent: (event, context) => {
        contexts.push(context)
        context.state.set('counting:events', (context.state.get('counting:events') as number) + 1)
        return event
      },
      onEnd: ({ state }) => expect(state.get('counting:events')).toBe(5),
    }
    const middleware = [counting, parsedObjectMiddleware()]
    await llm({ model: scripted([says('x')]), middleware }).stream('x').turn
    expect(contexts).toHaveLength(5)
    for (const context of contexts) expect(Object.keys(context)).toEqual(['state'])
    for (const key of contexts[0]!.state.keys()) expect(key).toMatch(/^[A-Za-z]+:/)
    expect([...contexts[0]!.state.keys()]).toContain('parsedObject:parsers')
  })
})

describe('requests', () => {
  const other = new UserMessage('other')
  const edits: [string, (context: MiddlewareContext) => void, Partial<LLMRequest>][] = [
    [
      'the whole request',
      (context) => {
        context.request = { ...(context.request as LLMRequest), system: 'new', messages: [other] }
      },
      { system: 'new', messages: [other] },
    ],
    ['system', (context) => Object.assign(context.request, { system: 's' }), { system: 's' }],
    [
      'params',
      (context) => Object.assign(context.request, { params: { t: 1 } }),
      { params: { t: 1 } },
    ],
    ['tools', (context) => Object.assign(context.request, { tools: [echo] }), { tools: [echo] }],
    [
      'structure',
      (context) => Object.assign(context.request, { structure: { type: 'number' } }),
      { structure: { type: 'number' } },
    ],
    [
      'messages, in place',
      (context) => ((context.request as LLMRequest).messages as unknown[]).push(other),
      { messages: [expect.objectContaining({ text: '7' }), other] as never },
    ],
  ]

  test.each(edits)('UPP-097 an edit of %s in onRequest is honoured', async (_, edit, expected) => {
    const model = scripted([says('7')])
    const middleware: Middleware[] = [{ name: 'edit', onRequest: edit }]
    await llm({ model, middleware }).generate('7')
    expect(model.requests[0]).toMatchObject(expected)
  })

  test('tools and structure that middleware brings are run and parsed', async () => {
    const model = scripted([calls('echo', { n: 1 }), says('{"n":1}')])
    const onRequest = ({ request }: MiddlewareContext): void =>
      void Object.assign(request, { tools: [echo], structure: { type: 'object' } })
    const turn = await llm({ model, middleware: [{ name: 'm', onRequest }] }).generate('x')
    expect(turn.toolExecutions).toHaveLength(1)
    expect(turn.data).toEqual({ n: 1 })
  })

  test('what middleware brings is checked like everything else', async () => {
    const model = scripted([says('no')], { capabilities: { tools: false } })
    const onRequest = ({ request }: MiddlewareContext): void =>
      void Object.assign(request, { tools: [echo] })
    const asking = llm({ model, middleware: [{ name: 'm', onRequest }] }).generate('x')
    await expect(asking).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    expect(model.requests).toHaveLength(0)
  })

  test('onCycle sees each inference and may replace its request alone', async () => {
    const model = scripted(withTool)
    const cycles: number[] = []
    const onCycle = (request: LLMRequest, cycle: number): LLMRequest | undefined => {
      cycles.push(cycle)
      return cycle === 2 ? { ...request, system: 'second only' } : undefined
    }
    const middleware = [{ name: 'm', onCycle } as Middleware]
    await llm({ model, tools: [echo], middleware, system: 'base' }).generate('x')
    expect(cycles).toEqual([1, 2])
    expect(model.requests.map(({ system }) => system)).toEqual(['base', 'second only'])
  })

  test('wrapInference may change, watch or answer instead of the model; the first is outermost', async () => {
    const model = scripted([says('real')])
    const log: string[] = []
    const wrapping = (name: string): Middleware => ({
      name,
      async *wrapInference(request, next) {
        log.push(`${name} in`)
        yield* next({ ...request, system: `${request.system ?? ''}${name}` })
        log.push(`${name} out`)
      },
    })
    const turn = await llm({ model, middleware: [wrapping('a'), wrapping('b')] }).generate('x')
    expect(log).toEqual(['a in', 'b in', 'b out', 'a out'])
    expect(model.requests[0]?.system).toBe('ab')
    expect(turn.response.text).toBe('real')

    const recorded: (readonly StreamEvent[])[] = []
    const caching: Middleware = {
      name: 'cache',
      async *wrapInference(request, next) {
        if (recorded.length > 0) return void (yield* recorded)
        for await (const batch of next(request)) {
          recorded.push(batch)
          yield batch
        }
      },
    }
    const once = scripted([says('from the model')])
    const cached = llm({ model: once, middleware: [caching] })
    const turns = [await cached.generate('x'), await cached.stream('x').turn]
    expect(turns.map(({ response }) => response.text)).toEqual(['from the model', 'from the model'])
    expect(once.requests).toHaveLength(1)
  })

  test('a hook may replace the response it is shown', async () => {
    const onResponse = (context: MiddlewareContext): void => {
      context.response = { ...(context.response as Turn), rawStopReason: 'seen' }
    }
    const middleware = [{ name: 'm', onResponse }]
    const turn = await llm({ model: scripted([says('x')]), middleware }).generate('x')
    expect(turn.rawStopReason).toBe('seen')
  })
})

describe('errors', () => {
  const stages: [string, Middleware | ScriptStep][] = [
    ['onStart', { name: 'bad', onStart: () => Promise.reject(new Error('bang')) }],
    ['onRequest', { name: 'bad', onRequest: thrower }],
    ['onCycle', { name: 'bad', onCycle: thrower }],
    ['onStreamEvent', { name: 'bad', onStreamEvent: thrower }],
    ['onToolCall', { name: 'bad', onToolCall: thrower }],
    ['onToolResult', { name: 'bad', onToolResult: thrower }],
    ['onStreamEnd', { name: 'bad', onStreamEnd: thrower }],
    ['onResponse', { name: 'bad', onResponse: thrower }],
    ['onTurn', { name: 'bad', onTurn: thrower }],
    ['onEnd', { name: 'bad', onEnd: thrower }],
    ['the provider', [says('a'), fails(new Error('bang'))]],
  ]

  function thrower(): never {
    throw new Error('bang')
  }

  test.each(stages)(
    'UPP-103 a failure in %s reaches every onError, once',
    async (stage, source) => {
      const told: string[] = []
      const watch = (name: string): Middleware => ({
        name,
        onError: (error, context) => {
          told.push(`${name}: ${error.message} ${context.endTime !== undefined}`)
          if (name === 'a') throw new Error('masking')
        },
      })
      const isScript = Array.isArray(source)
      const middleware = [watch('a'), ...(isScript ? [] : [source as Middleware]), watch('b')]
      const model = scripted(isScript ? [source as ScriptStep] : withTool)
      const stream = llm({ model, tools: [echo], middleware }).stream('x')
      const error = await failure(consume(stream))
      expect(error).toMatchObject({ provider: 'scripted', modality: 'llm', name: 'UPPError' })
      expect((error as Error).message).toContain('bang')
      if (!isScript) expect((error as Error).message).toContain(`${stage} of the middleware "bad"`)
      expect((error as Error).cause).toMatchObject({ message: 'bang' })
      const text = `${(error as Error).message} true`
      expect(told).toEqual([`a: ${text}`, `b: ${text}`])
      expect(await failure(stream.turn)).toBe(error)
    },
  )

  test('cancellation goes to onAbort where there is one, else to onError', async () => {
    const told: string[] = []
    const middleware: Middleware[] = [
      {
        name: 'a',
        onAbort: () => void told.push('a.abort'),
        onError: () => void told.push('a.error'),
      },
      {
        name: 'b',
        onError: (error) => void told.push(`b.error ${(error as { code?: string }).code}`),
      },
    ]
    const stream = llm({ model: scripted([waits(Infinity)]), middleware }).stream('x')
    setTimeout(() => stream.abort(), 5)
    await failure(stream.turn)
    expect(told).toEqual(['a.abort', 'b.error CANCELLED'])
  })

  test('a failed call runs no end hook', async () => {
    const log: string[] = []
    await failure(
      llm({ model: scripted([fails('x')]), middleware: [probe('a', log)] }).generate('x'),
    )
    expect(log).toEqual(['a.onStart', 'a.onRequest', 'a.onCycle', 'a.onError'])
  })
})

describe('stream events', () => {
  const shout: Middleware = {
    name: 'shout',
    onStreamEvent: (event) =>
      event.type === 'text_delta'
        ? { ...event, delta: { text: event.delta.text.toUpperCase() } }
        : event,
  }
  const double: Middleware = {
    name: 'double',
    onStreamEvent: async (event) => (event.type === 'text_delta' ? [event, event] : event),
  }
  const quiet: Middleware = {
    name: 'quiet',
    onStreamEvent: (event) => (event.type.startsWith('content_block') ? null : event),
  }

  test('UPP-106 a pipeline replaces, expands and drops, each seeing what the one before left', async () => {
    const middleware = [shout, double, quiet]
    const stream = llm({ model: scripted([says('a b')]), middleware }).stream('x')
    const events = await consume(stream)
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'text_delta',
      'text_delta',
      'text_delta',
      'text_delta',
      'message_stop',
    ])
    expect(events.flatMap((e) => (e.type === 'text_delta' ? e.delta.text : [])).join('')).toBe(
      'AA B B',
    )
  })

  test('UPP-106 events that arrive together stay in order when they are expanded, also by async hooks', async () => {
    const text = (value: string): StreamEvent => ({
      type: 'text_delta',
      index: 0,
      delta: { text: value },
    })
    const together = emits(
      { type: 'content_block_start', index: 0, delta: { block: 'text' } },
      text('a'),
      text('b'),
      text('c'),
      { type: 'content_block_stop', index: 0, delta: {} },
    )
    for (const isAsync of [false, true]) {
      const twice: Middleware = {
        name: 'twice',
        onStreamEvent: (event) => {
          if (event.type !== 'text_delta') return event
          const made = event.delta.text === 'b' ? [] : [event, text(event.delta.text.toUpperCase())]
          return isAsync ? Promise.resolve(made) : made
        },
      }
      const stream = llm({ model: scripted([together]), middleware: [twice] }).stream('x')
      const texts = (await consume(stream)).flatMap((event) =>
        event.type === 'text_delta' ? event.delta.text : [],
      )
      expect(texts.join('')).toBe('aAcC')
      const one: Middleware = {
        name: 'one',
        onStreamEvent: (event) => (event.type === 'text_delta' ? { ...event } : event),
      }
      const same = await consume(
        llm({ model: scripted([together]), middleware: [one] }).stream('x'),
      )
      expect(
        same.flatMap((event) => (event.type === 'text_delta' ? event.delta.text : [])),
      ).toEqual(['a', 'b', 'c'])
      expect((await stream.turn).response.text).toBe('abc')
    }
  })

  test('UPP-106 the hooks run in the order of the list', async () => {
    const adding = (before: string, after: string): Middleware => ({
      name: 'adding',
      onStreamEvent: (event) =>
        event.type === 'text_delta'
          ? { ...event, delta: { text: before + event.delta.text + after } }
          : event,
    })
    const middleware = [adding('(', ')'), adding('[', ']'), adding('{', '}')]
    const stream = llm({ model: scripted([says('a')]), middleware }).stream('x')
    const texts = (await consume(stream)).flatMap((event) =>
      event.type === 'text_delta' ? event.delta.text : [],
    )
    expect(texts).toEqual(['{[(a)]}'])
  })

  test('UPP-107 dropping or changing events does not harm the turn', async () => {
    const nothing: Middleware = { name: 'nothing', onStreamEvent: () => null }
    for (const middleware of [[nothing], [shout, double, quiet]]) {
      const stream = llm({ model: scripted(withTool), tools: [echo], middleware }).stream('x')
      const events = await consume(stream)
      if (middleware[0] === nothing) expect(events).toEqual([])
      const turn = await stream.turn
      expect(turn.response.text).toBe('done')
      expect(turn.toolExecutions).toHaveLength(1)
    }
  })

  test('UPP-097 onStreamEvent sees every event of the loop, generate shows it none', async () => {
    const seen: string[] = []
    const onStreamEvent = (event: StreamEvent): StreamEvent => {
      seen.push(event.type)
      return event
    }
    const middleware = [{ name: 'm', onStreamEvent }]
    const stream = llm({ model: scripted(withTool), tools: [echo], middleware }).stream('x')
    expect((await consume(stream)).map(({ type }) => type)).toEqual(seen)
    expect(seen).toContain('tool_execution_start')
    seen.length = 0
    await llm({ model: scripted(withTool), tools: [echo], middleware }).generate('x')
    expect(seen).toEqual([])
  })
})

describe('parsedObjectMiddleware', () => {
  const value = { name: 'Ann "A" \\', list: [1, { deep: [true, null, -2.5e3] }], text: 'ä😀' }
  const parsedOf = async (
    steps: ScriptStep[],
    options = {},
  ): Promise<{ type: string; parsed: unknown }[]> => {
    const model = scripted(steps, { chunks: 1 })
    const stream = llm({
      model,
      tools: [echo],
      structure: { type: 'object' },
      middleware: [parsedObjectMiddleware(options)],
    }).stream('x')
    return (await consume(stream)).flatMap((event) => {
      const { type, delta } = event as ParsedStreamEvent
      return 'parsed' in delta ? [{ type, parsed: delta.parsed }] : []
    })
  }

  test('UPP-108 every prefix of the JSON shows a growing value, for objects and calls', async () => {
    const text = JSON.stringify(value)
    const seen = await parsedOf([calls('echo', text), says(text)])
    for (const type of ['tool_call_delta', 'object_delta']) {
      const values = seen.filter((one) => one.type === type).map(({ parsed }) => parsed)
      expect(values).toHaveLength(text.length)
      expect(values.every((one) => one !== undefined)).toBe(true)
      expect(values[0]).toEqual({})
      expect(values[10]).toEqual({ name: 'An' })
      expect(values.at(-1)).toEqual(value)
    }
  })

  test('UPP-108 each message of a tool loop starts anew', async () => {
    const seen = await parsedOf([calls('echo', { a: 1 }), calls('echo', { b: 2 }), says('{"c":3}')])
    const finals = seen.filter(({ parsed }, index) => {
      const next = seen[index + 1]?.parsed
      return (
        next === undefined ||
        Object.keys(next as object).length < Object.keys(parsed as object).length
      )
    })
    expect(finals.map(({ parsed }) => parsed)).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }])
  })

  test('UPP-108 either kind can be switched off', async () => {
    const steps = [calls('echo', { a: 1 }), says('{}')]
    const types = async (options: object): Promise<string[]> => [
      ...new Set((await parsedOf(steps, options)).map(({ type }) => type)),
    ]
    expect(await types({ parseObjects: false })).toEqual(['tool_call_delta'])
    expect(await types({ parseToolCalls: false })).toEqual(['object_delta'])
  })

  test('an event shows its own moment whenever it is looked at', async () => {
    const model = scripted([says('{"a":"xyz"}')], { chunks: 3 })
    const middleware = [parsedObjectMiddleware()]
    const events = await consume(llm({ model, structure: {}, middleware }).stream('x'))
    const parsed = events.flatMap((event) =>
      event.type === 'object_delta' ? [(event as ParsedStreamEvent).delta.parsed] : [],
    )
    expect(parsed).toEqual([{}, { a: '' }, { a: 'xyz' }, { a: 'xyz' }])
    expect(JSON.stringify(events)).toContain('"parsed":{"a":"xyz"}')
  })
})

describe('loggingMiddleware', () => {
  const lines = async (level: LogLevel | undefined, steps: ScriptStep[]): Promise<string[]> => {
    const log: string[] = []
    const logging = loggingMiddleware({
      ...(level && { level }),
      logger: (at, message, details) => log.push(`${at} ${message} ${JSON.stringify(details)}`),
    })
    await failure(
      llm({
        model: scripted(steps),
        tools: [echo],
        middleware: [logging],
        config: { apiKey: 'sk-canary-1', headers: { 'x-api-key': 'tok-canary-2' } },
      }).stream('tell no one').turn,
    )
    return log
  }

  test('UPP-109 the level filters, from debug up to error', async () => {
    const counts = await Promise.all(
      (['debug', 'info', 'warn', 'error'] as const).map(async (level) => {
        const log = await lines(level, [calls('echo'), fails('broken')])
        return new Set(log.map((line) => line.split(' ')[0]))
      }),
    )
    expect(counts.map((set) => [...set].sort())).toEqual([
      ['debug', 'error', 'info'],
      ['error', 'info'],
      ['error'],
      ['error'],
    ])
    const byDefault = await lines(undefined, [says('x')])
    expect(byDefault).toHaveLength(2)
    expect(byDefault[1]).toContain('"totalTokens"')
  })

  test('UPP-109 neither keys nor content are logged, not even when an error repeats them', async () => {
    const log = await lines('debug', [[says('model secret')]])
    const failed = await lines('debug', [fails('Bad key sk-canary-1 and tok-canary-2')])
    expect(failed.join('\n')).toContain('[redacted]')
    expect([...log, ...failed].join('\n')).not.toMatch(/canary|tell no one|model secret/)
  })

  test('UPP-109 each line names the call and has its facts', async () => {
    const clock = manualClock()
    const log: unknown[] = []
    const logging = loggingMiddleware({
      level: 'debug',
      logger: (level, message, { provider, modelId, modality, ...facts }) => {
        expect([provider, modelId, modality]).toEqual(['scripted', 'script', 'llm'])
        log.push([level, message.replace('[llm] scripted/script ', ''), facts])
        clock.advance(5)
      },
    })
    const options = { tools: [echo], middleware: [logging], params: { a: 1, b: 2 }, clock }
    await llm({ model: scripted(withTool), ...options }).generate('x')
    expect(log).toEqual([
      ['info', 'started', { streaming: false }],
      ['debug', 'request', { params: 'a, b', messages: 1, tools: 'echo' }],
      ['debug', 'inference 1', { cycle: 1 }],
      ['debug', 'tool echo called', { toolName: 'echo', toolCallId: 'call_1' }],
      ['debug', 'tool echo returned', { toolName: 'echo', toolCallId: 'call_1' }],
      ['debug', 'inference 2', { cycle: 2 }],
      ['debug', 'response', {}],
      [
        'info',
        'ended',
        expect.objectContaining({ durationMs: 30, cycles: 2, stopReason: 'end_turn' }),
      ],
    ])
    log.length = 0
    const stream = llm({ model: scripted([waits(Infinity)]), ...options }).stream('x')
    setTimeout(() => stream.abort(), 5)
    await failure(stream.turn)
    expect(log.at(-1)).toEqual(['warn', 'was cancelled', { durationMs: 15 }])
    await failure(
      llm({
        model: scripted([fails({ code: 'RATE_LIMITED', statusCode: 429 })]),
        ...options,
      }).generate('x'),
    )
    expect((log.at(-1) as unknown[])[0]).toBe('error')
    expect((log.at(-1) as unknown[])[2]).toMatchObject({ code: 'RATE_LIMITED', statusCode: 429 })
  })

  test('UPP-109 the console is the default logger', async () => {
    const info = vi.spyOn(console, 'info').mockImplementation(() => {})
    await llm({ model: scripted([says('x')]), middleware: [loggingMiddleware()] }).generate('x')
    expect(info).toHaveBeenCalledTimes(2)
    info.mockRestore()
  })
})
