import { agent, AgentState } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { isUserMessage } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { add } from './support/tools.ts'

const adding = calls('add', { a: 1, b: 1 })
const start = AgentState.initial()
const twoSteps = () => scripted([says('I add'), adding, says('I am done'), says('two')])

test('UAP-061 UAP-139 its hooks fire at their phases, with what they are about', async () => {
  const log: unknown[] = []
  await agent({
    model: twoSteps(),
    tools: [add],
    execution: react(),
    strategy: {
      onStepStart: (step) => void log.push(['start', step]),
      onReason: (step, text) => void log.push(['reason', step, text]),
      onAct: (step, actions) => void log.push(['act', step, actions.map((call) => call.toolName)]),
      onObserve: (step, seen) => void log.push(['observe', step, seen.map(({ result }) => result)]),
      onStepEnd: (step) => void log.push(['end', step]),
    },
  }).generate('x', start)
  expect(log).toEqual([
    ['start', 1],
    ['reason', 1, 'I add'],
    ['act', 1, ['add']],
    ['observe', 1, [2]],
    ['end', 1],
    ['start', 2],
    ['reason', 2, 'I am done'],
    ['end', 2],
  ])
})

test('UAP-062 what it reasoned is in the state, one entry per step', async () => {
  const worker = agent({ model: twoSteps(), tools: [add], execution: react() })
  const { state } = await worker.generate('x', start.withReasoning('before'))
  expect(state.reasoning).toEqual(['before', 'I add', 'I am done'])
})

test('UAP-063 the stop condition is asked after every step, also an async one', async () => {
  const asked: number[] = []
  await agent({
    model: twoSteps(),
    tools: [add],
    execution: react(),
    strategy: {
      stopCondition: async ({ step }) => {
        await Promise.resolve()
        asked.push(step)
        return false
      },
    },
  }).generate('x', start)
  expect(asked).toEqual([1, 2])
})

const endless = () => scripted((_, index) => (index % 2 === 0 ? says('again') : adding))

test('UAP-065 maxSteps bounds its cycles', async () => {
  const model = endless()
  const worker = agent({ model, tools: [add], execution: react({ maxSteps: 2 }) })
  const { state, stopReason } = await worker.generate('x', start)
  expect([state.step, stopReason, model.requests.length]).toEqual([2, 'max_steps', 4])
})

test('UAP-065 UAP-068 a run that ends by itself in its last step is complete', async () => {
  const worker = agent({ model: twoSteps(), tools: [add], execution: react({ maxSteps: 2 }) })
  const { state, stopReason } = await worker.generate('x', start)
  expect([state.step, stopReason]).toEqual([2, 'complete'])
  const model = endless()
  const again = await agent({ model, tools: [add], execution: react({ maxSteps: 2 }) }).generate(
    'y',
    state,
  )
  expect([again.state.step, again.stopReason, model.requests.length]).toEqual([2, 'max_steps', 4])
})

test('UAP-065 a limit is a whole number from 1', () => {
  for (const maxSteps of [0, -1, 1.5, Number.NaN])
    expect(() => react({ maxSteps }), String(maxSteps)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
})

test('UAP-066 a reasoning prompt of one’s own is sent instead', async () => {
  const model = twoSteps()
  const execution = react({ reasoningPrompt: 'Ponder.' })
  await agent({ model, tools: [add], execution }).generate('x', start)
  expect(model.requests[0]!.messages.at(-1)!.text).toBe('Ponder.')
  const plain = twoSteps()
  await agent({ model: plain, tools: [add], execution: react() }).generate('x', start)
  expect(plain.requests[0]!.messages.at(-1)!.text).toBe('Think about what to do next.')
})

test('UAP-067 UAP-069 each step asks twice: to reason, without tools and structure, then to act', async () => {
  const model = scripted([says('I add'), adding, says('I am done'), says('{"n":2}')])
  const structure = { type: 'object' }
  const worker = agent({ model, tools: [add], execution: react(), structure })
  const { turn } = await worker.generate('x', start)
  expect(model.requests.map(({ tools }) => tools.length)).toEqual([0, 1, 0, 1])
  expect(model.requests.map((request) => request.structure !== undefined)).toEqual([
    false,
    true,
    false,
    true,
  ])
  expect(turn.data).toEqual({ n: 2 })
})

test('UAP-069 a call that the model makes while it reasons is not run, and the history stays whole', async () => {
  const model = scripted([[says('hm'), adding], says('done')])
  const worker = agent({ model, tools: [add], execution: react() })
  const { turn, state } = await worker.generate('x', start)
  expect(turn.toolExecutions).toEqual([])
  expect(turn.openCalls).toEqual([])
  expect(state.messages[3]).toMatchObject({
    results: [
      {
        toolCallId: 'call_1',
        toolName: 'add',
        result: 'No tool runs while you reason.',
        isError: true,
      },
    ],
  })
  expect(state.messages.map(({ type }) => type)).toEqual([
    'user',
    'user',
    'assistant',
    'tool_result',
    'user',
    'assistant',
  ])
})

test('UAP-068 it ends without calls, on its condition, or at its limit', async () => {
  const run = async (options: Parameters<typeof react>[0], stop?: number) => {
    const model = stop === 0 ? twoSteps() : endless()
    const { state, stopReason } = await agent({
      model,
      tools: [add],
      execution: react(options),
      ...(stop && { strategy: { stopCondition: ({ step }) => step === stop } }),
    }).generate('x', start)
    return [state.step, stopReason]
  }
  expect(await run({}, 0)).toEqual([2, 'complete'])
  expect(await run({}, 3)).toEqual([3, 'stop_condition'])
  expect(await run({ maxSteps: 4 })).toEqual([4, 'max_steps'])
})

test('UAP-070 the next reasoning sees what the tools said; prompts are marked as the strategy’s own', async () => {
  const model = twoSteps()
  const { state } = await agent({ model, tools: [add], execution: react() }).generate('x', start)
  const second = model.requests[2]!.messages
  expect(second.find(({ type }) => type === 'tool_result')).toMatchObject({
    results: [{ result: 2 }],
  })
  const prompts = state.messages.filter(isUserMessage).map(({ metadata }) => metadata?.['uap'])
  expect(prompts).toEqual([
    undefined,
    { synthetic: true, phase: 'reason', step: 1 },
    { synthetic: true, phase: 'act', step: 1 },
    { synthetic: true, phase: 'reason', step: 2 },
    { synthetic: true, phase: 'act', step: 2 },
  ])
})
