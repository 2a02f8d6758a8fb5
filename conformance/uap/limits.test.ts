import { agent, AgentState, type AgentOptions, type ExecutionStrategy } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import {
  AssistantMessage,
  defer,
  ToolResultMessage,
  UserMessage,
  type Message,
  type Tool,
} from '@skein/ai'
import { calls, says, scripted, type ScriptFunction } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { add } from './support/tools.ts'

const adding = calls('add', { a: 1, b: 1 })
const start = AgentState.initial()
const oneStep = '{"steps":[{"id":"a","description":"A","dependsOn":[]}]}'

/** Every place in which a run goes round with its tools. */
const places: Record<string, [() => ExecutionStrategy, plan: string]> = {
  loop: [loop, ''],
  react: [react, ''],
  'a step of a plan': [plan, oneStep],
  'the direct answer of a plan': [plan, '{"steps":[]}'],
  'a strategy of the application': [custom, ''],
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

describe.each(Object.entries(places))('%s', (name, [strategy, planned]) => {
  const worker = (count: number, options: Partial<AgentOptions> = {}) => {
    const model = scripted(rounds(count, planned))
    return agent({ model, tools: [add], execution: strategy(), ...options })
  }

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
      if (name !== 'a strategy of the application') expect(stopReason).toBe('max_iterations')
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

describe.each(Object.entries(places).slice(0, 4))('%s, resumed', (_, [strategy, planned]) => {
  const waiting = (id: string) => calls('guarded', {}, { id })
  const worker = (limit: number, told: number[]) => {
    const model = scripted(({ structure, tools, messages }) => {
      if (structure) return says(planned)
      if (tools.length === 0) return says('I add.')
      const done = messages.filter(({ type }) => type === 'tool_result').length
      return done < 6 ? [adding, waiting(`c${done}`)] : says('done')
    })
    const toolStrategy = { maxIterations: limit, onMaxIterations: (n: number) => void told.push(n) }
    return agent({ model, tools: [add, guarded], execution: strategy(), toolStrategy })
  }

  test.each([1, 2, 3])(
    'UAP-022 the limit of the tool strategy is for the whole run, however often it waits (%d)',
    async (limit) => {
      const told: number[] = []
      const answering = worker(limit, told)
      let result = await answering.generate('x', start)
      const ran = [result.turn.toolExecutions.length]
      while (result.interrupts) {
        const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(result.state)))
        const [{ id } = { id: '' }] = result.interrupts
        result = await answering.resume(stored, { [id]: { type: 'approve' } })
        ran.push(result.turn.toolExecutions.length)
      }
      // Each round has a call that runs immediately, and one that waits.
      expect([ran.reduce((sum, one) => sum + one), result.stopReason]).toEqual([
        2 * limit,
        'max_iterations',
      ])
      expect([told, result.turn.openCalls.length]).toEqual([[limit], 2])
      expect(result.state.run?.rounds).toBe(limit)
      const next = await answering.generate('y', result.state)
      expect([next.stopReason, next.state.run?.rounds]).toEqual(['interrupted', undefined])
    },
  )
})

test.each([
  ['loop', () => loop({ maxIterations: 2 }), [adding, says('done')], 'max_iterations'],
  [
    'react',
    () => react({ maxSteps: 2 }),
    [says('r'), adding, says('r'), says('done')],
    'max_steps',
  ],
] as const)(
  'UAP-022 UAP-065 UAP-058 a message that comes in during the last step of %s starts no further one',
  async (_, execution, script, reason) => {
    for (const isSteered of [true, false]) {
      const model = scripted([...script])
      const stream = agent({ model, tools: [add], execution: execution() }).stream('x', start)
      for await (const { upp } of stream)
        if (isSteered && upp?.type === 'message_stop' && model.requests.length === script.length)
          stream.steer('One more thing.')
      const { state, stopReason, turn } = await stream.result
      expect([state.step, turn.response.text]).toEqual([2, 'done'])
      expect(stopReason).toBe(isSteered ? reason : 'complete')
    }
  },
)

test('UAP-065 UAP-067 react continues after resume: the waiting call first, then reasons again', async () => {
  const waiting = calls('guarded', {}, { id: 'c' })
  const model = scripted([says('r1'), adding, says('r2'), waiting, says('r3'), adding])
  const inputs: string[] = []
  const worker = agent({
    model,
    tools: [add, guarded],
    execution: react({ maxSteps: 3 }),
    middleware: [{ name: 'look', before: ({ input }) => void inputs.push(input.text) }],
  })
  const first = await worker.generate('x', start)
  const { turn, state, stopReason } = await worker.resume(first.state, approve)
  expect([first.state.step, state.step, stopReason]).toEqual([2, 3, 'max_steps'])
  expect(state.reasoning).toEqual(['r1', 'r2', 'r3'])
  expect(inputs).toEqual(['x', 'x']) // not the prompts of the strategy
  expect(turn.toolExecutions.map(({ result }) => result)).toEqual(['allowed', 2])
  expect(model.requests.map(({ tools }) => tools.length)).toEqual([0, 2, 0, 2, 0, 2])
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

test('UAP-057 a run continues from wherever its state ends', async () => {
  const ask = new UserMessage('x')
  const [a, b] = ['a', 'b'].map((toolCallId) => ({
    toolCallId,
    toolName: 'add',
    arguments: { a: 1, b: 1 },
  }))
  const called = new AssistantMessage('', [a!, b!])
  const resultOf = (...ids: string[]) =>
    new ToolResultMessage(ids.map((toolCallId) => ({ toolCallId, toolName: 'add', result: 9 })))
  const cases: [string, Message[], executed: string[], requests: number][] = [
    ['a question', [ask], [], 1],
    ['calls', [ask, called], ['a', 'b'], 1],
    ['one of two results', [ask, called, resultOf('a')], ['b'], 1],
    ['the other result', [ask, called, resultOf('b')], ['a'], 1],
    ['all results', [ask, called, resultOf('a', 'b')], [], 1],
    ['an answer', [ask, new AssistantMessage('done')], [], 0],
  ]
  for (const [name, messages, executed, requests] of cases)
    for (const form of ['resume', 'resumeStream'] as const) {
      const model = scripted(() => says('done'))
      const worker = agent({ model, tools: [add] })
      const state = start.withMessages(messages)
      const { turn, ...result } =
        form === 'resume' ? await worker.resume(state) : await worker.resumeStream(state).result
      expect([model.requests.length, result.stopReason], name).toEqual([requests, 'complete'])
      expect(turn.toolExecutions.map(({ toolCallId }) => toolCallId)).toEqual(executed)
      expect(turn.response.text).toBe('done')
      const results = result.state.messages.flatMap((one) =>
        one.type === 'tool_result' ? one.results.map(({ toolCallId }) => toolCallId) : [],
      )
      expect(results.sort()).toEqual(messages.includes(called) ? ['a', 'b'] : [])
      expect(result.state.messages.slice(messages.length)).toEqual(turn.messages)
    }
})

test('UAP-068 a run that has its answer is over, also for react', async () => {
  for (const execution of [loop(), react()]) {
    const model = scripted([])
    const worker = agent({ model, tools: [add], execution })
    const state = start.withMessages([new UserMessage('x'), new AssistantMessage('done')])
    const { turn, state: same, stopReason } = await worker.resume(state)
    expect([turn.response.text, stopReason, model.requests.length]).toEqual(['done', 'complete', 0])
    expect([same.messages, same.reasoning]).toEqual([state.messages, []])
  }
})

test('UAP-059 UAP-063 the stop condition sees the state that onStepEnd returned, and so does the next step', async () => {
  const model = scripted([adding, adding, says('done')])
  const seen: unknown[] = []
  const worker = agent({
    model,
    tools: [add],
    strategy: {
      onStepStart: (step, { metadata }) => void seen.push([step, metadata['ended']]),
      onStepEnd: (step, { state }) => state.withMetadata('ended', step),
      stopCondition: ({ metadata }) => metadata['ended'] === 2,
    },
  })
  const { state, stopReason } = await worker.generate('x', start)
  expect([stopReason, state.step, state.metadata]).toEqual(['stop_condition', 2, { ended: 2 }])
  expect(seen).toEqual([
    [1, undefined],
    [2, 1],
  ])
})
