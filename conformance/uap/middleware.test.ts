import { agent, AgentState, type GenerateResult, type Middleware } from '@skein/agents'
import { UserMessage } from '@skein/ai'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { collect, recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const named = (name: string, log: string[]): Middleware => ({
  name,
  before: async () => void log.push(`${name} before`),
  after: async (_, result) => {
    log.push(`${name} after`)
    return result
  },
  onError: async (_, error) => void log.push(`${name} error ${error.message}`),
})

test('UAP-128 UAP-130 before runs in order, after in reverse, and all of them may be async or absent', async () => {
  const log: string[] = []
  const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2))
  const slow: Middleware = {
    name: '2',
    before: async () => {
      await later()
      log.push('2 before')
    },
    after: async (_, result) => {
      await later()
      log.push('2 after')
      return result
    },
  }
  const middleware = [named('1', log), { name: 'bare' }, slow, named('3', log)]
  const strategy = {
    onStepStart: () => void log.push('run'),
    onComplete: () => void log.push('complete'),
  }
  await agent({ model: scripted([says('hi')]), middleware, strategy }).generate('x', start)
  expect(log).toEqual([
    '1 before',
    '2 before',
    '3 before',
    'run',
    'complete',
    '3 after',
    '2 after',
    '1 after',
  ])
})

test('UAP-129 the metadata of a run is an object and a map, its own for each run', async () => {
  const seen: unknown[] = []
  const timing: Middleware = {
    name: 'timing',
    before: async (context) => {
      context.metadata['startTime'] = context.input.text
      context.metadata.set('other', 1)
      await Promise.resolve()
      return context
    },
    after: async ({ metadata, agent: who, input, state }, result) => {
      seen.push([
        metadata['startTime'],
        metadata.get('startTime'),
        metadata['other'],
        metadata['given'],
      ])
      seen.push([metadata.size, 'startTime' in metadata, Object.keys(metadata).sort()])
      expect([who, input.text, state]).toEqual([worker, expect.any(String), start])
      return result
    },
  }
  const worker = agent({ model: scripted(() => says('hi')), middleware: [timing] })
  await Promise.all([
    worker.generate('a', start, { metadata: { given: 'g' } }),
    worker.generate('b', start),
  ])
  expect(seen).toContainEqual(['a', 'a', 1, 'g'])
  expect(seen).toContainEqual(['b', 'b', 1, undefined])
  expect(seen).toContainEqual([3, true, ['given', 'other', 'startTime']])
})

test('UAP-131 UAP-132 before may replace input and state, after the result; both may return nothing', async () => {
  const model = scripted([says('hi')])
  const input = new UserMessage('changed')
  const state = start.withMessage(new UserMessage('history'))
  const replaced = { turn: {} as GenerateResult['turn'], state: start }
  const seen: unknown[] = []
  const middleware: Middleware[] = [
    { name: 'last word', after: () => replaced },
    { name: 'silent', before: () => {}, after: () => {} },
    { name: 'change', before: (context) => ({ ...context, input, state }) },
    { name: 'look', before: (context) => void seen.push(context.input, context.state) },
  ]
  const result = await agent({ model, middleware }).generate('x', start)
  expect(model.requests[0]!.messages.map(({ text }) => text)).toEqual(['history', 'changed'])
  expect(seen).toEqual([input, state])
  expect(result).toBe(replaced)
})

test('UAP-131 a run belongs to the session of the state that before returned', async () => {
  const checkpoints = recordingStore()
  const state = start.withMetadata('sessionId', 'second')
  const middleware: Middleware[] = [{ name: 'move', before: (context) => ({ ...context, state }) }]
  const worker = agent({ model: scripted([says('hi')]), middleware, checkpoints })
  const result = await worker.generate('x', start.withMetadata('sessionId', 'first'))
  await worker.flush()
  expect(result.state.metadata['sessionId']).toBe('second')
  expect(await checkpoints.list()).toEqual(['second'])
})

describe('errors', () => {
  const recovery = { turn: {} as GenerateResult['turn'], state: start }

  test('UAP-133 pass from the inside out, each level with its own context, until one recovers', async () => {
    const log: string[] = []
    const middleware: Middleware[] = [
      named('outer', log),
      {
        name: 'middle',
        before: (context) => ({ ...context, input: new UserMessage('for the middle') }),
        onError: ({ input }, error) => {
          log.push(`middle ${input.text} ${error.message}`)
          return recovery
        },
        after: () => void log.push('middle after'),
      },
      {
        ...named('inner', log),
        before: (context) => {
          log.push('inner before')
          return { ...context, input: new UserMessage('for the inner') }
        },
      },
    ]
    const strategy = {
      onError: (error: Error) => void log.push(`strategy ${error.message}`),
      onComplete: (result: GenerateResult) => void log.push(`complete ${result === recovery}`),
    }
    const result = await agent({
      model: scripted([fails('broken')]),
      middleware,
      strategy,
    }).generate('x', start)
    expect(result).toBe(recovery)
    expect(log).toEqual([
      'outer before',
      'inner before',
      'strategy broken',
      'inner error broken',
      'middle for the middle broken',
      'complete true',
      'outer after',
    ])
  })

  test('UAP-133 of a before reach those that had started, and no one else', async () => {
    const log: string[] = []
    const model = scripted([says('never')])
    const middleware: Middleware[] = [
      named('outer', log),
      { ...named('guard', log), before: () => Promise.reject(new Error('blocked')) },
      named('inner', log),
    ]
    const error = await agent({ model, middleware })
      .generate('x', start)
      .catch((e: unknown) => e)
    expect(error).toMatchObject({
      name: 'UPPError',
      message: 'before of the middleware "guard" failed: blocked',
      cause: { message: 'blocked' },
    })
    expect(log.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
      'outer before',
      'guard error',
      'outer error',
    ])
    expect(model.requests).toHaveLength(0)
  })

  test('UAP-133 of an after can be recovered by its own level or an outer one; one in onError replaces the error', async () => {
    const log: string[] = []
    const middleware: Middleware[] = [
      { name: 'outer', onError: (_, error) => (log.push(error.message), recovery) },
      { name: 'worse', onError: () => Promise.reject(new Error('worse')) },
      { name: 'broken', after: () => Promise.reject(new Error('after broke')) },
    ]
    const result = await agent({ model: scripted([says('hi')]), middleware }).generate('x', start)
    expect(result).toBe(recovery)
    expect(log).toEqual(['onError of the middleware "worse" failed: worse'])
  })

  test('UAP-134 a stream has the same pipeline: before comes before the first event, a recovery is its result', async () => {
    const log: string[] = []
    const middleware = [named('m', log)]
    const stream = agent({ model: scripted([says('hi')]), middleware }).stream('x', start)
    for await (const event of stream) {
      if (log.length === 1) log.push('event')
      void event
    }
    expect(log).toEqual(['m before', 'event', 'm after'])
    const failing = agent({
      model: scripted([fails('broken')]),
      middleware: [{ name: 'r', onError: () => recovery }],
    }).stream('x', start)
    expect((await collect(failing)).length).toBeGreaterThan(0)
    expect(await failing.result).toBe(recovery)
  })

  test('a cancelled run tells its middleware, but cannot be recovered', async () => {
    const log: string[] = []
    const middleware: Middleware[] = [
      { name: 'r', onError: (_, error) => (log.push(error.message), recovery) },
    ]
    const stream = agent({ model: scripted([waits(Infinity)]), middleware }).stream('x', start)
    setTimeout(() => stream.abort(), 5)
    await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(log).toHaveLength(1)
  })

  test('a before that never ends does not keep an abort waiting', async () => {
    const middleware: Middleware[] = [{ name: 'deaf', before: () => new Promise(() => {}) }]
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 5)
    const run = agent({ model: scripted([]), middleware }).generate('x', start, {
      signal: controller.signal,
    })
    await expect(run).rejects.toMatchObject({ code: 'CANCELLED' })
  })
})

test('UAP-136 middleware wraps every call of the agent, resumed ones too', async () => {
  const log: string[] = []
  const model = scripted(({ messages }) =>
    messages.length === 1 ? calls('add', { a: 1, b: 1 }) : says('x'),
  )
  const worker = agent({ model, tools: [add], middleware: [named('m', log)] })
  const { state } = await worker.generate('a', start)
  await worker.ask('a', start)
  await worker.query('a')
  await worker.stream('a', start).result
  await worker.resume(state)
  expect(log).toHaveLength(10)
})

test('a history that a middleware cut in two is repaired before it is sent', async () => {
  const model = scripted([calls('add', { a: 1, b: 1 }), says('two'), says('again')])
  const slides: Middleware = {
    name: 'slide',
    before: (context) => ({
      ...context,
      state: context.state.withContext(context.state.messages.slice(-2)),
    }),
  }
  const worker = agent({ model, tools: [add] })
  const { state } = await worker.generate('x', start)
  await agent({ ...worker, middleware: [slides] }).generate('y', state)
  expect(model.requests[2]!.messages.map(({ type }) => type)).toEqual(['assistant', 'user'])
})
