import { agent, AgentState, subagent, type AgentStrategy, type GenerateResult } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { UserMessage } from '@skein/ai'
import { calls, fails, says, scripted, stops } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { add, nextTick, probeLog } from './support/tools.ts'

const start = AgentState.initial()
const adding = calls('add', { a: 1, b: 1 })
const rounds = (count: number) => [...Array.from({ length: count }, () => adding), says('done')]

test('UAP-137 a stop condition is a boolean or a promise of one, and knows what was spent', async () => {
  const spent: number[] = []
  const run = (stopCondition: AgentStrategy['stopCondition']) =>
    agent({
      model: scripted(rounds(5)),
      tools: [add],
      strategy: { stopCondition: stopCondition! },
    }).generate('x', start)
  expect((await run(({ step }) => step === 2)).state.step).toBe(2)
  expect((await run(async ({ step }) => Promise.resolve(step === 3))).state.step).toBe(3)
  const limited = await run((_, { usage, turn, steps }) => {
    spent.push(usage.totalTokens)
    expect(turn.cycles).toBe(steps)
    expect(turn.usage).toEqual(usage)
    return usage.totalTokens > 20
  })
  expect(limited.stopReason).toBe('stop_condition')
  expect(limited.turn.usage.totalTokens).toBe(spent.at(-1))
  expect(limited.turn.response.hasToolCalls).toBe(true)
})

test('UAP-137 it is not asked inside a sub-agent', async () => {
  const asked: number[] = []
  const child = agent({ model: scripted(rounds(3)), tools: [add] })
  const tool = subagent({
    name: 'child',
    description: 'd',
    parameters: { type: 'object' },
    agent: child,
    prompt: () => 'go',
  })
  await agent({
    model: scripted([calls('child'), says('ok')]),
    tools: [tool],
    strategy: { stopCondition: ({ step }) => void asked.push(step) as never },
  }).generate('x', start)
  expect(asked).toEqual([1, 2])
})

describe.each([
  { name: 'loop', execution: loop(), script: [adding, says('ok')], steps: 2 },
  {
    name: 'react',
    execution: react(),
    script: [says('t'), adding, says('t'), says('ok')],
    steps: 2,
  },
  {
    name: 'plan',
    execution: plan(),
    script: [says('{"steps":[{"id":"a","description":"A","dependsOn":[]}]}'), adding, says('ok')],
    steps: 2,
  },
])('$name', ({ execution, script, steps }) => {
  test('UAP-138 UAP-139 hooks come once per step, with what belongs to that step', async () => {
    const starts: [number, number][] = []
    const ends: [number, number, number][] = []
    const acts: unknown[] = []
    await agent({
      model: scripted(script),
      tools: [add],
      execution,
      strategy: {
        onStepStart: (step, state) => void starts.push([step, state.step]),
        onStepEnd: (step, { turn, state }) =>
          void ends.push([step, state.step, turn.toolExecutions.length]),
        onAct: (step, actions) => void acts.push(['act', step, actions.map((c) => c.arguments)]),
        onObserve: (step, seen) =>
          void acts.push(['observe', step, seen.map((e) => [e.toolName, e.result, e.isError])]),
      },
    }).generate('x', start)
    expect(starts).toEqual(Array.from({ length: steps }, (_, i) => [i + 1, i + 1]))
    expect(ends.map(([step, at]) => [step, at])).toEqual(starts)
    expect(ends.reduce((sum, [, , count]) => sum + count, 0)).toBe(1)
    expect(acts).toEqual([
      ['act', expect.any(Number), [{ a: 1, b: 1 }]],
      ['observe', expect.any(Number), [['add', 2, false]]],
    ])
  })

  test('UAP-140 onComplete comes once, with the very result', async () => {
    const seen: GenerateResult[] = []
    const worker = agent({
      model: scripted(script),
      tools: [add],
      execution,
      strategy: { onComplete: (r) => void seen.push(r) },
    })
    const result = await worker.generate('x', start)
    expect(seen).toHaveLength(1)
    expect(seen[0]).toBe(result)
  })

  test('UAP-141 onError sees the failure and the last state, and may recover', async () => {
    for (const mode of ['generate', 'stream'] as const) {
      const seen: [string, number][] = []
      let ended = 0
      const broken = [...script.slice(0, -1), fails('broken'), fails('broken')]
      const make = (strategy: AgentStrategy) => {
        const worker = agent({ model: scripted(broken), tools: [add], execution, strategy })
        return mode === 'generate' ? worker.generate('x', start) : worker.stream('x', start).result
      }
      await expect(
        make({
          onStepEnd: (step) => void (ended = step),
          onError: (error, state) => void seen.push([error.message, state.step]),
        }),
      ).rejects.toThrow('broken')
      expect(seen).toHaveLength(1)
      expect(seen[0]![0]).toContain('broken')
      expect(seen[0]![1]).toBe(ended)
      expect(ended).toBeGreaterThan(start.step)
      const recovery = { turn: {} as GenerateResult['turn'], state: start }
      const completed: unknown[] = []
      const result = await make({
        onError: () => recovery,
        onComplete: (r) => void completed.push(r),
      })
      expect(result).toBe(recovery)
      expect(completed).toEqual([recovery])
    }
  })
})

test('UAP-142 the tool strategy is notified while tools run, the agent’s hooks at the step’s edges', async () => {
  const log: string[] = []
  const { probe } = probeLog()
  const look = (name: string) =>
    probe(name, { run: async () => (await nextTick(), void log.push(`${name} ran`)) })
  await agent({
    model: scripted([[calls('a'), calls('b')], says('ok')]),
    tools: [look('a'), look('b')],
    strategy: { onAct: () => void log.push('act'), onObserve: () => void log.push('observe') },
    toolStrategy: {
      onToolCall: (tool) => void log.push(`call ${tool.name}`),
      onAfterCall: (tool) => void log.push(`after ${tool.name}`),
    },
  }).generate('x', start)
  expect(log).toEqual(
    ['act', 'call a', 'call b', 'a ran', 'after a', 'b ran', 'after b', 'observe'].sort(
      (x, y) => log.indexOf(x) - log.indexOf(y),
    ),
  )
  expect(log[0]).toBe('act')
  expect(log.at(-1)).toBe('observe')
  expect(log.indexOf('call b')).toBeLessThan(log.indexOf('a ran'))
})

test('UAP-143 a call that onBeforeCall refuses does not run, and the model learns it', async () => {
  const { probe, log } = probeLog()
  const model = scripted([calls('look'), says('ok')])
  const { turn } = await agent({
    model,
    tools: [probe('look')],
    toolStrategy: { onBeforeCall: () => false },
  }).generate('x', start)
  expect(log).toEqual([])
  expect(turn.toolExecutions).toMatchObject([{ isError: true }])
  expect(model.requests[1]!.messages.at(-1)).toMatchObject({ results: [{ isError: true }] })
})

test('UAP-144 onMaxIterations may fail the run instead of ending it', async () => {
  const run = agent({
    model: scripted(() => adding),
    tools: [add],
    toolStrategy: {
      maxIterations: 1,
      onMaxIterations: (count) => {
        throw new Error(`enough after ${count}`)
      },
    },
  }).generate('x', start)
  await expect(run).rejects.toThrow('enough after 1')
})

test.each([
  { name: 'loop', execution: loop(), before: 0, perRound: 1 },
  { name: 'react', execution: react(), before: 0, perRound: 2 },
  { name: 'plan', execution: plan(), before: 1, perRound: 1 },
])(
  'UAP-144 $name: onMaxIterations learns once how many rounds ran, and the next calls stay open',
  async ({ execution, before, perRound }) => {
    for (const limit of [0, 1, 3]) {
      const told: number[] = []
      const model = scripted(({ structure, tools }) => {
        if (structure) return says('{"steps":[{"id":"a","description":"A","dependsOn":[]}]}')
        return tools.length === 0 ? says('think') : adding
      })
      const { turn, state, stopReason } = await agent({
        model,
        tools: [add],
        execution,
        toolStrategy: { maxIterations: limit, onMaxIterations: (count) => void told.push(count) },
      }).generate('x', start)
      expect(told).toEqual(limit === 0 ? [] : [limit])
      expect(stopReason).toBe('max_iterations')
      expect(turn.toolExecutions).toHaveLength(limit)
      expect(turn.openCalls).toHaveLength(1)
      expect(state.messages.at(-1)?.type).toBe('assistant')
      expect(model.requests).toHaveLength(before + (limit + 1) * perRound)
      if (before > 0) expect(state.plan).toMatchObject([{ id: 'a', status: 'in_progress' }])
    }
  },
)

test('UAP-138 the turn of a step has what belongs to that step alone, and the run has the sum', async () => {
  const usage = (tokens: number) =>
    stops('end_turn', { usage: { inputTokens: tokens, outputTokens: 1, totalTokens: tokens + 1 } })
  const turns: GenerateResult['turn'][] = []
  const { turn } = await agent({
    model: scripted([
      [adding, usage(10)],
      [adding, adding, usage(20)],
      [says('done'), usage(30)],
    ]),
    tools: [add],
    strategy: { onStepEnd: (_, result) => void turns.push(result.turn) },
  }).generate('x', start)
  expect(turns.map(({ usage: { inputTokens } }) => inputTokens)).toEqual([10, 20, 30])
  expect(turns.map(({ usageByCycle, cycles }) => [usageByCycle.length, cycles])).toEqual([
    [1, 1],
    [1, 1],
    [1, 1],
  ])
  expect(turns.map(({ toolExecutions }) => toolExecutions.length)).toEqual([1, 2, 0])
  // The input was given before the first step began.
  expect(turns.map(({ messages }) => messages.map(({ type }) => type).join())).toEqual([
    'assistant,tool_result',
    'assistant,tool_result',
    'assistant',
  ])
  expect(turn.usage).toMatchObject({ inputTokens: 60, outputTokens: 3, totalTokens: 63 })
  expect([turn.cycles, turn.toolExecutions.length, turn.messages.length]).toEqual([3, 3, 6])
})

test('a state that onStepEnd returns is the one to continue with', async () => {
  const model = scripted(rounds(2))
  const { state } = await agent({
    model,
    tools: [add],
    strategy: {
      onStepEnd: (step, result) =>
        step === 1
          ? result.state
              .withMetadata('seen', true)
              .withContext([new UserMessage('short'), ...result.state.messages.slice(1)])
          : undefined,
    },
  }).generate('long', start)
  expect(state.metadata).toEqual({ seen: true })
  expect(model.requests[1]!.messages[0]!.text).toBe('short')
})

test('a hook that throws fails the run and names itself, in every place', async () => {
  const names = [
    'stopCondition',
    'onStepStart',
    'onAct',
    'onObserve',
    'onStepEnd',
    'onComplete',
  ] as const
  for (const name of names) {
    const strategy = { [name]: () => Promise.reject(new Error('mine')) } as AgentStrategy
    const error = await agent({ model: scripted(rounds(1)), tools: [add], strategy })
      .generate('x', start)
      .catch((e: unknown) => e)
    expect(error, name).toMatchObject({
      name: 'UPPError',
      message: `${name} of the agent's strategy failed: mine`,
    })
  }
})

test('UAP-152 a hook that never ends does not keep an abort waiting', async () => {
  const names = ['onStepStart', 'onInference', 'onAct', 'onObserve', 'onStepEnd', 'stopCondition'] as const // prettier-ignore
  for (const name of names) {
    const controller = new AbortController()
    const strategy = {
      [name]: () => {
        setTimeout(() => controller.abort(), 0)
        return new Promise(() => {})
      },
    } as AgentStrategy
    const { signal } = controller
    const run = agent({ model: scripted(rounds(1)), tools: [add], strategy }).generate('x', start, { signal }) // prettier-ignore
    await expect(run, name).rejects.toMatchObject({ code: 'CANCELLED' })
  }
})

test('a failed run tells what it had produced', async () => {
  const run = agent({
    model: scripted([adding, [says('half an ans'), fails('cut')]]),
    tools: [add],
  })
  const error = (await run.stream('x', start).result.catch((e: unknown) => e)) as {
    turn: GenerateResult['turn']
  }
  expect(error.turn.messages.map(({ type }) => type)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'assistant',
  ])
  expect(error.turn.toolExecutions).toHaveLength(1)
  expect(error.turn.response.text).toBe('half an ans')
  expect(error.turn.usage.totalTokens).toBeGreaterThan(0)
})
