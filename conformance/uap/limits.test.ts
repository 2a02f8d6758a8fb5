import { agent, AgentState, type AgentOptions, type ExecutionStrategy } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { defer, type Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptFunction } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { add } from './support/tools.ts'

const adding = calls('add', { a: 1, b: 1 })
const start = AgentState.initial()
const oneStep = '{"steps":[{"id":"a","description":"A","dependsOn":[]}]}'

/** Every place in which a run goes round with its tools. */
const places: Record<string, [ExecutionStrategy, plan: string]> = {
  loop: [loop(), ''],
  react: [react(), ''],
  'a step of a plan': [plan(), oneStep],
  'the direct answer of a plan': [plan(), '{"steps":[]}'],
  'a strategy of the application': [custom(), ''],
}

/** Plans, reasons where no tools are offered, and calls a tool until it has so many results. */
function rounds(count: number, planned: string): ScriptFunction {
  return ({ structure, tools, messages }) => {
    if (structure) return says(planned)
    if (tools.length === 0) return says('I add.')
    const done = messages.filter(({ type }) => type === 'tool_result').length
    return done < count ? adding : says('done')
  }
}

describe.each(Object.entries(places))('%s', (_name, [execution, planned]) => {
  const worker = (count: number, options: Partial<AgentOptions> = {}) =>
    agent({ model: scripted(rounds(count, planned)), tools: [add], execution, ...options })

  test('UAP-017 UAP-019 UAP-064 has no limit of its own', async () => {
    for (const toolStrategy of [undefined, { onToolCall: () => {} }]) {
      const { turn } = await worker(130, { toolStrategy }).generate('x', start)
      expect([turn.toolExecutions.length, turn.response.text]).toEqual([130, 'done'])
    }
  })

  test.each([1, 2])(
    'UAP-022 UAP-002 ends at the limit of the tool strategy (%d)',
    async (limit) => {
      const told: number[] = []
      const onMaxIterations = (done: number) => void told.push(done)
      const toolStrategy = { maxIterations: limit, onMaxIterations }
      const { turn, state, stopReason } = await worker(9, { toolStrategy }).generate('x', start)
      expect(turn.toolExecutions).toHaveLength(limit)
      expect(turn.openCalls).toHaveLength(1)
      expect(state.messages.at(-1)).toBe(turn.response)
      expect(told).toEqual([limit])
      if (execution.name !== 'custom') expect(stopReason).toBe('max_iterations')
    },
  )
})

/** A tool whose calls wait for an approval. */
const guarded: Tool = {
  ...add,
  name: 'guarded',
  approval: () => defer({ kind: 'approval', request: {} }),
  run: () => 'allowed',
}
const approve = { c: { type: 'approve' } } as const

test('UAP-022 UAP-058 a resumed run counts its rounds and steps from the start', async () => {
  const cases: [Partial<AgentOptions>, stopReason: string, executed: number, open: number][] = [
    [{ toolStrategy: { maxIterations: 1 } }, 'max_iterations', 1, 1],
    [{ execution: loop({ maxIterations: 1 }) }, 'max_iterations', 1, 0],
    [{ execution: loop({ maxIterations: 2 }) }, 'max_iterations', 2, 0],
    [{ strategy: { stopCondition: (_, { steps }) => steps >= 2 } }, 'stop_condition', 2, 0],
  ]
  for (const [options, reason, executed, open] of cases) {
    const model = scripted([calls('guarded', {}, { id: 'c' }), adding, adding, says('done')])
    const worker = agent({ model, tools: [add, guarded], ...options })
    const first = await worker.generate('x', start)
    expect([first.stopReason, first.turn.toolExecutions]).toEqual(['interrupted', []])
    const { turn, state, stopReason } = await worker.resume(first.state, approve)
    expect([stopReason, turn.toolExecutions.length, turn.openCalls.length]).toEqual([
      reason,
      executed,
      open,
    ])
    expect(turn.messages).toEqual(state.messages.slice(2))
    expect(state.suspension).toBeUndefined()
  }
})

test('UAP-065 UAP-067 react goes on after resume: the waiting call first, then reasons again', async () => {
  const model = scripted([says('r1'), calls('guarded', {}, { id: 'c' }), says('r2'), adding])
  const worker = agent({ model, tools: [add, guarded], execution: react({ maxSteps: 2 }) })
  const first = await worker.generate('x', start)
  const { turn, state, stopReason } = await worker.resume(first.state, approve)
  expect([first.state.step, state.step, stopReason]).toEqual([1, 2, 'max_steps'])
  expect(state.reasoning).toEqual(['r1', 'r2'])
  expect(turn.toolExecutions.map(({ result }) => result)).toEqual(['allowed', 2])
  expect(model.requests.map(({ tools }) => tools.length)).toEqual([0, 2, 0, 2])
})

test('UAP-062 UAP-066 UAP-067 every cycle has both prompts, and its reasoning as it was said', async () => {
  const thoughts = ['', ' same ', ' same ', 'end']
  const answers = [adding, adding, adding, says('done')]
  const script = thoughts.flatMap((text, index) => [says(text), answers[index]!])
  const model = scripted(script)
  const told: string[] = []
  const execution = react({ reasoningPrompt: 'Ponder.' })
  const strategy = { onReason: (_: number, text: string) => void told.push(text) }
  const stream = agent({ model, tools: [add], execution, strategy }).stream('x', start)
  const shown: string[] = []
  for await (const { uap } of stream) if (uap?.type === 'reasoning') shown.push(uap.data.reasoning)
  const { state } = await stream.result
  expect([state.reasoning, told, shown]).toEqual([thoughts, thoughts, thoughts])
  expect(model.requests.map(({ messages }) => messages.at(-1)!.text)).toEqual(
    thoughts.flatMap(() => ['Ponder.', 'Based on your reasoning, take action.']),
  )
})

test('UAP-069 tools that a hook chooses are offered and run when acting, never when reasoning', async () => {
  const ran: string[] = []
  const extra: Tool = { ...add, name: 'extra', run: () => void ran.push('extra') }
  const model = scripted([calls('extra'), calls('extra'), says('r2'), says('done')])
  const worker = agent({
    model,
    tools: [add],
    execution: react(),
    strategy: { onInference: () => ({ tools: [extra] }) },
  })
  const { turn } = await worker.generate('x', start)
  expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
    [],
    ['extra'],
    [],
    ['extra'],
  ])
  expect([ran, turn.toolExecutions.length]).toEqual([['extra'], 1])
})
