import { manualClock } from '@skein/base'
import { UserMessage } from '@skein/ai'
import { calls, says, scripted, stops, type ScriptFunction } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { agent, AgentState, subagent } from '../index.ts'
import { anyOf, maxCost, maxSteps, maxTime, maxTokens, type StopCondition } from './index.ts'

const clock = manualClock(1_000_000)
const wait = {
  name: 'wait',
  description: 'Waits a second.',
  parameters: { type: 'object' },
  run: () => clock.advance(1000),
}

/** Works for ever: a hundred tokens, a cent and a second a step. */
const endless: ScriptFunction = () => [
  calls('wait'),
  stops('tool_use', {
    usage: { inputTokens: 60, outputTokens: 40, totalTokens: 100, costUsd: 0.01 },
  }),
]

async function stepsUntil(stopCondition: StopCondition, state = AgentState.initial()) {
  const worker = agent({
    model: scripted(endless),
    tools: [wait],
    strategy: { stopCondition },
    clock,
  })
  const result = await worker.generate('work', state)
  expect(result.stopReason).toBe('stop_condition')
  expect(result.state.messages.at(-1)?.type).toBe('tool_result')
  return result.state.step
}

describe('a budget stops a run after the step that used it up', () => {
  test('tokens', async () => expect(await stepsUntil(maxTokens(250))).toBe(3))
  test('tokens, exactly', async () => expect(await stepsUntil(maxTokens(200))).toBe(2))
  test('cost', async () => expect(await stepsUntil(maxCost(0.045))).toBe(5))
  test('steps', async () => expect(await stepsUntil(maxSteps(4))).toBe(4))
  test('time, from the input', async () => {
    expect(await stepsUntil(maxTime(3000, { clock }))).toBe(3)
  })
  test('time, from metadata.startTime', async () => {
    const state = AgentState.initial().withMetadata('startTime', clock.now() - 2000)
    expect(await stepsUntil(maxTime(3000, { clock }), state)).toBe(1)
  })
  test('the first of several', async () => {
    expect(await stepsUntil(anyOf(maxTokens(1e9), maxSteps(2), maxCost(1e9)))).toBe(2)
  })
})

test('the history does not count against a run, only what it does itself', async () => {
  const long = AgentState.initial().withMessage(new UserMessage('x'.repeat(10_000)))
  expect(await stepsUntil(maxTokens(250), long)).toBe(3)
})

test('what sub-agents use is part of the budget, and can end them too', async () => {
  const usage = { inputTokens: 300, outputTokens: 100, totalTokens: 400, costUsd: 0.04 }
  const helper = agent({ model: scripted(() => [says('helped'), stops('end_turn', { usage })]) })
  const help = subagent({
    name: 'wait',
    description: 'Helps.',
    parameters: { type: 'object' },
    agent: helper,
    prompt: () => 'help',
  })
  const worker = (stopCondition: StopCondition) =>
    agent({ model: scripted(endless), tools: [help], strategy: { stopCondition } })
  const steps = async (condition: StopCondition) =>
    (await worker(condition).generate('work', AgentState.initial())).state.step
  expect(await steps(maxTokens(900))).toBe(2)
  expect(await steps(maxCost(0.15))).toBe(3)

  const runaway = agent({ model: scripted(endless), tools: [wait] })
  const bounded = subagent({
    name: 'wait',
    description: 'Never ends by itself.',
    parameters: { type: 'object' },
    agent: runaway,
    prompt: () => 'go',
    sharesBudget: true,
  })
  const parent = agent({
    model: scripted(endless),
    tools: [bounded],
    strategy: { stopCondition: maxTokens(1000) },
  })
  const { state } = await parent.generate('work', AgentState.initial())
  expect(state.step).toBe(1)
  expect(state.subagentTraces[0]?.usage?.totalTokens).toBeLessThanOrEqual(1000)
})

test('a sub-agent that shares a budget which is used up does not begin, and its caller is told why', async () => {
  const inner = scripted(() => says('never'))
  const kid = subagent({
    name: 'wait',
    description: 'Helps.',
    parameters: { type: 'object' },
    agent: agent({ model: inner }),
    prompt: () => 'help',
    sharesBudget: true,
  })
  const parent = agent({
    model: scripted(endless),
    tools: [kid],
    strategy: { stopCondition: maxTokens(100) },
  })
  const { turn, state, stopReason } = await parent.generate('work', AgentState.initial())
  expect(inner.requests.length).toBe(0)
  expect(stopReason).toBe('stop_condition')
  const told = 'The sub-agent "wait" was stopped by a limit (stop_condition) before it had finished. It has given no answer.' // prettier-ignore
  expect(turn.toolExecutions).toMatchObject([{ isError: true, result: told }])
  expect(state.subagentTraces).toMatchObject([{ success: false, error: told }])
})

describe('maxCost and an inference without a price, although others have one', () => {
  const unpriced: ScriptFunction = () => [
    calls('wait'),
    stops('tool_use', { usage: { inputTokens: 60, outputTokens: 40, totalTokens: 100 } }),
  ]
  const limit = { strategy: { stopCondition: maxCost(1) } }
  const unknown = 'maxCost cannot limit this run: its cost is not known.'

  test('of the agent itself fails the run after it', async () => {
    const model = scripted((request, index) => (index === 2 ? unpriced : endless)(request, index))
    const run = agent({ model, tools: [wait], clock, ...limit })
    await expect(run.generate('work', AgentState.initial())).rejects.toThrow(unknown)
    expect(model.requests.length).toBe(3)
  })

  test.each([
    ['when it ends', false, 5],
    ['after its first inference, if it shares the budget', true, 1],
  ])('of a sub-agent fails the run %s', async (_, sharesBudget, inferences) => {
    const inner = scripted((request, index) =>
      index < 4 ? unpriced(request, index) : says('helped'),
    )
    const help = subagent({
      name: 'help',
      description: 'Helps.',
      parameters: { type: 'object' },
      agent: agent({ model: inner, tools: [wait], clock }),
      prompt: () => 'help',
      sharesBudget,
    })
    const caller: ScriptFunction = () => [
      calls('help'),
      stops('tool_use', { usage: { inputTokens: 1, outputTokens: 1, costUsd: 0.001 } }),
    ]
    const model = scripted(caller)
    const run = agent({ model, tools: [help], clock, ...limit })
    await expect(run.generate('work', AgentState.initial())).rejects.toThrow(unknown)
    expect(model.requests.length).toBe(1)
    expect(inner.requests.length).toBe(inferences)
  })

  test('of the caller does not concern a sub-agent whose own limit it is', async () => {
    const priced: ScriptFunction = (_, index) =>
      index < 2 ? endless(_, index) : [says('helped'), stops('end_turn', { usage: { costUsd: 0 } })]
    const help = subagent({
      name: 'wait',
      description: 'Helps.',
      parameters: { type: 'object' },
      agent: agent({ model: scripted(priced), tools: [wait], clock, ...limit }),
      prompt: () => 'help',
    })
    const model = scripted((request, index) =>
      index === 0 ? unpriced(request, index) : says('done'),
    )
    const { turn } = await agent({ model, tools: [help], clock }).generate(
      'go',
      AgentState.initial(),
    )
    expect(turn.toolExecutions).toMatchObject([{ isError: false, result: 'helped' }])
  })
})
