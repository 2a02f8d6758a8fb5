import { agent, AgentState, type ExecutionContext, type ExecutionStrategy } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import {
  AssistantMessage,
  isAssistantMessage,
  llm,
  UserMessage,
  type LLMInstance,
  type Turn,
} from '@skein/ai'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { collect, recordingStore } from './support/state.ts'
import { add, probeLog } from './support/tools.ts'

const start = AgentState.initial()

test('UAP-051 UAP-053 a strategy has a name, execute and stream, and both give turn and state', async () => {
  expect([loop(), react(), plan()].map(({ name }) => name)).toEqual(['loop', 'react', 'plan'])
  for (const strategy of [loop(), react(), plan()]) {
    expect(Object.keys(strategy).sort()).toEqual(['execute', 'name', 'stream'])
    const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))
    const worker = agent({ model })
    const context: ExecutionContext = {
      agent: worker,
      llm: llm({ model }),
      input: new UserMessage('x'),
      state: start,
      tools: [],
      strategy: {},
    }
    const waited = await strategy.execute(context)
    const streamed = await strategy.stream(context).result
    for (const { turn, state } of [waited, streamed]) {
      expect(turn.response.text).toBe('ok')
      expect(state).toBeInstanceOf(AgentState)
      expect(state.messages[0]).toBe(context.input)
    }
  }
})

describe('UAP-051 a built-in strategy that is streamed by hand', () => {
  const contextOf = (model: ReturnType<typeof scripted>, more: Partial<ExecutionContext> = {}) => ({
    agent: agent({ model, tools: [add] }),
    llm: llm({ model, tools: [add] }),
    input: new UserMessage('x'),
    state: start,
    tools: [add],
    strategy: {},
    ...more,
  })
  const adding = calls('add', { a: 1, b: 1 })

  test('UAP-145 names its agent in events, reports each state, and takes messages from both sides', async () => {
    const model = scripted([adding, says('done')])
    const saved: AgentState[] = []
    const given = [new UserMessage('from the caller')]
    const context = contextOf(model, {
      checkpoint: (state) => void saved.push(state),
      takeSteering: () => given.splice(0),
    })
    const stream = loop().stream(context)
    if (!('steer' in stream && typeof stream.steer === 'function'))
      throw new Error('the stream cannot be steered')
    const own = new UserMessage('from the reader')
    stream.steer(own)
    stream.steer('and a text')
    for await (const { uap } of stream) if (uap) expect(uap.agentId).toBe(context.agent.id)
    const { state } = await stream.result
    const asked = state.messages.filter(({ type }) => type === 'user')
    expect(asked.map(({ text }) => text)).toEqual([
      'x',
      'from the caller',
      'from the reader',
      'and a text',
    ])
    expect(asked[2]).toBe(own)
    expect(saved.map(({ step }) => step)).toEqual([1, 2])
    expect((stream as unknown as { state: AgentState }).state).toBe(saved.at(-1))
  })

  test('UAP-152 ends when its own abort or the signal of the context is used', async () => {
    for (const how of ['stream', 'context'] as const) {
      const controller = new AbortController()
      const model = scripted([waits(Infinity)])
      const stream = loop().stream(contextOf(model, { signal: controller.signal }))
      await expect(
        (async () => {
          for await (const { uap } of stream)
            if (uap?.type === 'step_start') (how === 'stream' ? stream : controller).abort()
        })(),
      ).rejects.toMatchObject({ code: 'CANCELLED' })
      await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED' })
    }
  })
})

test('UAP-052 UAP-054 a strategy of one’s own is given the whole context, for every call', async () => {
  const seen: ExecutionContext[] = []
  const hooks = { onStepStart: () => {} }
  const log: string[] = []
  const model = scripted(() => says('hi'))
  const worker = agent({
    model,
    tools: [add],
    execution: custom((context) => seen.push(context)),
    strategy: hooks,
    middleware: [
      { name: 'm', before: () => void log.push('before'), after: () => void log.push('after') },
    ],
  })
  const input = new UserMessage('x')
  const state = start.withMetadata('a', 1)
  await worker.generate(input, state)
  await collect(worker.stream('x', state))
  await worker.ask('x', state)
  const turn = await worker.query('x')
  expect(turn.response.text).toBe('hi')
  expect(seen).toHaveLength(4)
  expect(seen[0]).toMatchObject({ input, state, strategy: hooks })
  expect(seen[0]!.agent).toBe(worker)
  expect(seen[0]!.input).toBe(input)
  expect(seen[0]!.tools).toEqual([add])
  expect(seen[0]!.llm.generate).toBeTypeOf('function')
  expect(seen[0]!.signal).toBeInstanceOf(AbortSignal)
  expect(log.join()).toBe('before,after,before,after,before,after,before,after')
})

test('UAP-100 UAP-101 under a strategy of one’s own, tools of both kinds get what they declare', async () => {
  const given: unknown[][] = []
  const bare = {
    ...add,
    name: 'bare',
    run: function (...args: [never]) {
      given.push(['bare', args.length])
      return 1
    },
  }
  const aware = {
    ...add,
    name: 'aware',
    run: (_: unknown, context: { toolCallId: string; agentId?: string; step?: number }) => {
      given.push(['aware', context.toolCallId, context.agentId])
      return 2
    },
  }
  const model = scripted([[calls('bare', {}, { id: 'b' }), calls('aware', {}, { id: 'a' })], says('ok')]) // prettier-ignore
  const worker = agent({ model, tools: [bare, aware], execution: custom() })
  await worker.generate('x', start)
  expect(given).toEqual([
    ['bare', 1],
    ['aware', 'a', worker.id],
  ])
})

test('UAP-055 the protocol’s own example keeps input and answer exactly once', async () => {
  const worker = agent({ model: scripted([says('one'), says('two')]), execution: custom() })
  const first = await worker.generate('a', start)
  const second = await worker.generate('b', first.state)
  expect(second.state.messages.map(({ text }) => text)).toEqual(['a', 'one', 'b', 'two'])
})

test('UAP-055 so it does with ask, from a text and from a message', async () => {
  for (const input of ['a', new UserMessage('a')]) {
    const worker = agent({ model: scripted([says('one')]), execution: custom() })
    const { turn, state } = await worker.ask(input, start)
    expect(state.messages.map(({ text }) => text)).toEqual(['a', 'one'])
    expect(state.messages).toEqual(turn.messages)
  }
})

test('UAP-056 a strategy that calls onStepEnd gets checkpoints and its session', async () => {
  const checkpoints = recordingStore()
  const ended: number[] = []
  const worker = agent({
    model: scripted(() => says('x')),
    execution: custom(),
    checkpoints,
    strategy: { onStepEnd: (step) => void ended.push(step) },
  })
  const { state } = await worker.generate('a', start)
  await collect(worker.stream('a', start))
  await worker.flush()
  expect(ended).toEqual([1, 1])
  expect(checkpoints.saves).toHaveLength(2)
  expect(checkpoints.saves[0]![0]).toBe(state.metadata['sessionId'])
  expect(checkpoints.saves[0]![1].messages).toHaveLength(2)
})

test('UAP-056 each onStepEnd saves the state of its step', async () => {
  const checkpoints = recordingStore()
  const twice: ExecutionStrategy = {
    ...custom(),
    execute: async ({ llm: model, input, state, strategy }) => {
      const turn = await model.generate(state.messages, input)
      const first = state.withMessages(turn.messages).withStep(1)
      await strategy.onStepEnd?.(1, { turn, state: first })
      await strategy.onStepEnd?.(2, { turn, state: first.withStep(2) })
      return { turn, state: first.withStep(3) }
    },
  }
  const worker = agent({ model: scripted([says('x')]), execution: twice, checkpoints })
  await worker.generate('a', start)
  await worker.flush()
  expect(checkpoints.saves.map(([, { step }]) => step)).toEqual([1, 2])
})

test('UAP-056 one that calls no hook is saved at its end', async () => {
  const checkpoints = recordingStore()
  const silent: ExecutionStrategy = {
    ...custom(),
    execute: async ({ llm: model, input, state }) => {
      const turn = await model.generate(state.messages, input)
      return { turn, state: state.withMessages(turn.messages) }
    },
  }
  const worker = agent({
    model: scripted([says('x')]),
    execution: silent,
    checkpoints,
    sessionId: 's',
  })
  await worker.generate('a', start)
  await worker.flush()
  expect(checkpoints.saves.map(([id, { messages }]) => [id, messages.length])).toEqual([['s', 2]])
})

describe('a model that has only generate and stream', () => {
  /** What a user's mock may look like. */
  function opaque(real: LLMInstance): LLMInstance {
    return {
      generate: (...given: never[]) => real.generate(...given),
      stream: (...given: never[]) => real.stream(...given),
    } as unknown as LLMInstance
  }
  const swapped = (strategy: ExecutionStrategy, model: LLMInstance): ExecutionStrategy => ({
    name: 'swapped',
    execute: (context) => strategy.execute({ ...context, llm: model }),
    stream: (context) => strategy.stream({ ...context, llm: model }),
  })

  test('is asked once per step and runs its own tools', async () => {
    for (const mode of ['generate', 'stream'] as const) {
      const { probe, names } = probeLog()
      const tools = [probe('look')]
      const model = scripted([calls('look'), says('seen')])
      const worker = agent({
        model,
        tools,
        execution: swapped(loop(), opaque(llm({ model, tools }))),
      })
      const { turn, state } =
        mode === 'generate'
          ? await worker.generate('x', start)
          : await worker.stream('x', start).result
      expect(state.step).toBe(1)
      expect(names()).toEqual(['look start', 'look end'])
      expect(turn.toolExecutions).toHaveLength(1)
      expect(state.messages.map(({ type }) => type)).toEqual([
        'user',
        'assistant',
        'tool_result',
        'assistant',
      ])
    }
  })

  test('UAP-147 is asked with the history and the new messages apart, and its events are streamed', async () => {
    const model = scripted(() => says('hello there'))
    const real = llm({ model })
    const seen: unknown[][] = []
    const note = (given: readonly unknown[]): void =>
      void seen.push(given.map((one) => (Array.isArray(one) ? one.length : (one as UserMessage).text))) // prettier-ignore
    const noting = {
      generate: (...given: never[]) => (note(given), real.generate(...given)),
      stream: (...given: never[]) => (note(given), real.stream(...given)),
    } as unknown as LLMInstance
    const worker = agent({ model, execution: swapped(loop(), noting) })
    const { state } = await worker.generate('a', start)
    const stream = worker.stream('b', state)
    const events = await collect(stream)
    expect(seen).toEqual([
      [0, 'a'],
      [2, 'b'],
    ])
    const types: string[] = []
    for await (const { type } of real.stream('b')) types.push(type)
    expect(events.flatMap(({ upp }) => upp?.type ?? [])).toEqual(types)
    const text = events.flatMap(({ upp }) => (upp?.type === 'text_delta' ? [upp.delta.text] : []))
    expect(text.join('')).toBe('hello there')
    expect((await stream.result).state.messages.map((one) => one.text)).toEqual([
      'a',
      'hello there',
      'b',
      'hello there',
    ])
  })

  test('UAP-139 UAP-146 the rounds that it ran itself are reported by hooks and events', async () => {
    const tools = [add]
    const one = (id: string, n: number) => calls('add', { a: n, b: n }, { id })
    const model = scripted([one('c', 1), [one('d', 2), one('e', 3)], says('all')])
    const told: unknown[] = []
    const worker = agent({
      model,
      tools,
      execution: swapped(loop(), opaque(llm({ model, tools }))),
      strategy: {
        onAct: (step, actions) =>
          void told.push([step, actions.map(({ toolCallId }) => toolCallId)]),
        onObserve: (step, seen) => void told.push([step, seen.map(({ result }) => result)]),
      },
    })
    const events = await collect(worker.stream('x', start))
    expect(told).toEqual([
      [1, ['c']],
      [1, [2]],
      [1, ['d', 'e']],
      [1, [4, 6]],
    ])
    const about = { step: 1, agentId: worker.id }
    expect(
      events.flatMap(({ uap }) =>
        uap?.type === 'action' || uap?.type === 'observation' ? [uap] : [],
      ),
    ).toMatchObject([
      { ...about, data: { toolCalls: [{ toolCallId: 'c', toolName: 'add' }] } },
      { ...about, data: { observations: [{ toolCallId: 'c', result: 2 }] } },
      { ...about, data: { toolCalls: [{ toolCallId: 'd' }, { toolCallId: 'e' }] } },
      { ...about, data: { observations: [{ result: 4 }, { result: 6 }] } },
    ])
  })

  test('UAP-152 learns of an abort', async () => {
    const reasons: unknown[] = []
    const real = llm({ model: scripted([waits(Infinity)]) })
    const noting = {
      stream: (...given: never[]) => {
        const stream = real.stream(...given)
        const abort = (reason: unknown): void => (reasons.push(reason), stream.abort(reason))
        return {
          turn: stream.turn,
          abort,
          [Symbol.asyncIterator]: () => {
            queueMicrotask(() => run.abort('enough')) // the model is being read now
            return stream[Symbol.asyncIterator]()
          },
        }
      },
    } as unknown as LLMInstance
    const worker = agent({ model: scripted([]), execution: swapped(loop(), noting) })
    const run = worker.stream('x', start)
    await expect(collect(run)).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(reasons).toEqual(['enough'])
  })

  test('has calls that it left open run by the strategy', async () => {
    const { probe, names } = probeLog()
    const tools = [probe('look')]
    const model = scripted([calls('look'), says('seen')])
    const real = llm({ model, tools, toolStrategy: { maxIterations: 0 } })
    const worker = agent({ model, tools, execution: swapped(loop(), opaque(real)) })
    const { state } = await worker.generate('x', start)
    expect(state.step).toBe(2)
    expect(names()).toEqual(['look start', 'look end'])
  })

  test('UAP-142 the agent’s tool strategy holds for the calls that it left open', async () => {
    const { probe, names } = probeLog()
    const tools = [probe('look')]
    const model = scripted([calls('look', { n: 1 }), says('seen')])
    const real = llm({ model, tools, toolStrategy: { maxIterations: 0 } })
    const asked: unknown[] = []
    const worker = agent({
      model,
      tools,
      execution: swapped(loop(), opaque(real)),
      toolStrategy: { onBeforeCall: (tool, args) => (asked.push([tool.name, args]), false) },
    })
    const { turn } = await worker.generate('x', start)
    expect(asked).toEqual([['look', { n: 1 }]])
    expect(names()).toEqual([])
    expect(turn.toolExecutions).toMatchObject([{ toolName: 'look', isError: true }])
  })

  test('is planned with by its text', async () => {
    const answers = [
      'Here: {"steps":[{"id":"a","description":"A","dependsOn":[]}]} Shall I?',
      'done',
    ]
    const turns = answers.map((text): Turn => {
      const response = new AssistantMessage(text)
      const usage = {
        inputTokens: 1,
        outputTokens: 1,
        totalTokens: 2,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      }
      return {
        messages: [response],
        response,
        text: response.text,
        data: undefined,
        toolExecutions: [],
        usage,
        usageByCycle: [usage],
        cycles: 1,
        stopReason: 'end_turn',
        warnings: [],
        sources: [],
        openCalls: [],
      }
    })
    const mock = { generate: async () => turns.shift() } as unknown as LLMInstance
    const worker = agent({ model: scripted([]), execution: swapped(plan(), mock) })
    const { state, turn } = await worker.generate('x', start)
    expect(state.plan).toMatchObject([{ id: 'a', status: 'completed' }])
    expect(state.messages.filter(isAssistantMessage)).toHaveLength(2)
    expect(turn.usage.totalTokens).toBe(4)
  })
})
