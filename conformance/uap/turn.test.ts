import { agent, AgentState, type AgentStrategy, type ExecutionStrategy } from '@skein/agents'
import { loop, react } from '@skein/agents/execution'
import {
  llm,
  UserMessage,
  type LLMInstance,
  type StreamEvent,
  type Tool,
  type Turn,
} from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { calls, emits, fails, says, scripted, type ScriptPart } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { expect, test } from 'vitest'
import { add } from './support/tools.ts'

const start = AgentState.initial()

const usageOf = (n: number) => ({ ...zeroUsage, inputTokens: n, totalTokens: n })
const warningOf = (n: number) => ({ code: 'w', message: `warning ${n}` })
const sourceOf = (n: number) =>
  ({ type: 'url', url: `https://a.test/${n}`, originals: [n] }) as const

/** The n-th answer, as a vendor may send it: with a warning, a source, tokens and its own stop reason. */
function answer(n: number, text?: string): ScriptPart {
  const block: StreamEvent[] =
    text === undefined
      ? [
          { type: 'content_block_start', index: 0, delta: { block: 'tool_call', toolCallId: `c${n}`, toolName: 'add' } },
          { type: 'tool_call_delta', index: 0, delta: { toolCallId: `c${n}`, toolName: 'add', argumentsJson: `{"a":${n},"b":0}` } },
        ]
      : [
          { type: 'content_block_start', index: 0, delta: { block: 'text' } },
          { type: 'text_delta', index: 0, delta: { text } },
        ] // prettier-ignore
  return emits(
    { type: 'message_start', index: 0, delta: {} },
    ...block,
    { type: 'content_block_stop', index: 0, delta: {} },
    {
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: text === undefined ? 'tool_use' : 'end_turn',
        rawStopReason: `raw ${n}`,
        usage: usageOf(n),
        warnings: [warningOf(n)],
        sources: [sourceOf(n), sourceOf(0)],
      },
    },
  )
}

/** Everything that can be reached, except the internals of a `Date`. */
function expectFrozen(value: unknown, path = 'turn'): void {
  if (typeof value !== 'object' || value === null || value instanceof Date) return
  expect(Object.isFrozen(value), path).toBe(true)
  for (const [name, item] of Object.entries(value)) expectFrozen(item, `${path}.${name}`)
}

test('UAP-050 UAP-060 the turn has what every inference of the run gave, and a step what its own gave', async () => {
  for (const form of ['generate', 'stream'] as const) {
    const steps: Turn[] = []
    const strategy: AgentStrategy = { onStepEnd: (_, { turn }) => void steps.push(turn) }
    const model = scripted([answer(1), answer(2), answer(4, '{"n":4}')])
    const structure = { type: 'object' }
    const worker = agent({ model, tools: [add], structure, strategy })
    const used: unknown[] = []
    let result
    if (form === 'generate') result = await worker.generate('x', start)
    else {
      const stream = worker.stream('x', start)
      for await (const { uap } of stream) if (uap?.type === 'step_end') used.push(uap.data)
      result = await stream.result
      expect(used).toEqual([
        { usage: usageOf(1) },
        { usage: usageOf(2) },
        { usage: usageOf(4), stopReason: 'complete' },
      ])
    }
    const { turn, state } = result
    const executed = (n: number) => ({
      toolName: 'add',
      toolCallId: `c${n}`,
      arguments: { a: n, b: 0 },
      result: n,
      isError: false,
      duration: expect.any(Number) as number,
    })
    expect(turn).toEqual({
      messages: state.messages,
      response: state.messages.at(-1),
      toolExecutions: [executed(1), executed(2)],
      usage: usageOf(7),
      usageByCycle: [usageOf(1), usageOf(2), usageOf(4)],
      cycles: 3,
      stopReason: 'end_turn',
      rawStopReason: 'raw 4',
      data: { n: 4 },
      text: '{"n":4}',
      warnings: [1, 2, 4].map(warningOf),
      sources: [sourceOf(1), { ...sourceOf(0), originals: [0, 0, 0] }, sourceOf(2), sourceOf(4)],
      openCalls: [],
    })
    expectFrozen(turn)
    for (const one of steps) expectFrozen(one)
    const own = (n: number) => ({
      usage: usageOf(n),
      usageByCycle: [usageOf(n)],
      cycles: 1,
      rawStopReason: `raw ${n}`,
      warnings: [warningOf(n)],
      sources: [sourceOf(n), sourceOf(0)],
      openCalls: [],
    })
    expect(steps).toMatchObject([
      { ...own(1), messages: state.messages.slice(1, 3), toolExecutions: [executed(1)] },
      { ...own(2), messages: state.messages.slice(3, 5), toolExecutions: [executed(2)] },
      { ...own(4), messages: state.messages.slice(5), toolExecutions: [] },
    ])
  }
})

test('UAP-050 the error of a run has the turn so far, with what the last inference still gave', async () => {
  const broken = [says('half'), fails({ message: 'gone', code: 'NETWORK_ERROR' })]
  for (const [execution, before] of [
    [loop(), []],
    [react(), [says('I think.')]],
  ] as const) {
    const model = scripted([...before, calls('add', { a: 1, b: 1 }), ...before, broken])
    const worker = agent({ model, tools: [add], execution })
    const error = await worker.stream('x', start).result.catch((failure: unknown) => failure)
    const { turn } = error as { turn: Turn }
    expect(error).toMatchObject({ code: 'NETWORK_ERROR' })
    expect(turn.messages[0]).toMatchObject({ type: 'user' })
    expect(turn.messages.at(-1)!.text).toBe('half')
    expect(turn.response.text).toBe('half')
    expect(turn.toolExecutions).toMatchObject([{ result: 2 }])
    expect(turn.messages.filter(({ type }) => type === 'assistant')).toHaveLength(
      model.requests.length,
    )
  }
})

test('UAP-050 UAP-061 rounds that a model ran itself count and are reported one by one', async () => {
  const tools = [add]
  const model = scripted([answer(1), answer(2), answer(4, 'done')])
  const real = llm({ model, tools })
  const opaque = {
    generate: (...given: never[]) => real.generate(...given),
    stream: (...given: never[]) => real.stream(...given),
  } as unknown as LLMInstance
  const execution: ExecutionStrategy = {
    name: 'opaque',
    execute: (context) => loop().execute({ ...context, llm: opaque }),
    stream: (context) => loop().stream({ ...context, llm: opaque }),
  }
  const told: unknown[] = []
  const strategy: AgentStrategy = {
    onAct: (_, actions) => void told.push(actions.map(({ toolCallId }) => toolCallId)),
    onObserve: (_, seen) => void told.push(seen.map(({ result }) => result)),
  }
  const { turn } = await agent({ model, tools, execution, strategy }).generate('x', start)
  expect(told).toEqual([['c1'], [1], ['c2'], [2]])
  expect([turn.cycles, turn.usage, turn.usageByCycle]).toEqual([
    3,
    usageOf(7),
    [usageOf(1), usageOf(2), usageOf(4)],
  ])
})

test('UAP-061 tools wait for onAct, and the next inference for onObserve', async () => {
  const log: string[] = []
  const slowly = async (what: string, turns = 5): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    log.push(what)
  }
  const look = { ...add, run: () => void log.push('run') }
  const model = scripted((_, index) => {
    log.push('infer')
    return index === 0 ? calls('add', {}) : says('done')
  })
  const strategy: AgentStrategy = {
    onStepStart: () => slowly('start'),
    onAct: () => slowly('act'),
    onObserve: () => slowly('observe'),
    onStepEnd: () => slowly('end', 1),
  }
  await agent({ model, tools: [look], strategy }).generate('x', start)
  expect(log.join(' ')).toBe('start infer act run observe end start infer end')
})

test('UAP-059 a message that steers the run belongs to the turn of its step', async () => {
  const steps: Turn[] = []
  const model = scripted([says('one'), says('two')])
  const strategy: AgentStrategy = { onStepEnd: (_, { turn }) => void steps.push(turn) }
  const worker = agent({ model, strategy })
  const stream = worker.stream('x', start)
  const late = new UserMessage('and this')
  for await (const { upp } of stream)
    if (upp?.type === 'text_delta' && upp.delta.text.includes('one')) stream.steer(late)
  const { state } = await stream.result
  expect(steps.map(({ messages }) => messages.map(({ text }) => text))).toEqual([
    ['one'],
    ['and this', 'two'],
  ])
  expect(state.messages[2]).toBe(late)
})

test('UAP-014 a message that steered an aborted run is in no other run of the agent', async () => {
  const model = scripted(() => says('ok'))
  const worker = agent({ model })
  const first = worker.stream('x', start)
  first.steer('never sent')
  first.abort()
  await expect(first.result).rejects.toMatchObject({ code: 'CANCELLED' })
  await worker.stream('y', start).result
  expect(model.requests.at(-1)!.messages.map(({ text }) => text)).toEqual(['y'])
})

test('UAP-014 a history that a hook left without results is completed once, and sent so ever after', async () => {
  const model = scripted([calls('add', { a: 1, b: 1 }), calls('add', { a: 2, b: 2 }), says('done')])
  const strategy: AgentStrategy = {
    onInference: ({ cycle, messages }) =>
      cycle === 2 ? { messages: messages.filter(({ type }) => type !== 'tool_result') } : undefined,
  }
  const { state } = await agent({ model, tools: [add], strategy }).generate('x', start)
  const [, second, third] = model.requests.map(({ messages }) => messages.map(({ id }) => id))
  expect(second).toHaveLength(3)
  expect(third!.slice(0, 3)).toEqual(second)
  expect(third).toHaveLength(5)
  expect(state.messages.filter(({ type }) => type === 'tool_result')).toMatchObject([
    { results: [{ result: 2 }] },
    { results: [{ result: 4 }] },
  ])
})

test('UAP-070 results are in the order of the calls, however long each took', async () => {
  const clock = manualClock()
  const slow: Tool = { ...add, name: 'slow', run: () => (clock.advance(10), 'slow') }
  const fast: Tool = { ...add, name: 'fast', run: () => 'fast' }
  const model = scripted([[calls('slow'), calls('fast')], says('done')])
  const { turn } = await agent({ model, tools: [slow, fast], clock }).generate('x', start)
  expect(model.requests[1]!.messages.at(-1)).toMatchObject({
    results: [{ result: 'slow' }, { result: 'fast' }],
  })
  expect(turn.toolExecutions.map(({ result }) => result)).toEqual(['slow', 'fast'])
})
