import { agent, AgentState, type ExecutionStrategy } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { AssistantMessage, UserMessage, type Middleware, type ToolUseStrategy } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { collect, outline, recordingStore } from './support/state.ts'
import { add } from './support/tools.ts'

const adding = calls('add', { a: 1, b: 2 })
const start = AgentState.initial()

describe('options', () => {
  test('UAP-035 every option of llm() reaches the provider; llmMiddleware is the model’s', async () => {
    const model = scripted([adding, says('{"n":3}')])
    const hooks: string[] = []
    const llmMiddleware: Middleware[] = [
      {
        name: 'look',
        onStart: () => void hooks.push('start'),
        onToolCall: () => void hooks.push('tool'),
      },
    ]
    const { turn } = await agent({
      model,
      params: { temperature: 0.5 },
      config: { headers: { 'x-a': 'b' } },
      tools: [add],
      system: 'Be brief.',
      structure: { type: 'object', properties: { n: { type: 'number' } } },
      toolStrategy: { onBeforeCall: () => ({ proceed: true, params: { a: 5, b: 5 } }) },
      llmMiddleware,
    }).generate('x', start)
    const [request] = model.requests
    expect(request).toMatchObject({ params: { temperature: 0.5 }, system: 'Be brief.' })
    expect(request!.config.headers).toEqual({ 'x-a': 'b' })
    expect(request!.tools.map(({ name }) => name)).toEqual(['add'])
    expect(request!.structure).toMatchObject({ properties: { n: { type: 'number' } } })
    expect(turn.toolExecutions[0]?.result).toBe(10)
    expect(turn.data).toEqual({ n: 3 })
    expect(hooks).toEqual(['start', 'tool', 'start'])
  })

  test('UAP-036 a model is all an agent needs; without one it can be made, not run', async () => {
    const { turn } = await agent({ model: scripted([says('hi')]) }).generate('x', start)
    expect(turn.response.text).toBe('hi')
    await expect(agent({ tools: [add] }).generate('x', start)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('no model'),
    })
  })

  test('UAP-037 without an execution it is loop()', async () => {
    const outlineOf = async (execution?: ExecutionStrategy) => {
      const model = scripted([adding, says('three')])
      const stream = agent({ model, tools: [add], ...(execution && { execution }) }).stream(
        'x',
        start,
      )
      return outline(await collect(stream))
    }
    expect(await outlineOf()).toEqual(await outlineOf(loop()))
    expect(await outlineOf()).not.toEqual(await outlineOf(react()).catch(() => []))
  })

  test('UAP-039 the tool strategy is passed on with its class, and not changed', async () => {
    class Counting implements ToolUseStrategy {
      #count = 0
      get count(): number {
        return this.#count
      }
      onToolCall(): void {
        this.#count++
      }
    }
    const counting = new Counting()
    const frozen = Object.freeze({ onToolCall: () => {} })
    const script = [...Array.from({ length: 12 }, () => adding), says('done')]
    await agent({ model: scripted(script), tools: [add], toolStrategy: counting }).generate(
      'x',
      start,
    )
    const run = agent({ model: scripted(script), tools: [add], toolStrategy: frozen })
    const { stopReason } = await run.generate('x', start)
    expect(stopReason).toBe('complete')
    expect(counting.count).toBe(12)
    expect(Object.keys(counting)).toEqual([])
    expect(Object.keys(frozen)).toEqual(['onToolCall'])
  })

  test('UAP-040 an agent shows its parts and its calls as own properties', () => {
    const model = scripted([])
    const config = { headers: {} }
    const worker = agent({ model, tools: [add], system: 's', config })
    const keys = ['id', 'model', 'tools', 'system', 'config', 'generate', 'stream', 'ask', 'query']
    expect(Object.keys(worker)).toEqual(expect.arrayContaining(keys))
    expect(worker).toMatchObject({ model, system: 's', config })
    expect(worker.tools).toEqual([add])
    expect(Object.isFrozen(worker)).toBe(true)
  })
})

describe('generate', () => {
  test('UAP-041 UAP-048 takes text or a message, which is used as it is', async () => {
    const model = scripted(() => says('hi'))
    const worker = agent({ model })
    const text = await worker.generate('hello', start)
    expect(text.turn.response.text).toBe('hi')
    expect(text.state.messages[0]?.text).toBe('hello')
    const spaced = await worker.generate('  a\n ', start)
    expect(spaced.state.messages[0]?.text).toBe('  a\n ')
    expect(model.requests.at(-1)!.messages[0]?.text).toBe('  a\n ')
    const message = new UserMessage('mine', { metadata: { app: { n: 1 } } })
    const { state } = await worker.generate(message, start)
    expect(state.messages[0]).toBe(message)
    expect(model.requests.at(-1)!.messages[0]).toBe(message)
    await expect(worker.generate(7 as never, start)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
    await expect(worker.generate('x', {} as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
  })

  test('UAP-042 the next call knows the whole exchange', async () => {
    const model = scripted([adding, says('three'), says('again')])
    const worker = agent({ model, tools: [add] })
    const { state } = await worker.generate('1 + 2?', start)
    await worker.generate('sure?', state)
    expect(model.requests[2]!.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'assistant',
      'user',
    ])
  })

  test('UAP-049 a fresh state holds the messages of the turn, in order', async () => {
    for (const execution of [loop(), react(), plan()]) {
      const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))
      const { turn, state } = await agent({ model, execution }).generate('x', start)
      expect(state.messages.map(({ id }) => id)).toEqual(turn.messages.map(({ id }) => id))
      expect(turn.messages[0]?.text).toBe('x')
      expect(turn.messages.at(-1)).toBe(turn.response)
    }
  })

  test('UAP-049 calls that get a result without being run are in both, with that result', async () => {
    // A vendor without structured output submits its plan as a call; a model may call a tool while it is to think.
    const submitted = scripted([calls('submit_plan', { steps: [] }), says('ok')], {
      capabilities: { structuredOutput: false },
    })
    const hasty = scripted([adding, says('ok')])
    for (const [model, execution] of [
      [submitted, plan()],
      [hasty, react()],
    ] as const) {
      const worker = agent({ model, execution, tools: [add] })
      const { turn, state } = await worker.generate('x', start)
      expect(state.messages.map(({ type }) => type)).toContain('tool_result')
      expect(turn.messages).toEqual(state.messages)
    }
  })

  test('UAP-050 UAP-060 the turn tells of the whole run', async () => {
    const model = scripted([
      says('think'),
      adding,
      says('think more'),
      adding,
      says('think again'),
      says('three'),
    ])
    const { turn } = await agent({ model, tools: [add], execution: react() }).generate('x', start)
    expect(turn.cycles).toBe(6)
    expect(turn.usageByCycle).toHaveLength(6)
    const total = turn.usageByCycle.reduce((sum, usage) => sum + usage.totalTokens, 0)
    expect(turn.usage.totalTokens).toBe(total)
    expect(total).toBeGreaterThan(0)
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual([3, 3])
    expect(turn.response.text).toBe('three')
    expect(turn.stopReason).toBe('end_turn')
    expect(turn.openCalls).toEqual([])
    expect(Object.isFrozen(turn)).toBe(true)
  })
})

/** It forgets to keep what was said. */
const forgetful: ExecutionStrategy = {
  name: 'forgetful',
  execute: async ({ llm, input, state }) => ({
    turn: await llm.generate(state.messages, input),
    state: state.withStep(1),
  }),
  stream: () => {
    throw new Error('not here')
  },
}
/** It keeps the input, but not the answer. */
const halfForgetful: ExecutionStrategy = {
  ...forgetful,
  execute: async ({ llm, input, state }) => ({
    turn: await llm.generate(state.messages, input),
    state: state.withMessage(input),
  }),
}

test('UAP-044 UAP-045 UAP-046 after ask() the exchange is in the state, each message once', async () => {
  for (const execution of [loop(), react(), plan(), custom(), forgetful, halfForgetful]) {
    const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))
    const worker = agent({ model, execution })
    let state = AgentState.initial()
    for (let i = 0; i < 5; i++) state = (await worker.ask(`question ${i}`, state)).state
    const ids = state.messages.map(({ id }) => id)
    expect(new Set(ids).size, execution.name).toBe(ids.length)
    const texts = state.messages.map(({ text }) => text)
    const at = (text: string) => texts.indexOf(text)
    // By text and not only by id: the same question in two messages would be asked twice.
    for (let i = 0; i < 5; i++)
      expect(
        texts.filter((text) => text === `question ${i}`),
        execution.name,
      ).toHaveLength(1)
    for (let i = 1; i < 5; i++)
      expect(texts.slice(at(`question ${i - 1}`) + 1, at(`question ${i}`))).toContain('ok')
    expect(state.messages.at(-1)).toBeInstanceOf(AssistantMessage)
  }
})

test('UAP-047 UAP-048 a query starts from nothing and leaves nothing', async () => {
  const model = scripted(() => says('four'))
  const seen: AgentState[] = []
  const spying: ExecutionStrategy = {
    ...loop(),
    execute: (context) => {
      seen.push(context.state)
      return loop().execute(context)
    },
  }
  const worker = agent({ model, execution: spying })
  await worker.query('2 + 2?')
  const turn = await worker.query('And what did I ask?')
  expect(turn.response.text).toBe('four')
  expect('state' in turn).toBe(false)
  expect(model.requests[1]!.messages).toHaveLength(1)
  expect(seen.map(({ messages, step }) => [messages.length, step])).toEqual([
    [0, 0],
    [0, 0],
  ])
})

test('a query never overwrites the checkpoint of a conversation', async () => {
  const checkpoints = recordingStore()
  const worker = agent({ model: scripted(() => says('x')), checkpoints, sessionId: 'kept' })
  await worker.generate('a', start)
  await worker.query('b')
  await worker.flush()
  expect(checkpoints.saves.map(([id]) => id)[0]).toBe('kept')
  expect(checkpoints.saves.map(([id]) => id).filter((id) => id === 'kept')).toHaveLength(1)
})

test('UAP-041 a message as parsed JSON is an input too', async () => {
  const model = scripted([says('hi')])
  const json = JSON.parse(JSON.stringify(new UserMessage('from JSON'))) as never
  const { state } = await agent({ model }).generate(json, AgentState.initial())
  expect(model.requests[0]!.messages[0]!.text).toBe('from JSON')
  expect(state.messages[0]).toBeInstanceOf(UserMessage)
})

test('UAP-048 a state that has its answer is resumed to that answer, without asking again', async () => {
  const model = scripted([says('one'), says('two')])
  const worker = agent({ model })
  const first = await worker.generate('a', AgentState.initial())
  const second = await worker.generate('b', first.state)
  const { turn, stopReason } = await worker.resume(second.state)
  expect([turn.response.text, stopReason, turn.cycles]).toEqual(['two', 'complete', 0])
  expect(model.requests).toHaveLength(2)
})

test('UAP-044 UAP-045 ask() completes a state to which a strategy has added nothing', async () => {
  const forgetful: ExecutionStrategy = {
    ...custom(),
    execute: async ({ llm: model, input, state }) => {
      const turn = await model.generate(state.messages, input)
      return { turn: { ...turn, messages: [turn.response] }, state }
    },
  }
  const worker = agent({ model: scripted([says('one'), says('two')]), execution: forgetful })
  const first = await worker.ask('a', AgentState.initial())
  const second = await worker.ask('b', first.state)
  expect(second.state.messages.map(({ text }) => text)).toEqual(['a', 'one', 'b', 'two'])
})
