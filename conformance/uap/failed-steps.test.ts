/** What a failed inference of a plan cost and said: in the turn, in the account and in the history, once. */
import { agent, AgentState, subagent, type AgentOptions } from '@skein/agents'
import { plan, type PlanOptions } from '@skein/agents/execution'
import type { Message, Turn, UPPError } from '@skein/ai'
import { calls, cuts, fails, says, scripted, stops, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const structure = { type: 'object', properties: { ok: { type: 'boolean' } } }
const ends = stops('end_turn', { usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7 } })
const planned = [says('{"steps":[{"id":"a","description":"A","dependsOn":[]}]}'), ends]
const wrong = [says('not JSON'), ends]
const right = [says('{"ok":true}'), ends]

interface Given {
  readonly script: readonly ScriptStep[]
  readonly plan?: PlanOptions
  readonly options?: Partial<AgentOptions>
}

/** Runs a plan; returns its result and what a stop condition saw after each step. */
async function run(given: Given, streaming: boolean) {
  const totals: number[] = []
  const worker = agent({
    model: scripted(given.script),
    tools: [add],
    structure,
    execution: plan(given.plan),
    strategy: { stopCondition: (_, { usage }) => totals.push(usage.totalTokens) < 0 },
    ...given.options,
  })
  const result = streaming ? worker.stream('x', start).result : worker.generate('x', start)
  return { ...(await result), totals }
}

/** The error of a plan that fails. */
async function failure(given: Given, streaming: boolean): Promise<UPPError & { turn: Turn }> {
  return run(given, streaming).then(
    () => expect.fail('The run did not fail.'),
    (error: UPPError & { turn: Turn }) => error,
  )
}

const texts = (messages: readonly Message[]) =>
  messages.filter(({ type }) => type !== 'user').map(({ text }) => text)
const sum = ({ cycles, usage, usageByCycle }: Turn) => [
  cycles,
  usage.totalTokens,
  usageByCycle.map(({ totalTokens }) => totalTokens),
]

describe.each([false, true])('streaming: %s', (streaming) => {
  test('UAP-050 UAP-049 UAP-076 a step that fails after its answer counts, and its answer stays', async () => {
    const { turn, state, stopReason, totals } = await run(
      { script: [planned, wrong, planned, right] },
      streaming,
    )
    const plans = (planned[0] as { text: string }).text
    expect(stopReason).toBe('complete')
    expect(sum(turn)).toEqual([4, 28, [7, 7, 7, 7]])
    expect(texts(turn.messages)).toEqual([plans, 'not JSON', plans, '{"ok":true}'])
    expect(state.messages).toEqual(turn.messages)
    expect(state.run).toMatchObject({ usage: { totalTokens: 28 }, steps: 4 })
    expect(totals).toEqual([7, 14, 21, 28])
    expect(turn.data).toEqual({ ok: true })
  })

  test.each<[string, Given, cycles: number]>([
    ['no new plan is allowed', { script: [planned, wrong], plan: { allowReplan: false } }, 2],
    ['no new plan is left', { script: [planned, wrong], plan: { maxReplans: 0 } }, 2],
    ['planning again fails', { script: [planned, wrong, fails('down')] }, 2],
    ['planning again gives no plan', { script: [planned, wrong, wrong, wrong] }, 4],
  ])(
    'UAP-050 UAP-076 if %s, the turn of the error has each answer once',
    async (_, given, cycles) => {
      const { turn, code } = await failure(given, streaming)
      expect(code).toBe('INVALID_RESPONSE')
      expect(sum(turn)).toEqual([cycles, cycles * 7, Array(cycles).fill(7)])
      expect(texts(turn.messages).slice(1)).toEqual(Array(cycles - 1).fill('not JSON'))
    },
  )

  test('UAP-050 UAP-068 a stop condition that counts tokens sees those of the failed step', async () => {
    const { turn, state, stopReason } = await run(
      {
        script: [planned, wrong],
        options: { strategy: { stopCondition: (_, { usage }) => usage.totalTokens >= 14 } },
      },
      streaming,
    )
    expect(stopReason).toBe('stop_condition')
    expect(sum(turn)).toEqual([2, 14, [7, 7]])
    expect(turn.response.text).toBe('not JSON')
    expect(state.messages).toEqual(turn.messages)
  })

  test('UAP-050 a step that fails without an answer adds none', async () => {
    const { turn, state } = await run(
      { script: [planned, fails('down'), planned, right] },
      streaming,
    )
    expect(sum(turn)).toEqual([3, 21, [7, 7, 7]])
    expect(texts(turn.messages)).toHaveLength(3)
    expect(state.messages).toEqual(turn.messages)
  })
})

test('UAP-050 UAP-049 what had arrived of a step that was cut off stays, and its calls are closed', async () => {
  const half = [says('Half'), calls('add', { a: 1, b: 1 }, { id: 'c' }), cuts()]
  const { turn, state } = await run({ script: [planned, half, planned, right] }, true)
  expect(texts(turn.messages).slice(1, 3)).toEqual(['Half', 'The answer was not complete.'])
  expect(turn.messages.find(({ type }) => type === 'tool_result')).toMatchObject({
    results: [
      { toolCallId: 'c', toolName: 'add', result: 'The answer was not complete.', isError: true },
    ],
  })
  expect(turn.toolExecutions).toEqual([])
  expect(turn.openCalls).toEqual([])
  expect(state.messages).toEqual(turn.messages)
})

test('UAP-050 what had arrived of a new plan that was cut off is in the turn of the error', async () => {
  const script = [planned, wrong, [says('{"steps":['), fails('down')]]
  const { turn, message } = await failure({ script }, true)
  expect(message).toContain('Planning again failed too: down')
  expect(texts(turn.messages).slice(1)).toEqual(['not JSON', '{"steps":['])
})

test('UAP-076 UAP-022 a caller’s budget that is used up while planning again ends the sub-agent as a limit does', async () => {
  const planner = agent({
    model: scripted([planned, wrong, wrong]),
    structure,
    execution: plan(),
  })
  const child = subagent({
    name: 'child',
    description: 'd',
    parameters: { type: 'object' },
    agent: planner,
    prompt: () => 'go',
    sharesBudget: true,
  })
  const { turn, stopReason } = await agent({
    model: scripted([[calls('child'), ends]]),
    tools: [child],
    strategy: { stopCondition: (_, { usage }) => usage.totalTokens >= 28 },
  }).generate('x', start)
  expect(stopReason).toBe('stop_condition')
  expect(turn.toolExecutions).toMatchObject([
    { toolName: 'child', result: expect.stringContaining('stopped by a limit (stop_condition)') },
  ])
})
