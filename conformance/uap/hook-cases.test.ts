/** Hooks of the agent and of its tools in the less common cases: waiting calls, limits, resumed and failed runs. */
import {
  agent,
  AgentState,
  type AgentOptions,
  type AgentStrategy,
  type GenerateResult,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { recordEvents } from '@skein/agents/testing'
import { defer, type Tool, type ToolCall, type ToolUseStrategy } from '@skein/ai'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

const start = AgentState.initial()
const parameters = { type: 'object' }
const get: Tool = { name: 'get', description: 'd', parameters, run: () => 'got' }
const ask: Tool = {
  name: 'ask',
  description: 'd',
  parameters,
  run: () => 'asked',
  approval: () => defer({ kind: 'approval', request: null }),
}
const both = [calls('get', {}, { id: 'g' }), calls('ask', {}, { id: 'a' })]

const strategies = { loop, react, plan }

/** Plans one step, thinks where no tools are offered, and otherwise follows the script. */
function script(moves: readonly unknown[]) {
  let next = 0
  return scripted(({ structure, tools }) => {
    if (structure) return says('{"steps":[{"id":"a","description":"A","dependsOn":[]}]}')
    if (tools.length === 0) return says('thinking')
    return (moves[next++] ?? says('done')) as ReturnType<typeof says>
  })
}

describe.each(Object.entries(strategies))('%s', (_, execution) => {
  const make = (moves: readonly unknown[], more: Partial<AgentOptions> = {}) =>
    agent({ model: script(moves), tools: [get, ask], execution: execution(), ...more })

  test('UAP-139 UAP-148 what a step with a waiting call has observed is reported once, immediately', async () => {
    const log: unknown[] = []
    const ids = (list: readonly { readonly toolCallId: string }[]) =>
      list.map(({ toolCallId }) => toolCallId)
    const strategy: AgentStrategy = {
      onAct: (_step, actions) => void log.push(['act', ...ids(actions)]),
      onObserve: (_step, observations) => void log.push(['observe', ...ids(observations)]),
    }
    const worker = make([both], { strategy })
    const told = async (stream: Parameters<typeof recordEvents>[0]) => {
      const { events, types, result } = await recordEvents(stream)
      const steps = types.filter((type) => type === 'step_start' || type === 'step_end')
      expect(steps.every((type, at) => type === (at % 2 ? 'step_end' : 'step_start'))).toBe(true)
      expect([types.at(-1), steps.length % 2]).toEqual(['step_end', 0])
      const seen = events.flatMap(({ uap }) => {
        if (uap?.type === 'action') return [['act', ...ids(uap.data.toolCalls)]]
        return uap?.type === 'observation' ? [['observe', ...ids(uap.data.observations)]] : []
      })
      expect(log.splice(0)).toEqual(seen)
      return { seen, result: result! }
    }
    const first = await told(worker.stream('x', start))
    expect(first.seen).toEqual([
      ['act', 'g', 'a'],
      ['observe', 'g'],
    ])
    const second = await told(worker.resumeStream(first.result.state, { a: { type: 'approve' } }))
    expect(second.seen.at(-1)).toEqual(['observe', 'a'])
    expect(second.seen).toHaveLength(2)
    expect(ids(second.result.turn.toolExecutions)).toEqual(['a'])
  })

  test('UAP-144 UAP-140 a limit of one round ends the run after it, told once with the number of rounds', async () => {
    const log: unknown[] = []
    const toolStrategy: ToolUseStrategy = {
      maxIterations: 1,
      onMaxIterations: (rounds) => void log.push(rounds),
    }
    const strategy: AgentStrategy = { onComplete: (result) => void log.push(result) }
    const round = calls('get')
    const worker = make([round, round, round], { toolStrategy, strategy })
    const result = await worker.generate('x', start)
    expect(result.stopReason).toBe('max_iterations')
    expect(result.turn.toolExecutions).toHaveLength(1)
    expect(log).toEqual([1, result])
    expect(log[1]).toBe(result)
  })

  test('UAP-137 a stop condition is asked after each step with the state of that step, as onStepEnd left it', async () => {
    for (const streaming of [false, true]) {
      const seen: unknown[] = []
      const strategy: AgentStrategy = {
        onStepEnd: (step, { state }) => state.withMetadata('step', step),
        stopCondition: (state) => {
          seen.push([state.step, state.metadata['step']])
          return false
        },
      }
      const worker = make([calls('get')], { strategy })
      const { state } = await (streaming
        ? worker.stream('x', start).result
        : worker.generate('x', start))
      const steps = Array.from({ length: state.step }, (_unused, index) => [index + 1, index + 1])
      expect(seen).toEqual(steps)
      expect(state.metadata['step']).toBe(state.step)
    }
  })

  test('UAP-137 it ends a resumed run too, and one whose first answer has no calls', async () => {
    const strategy: AgentStrategy = { stopCondition: () => true }
    const waiting = await make([both]).generate('x', start)
    expect(waiting.stopReason).toBe('interrupted')
    const rest = make([calls('get')], { strategy })
    const resumed = await rest.resume(waiting.state, { a: { type: 'approve' } })
    expect([resumed.stopReason, resumed.state.step]).toEqual(['stop_condition', waiting.state.step])
    const answered = await make([], { strategy }).generate('x', start)
    expect([answered.stopReason, answered.state.step]).toEqual(['stop_condition', 1])
  })
})

test('UAP-139 UAP-148 reasoning is reported and kept although it is empty', async () => {
  const reasons: unknown[] = []
  const worker = agent({
    model: scripted(() => says('')),
    execution: react(),
    strategy: { onReason: (...given) => void reasons.push(given) },
  })
  const { events, result } = await recordEvents(worker.stream('x', start))
  const told = events.flatMap(({ uap }) => (uap?.type === 'reasoning' ? [uap.data] : []))
  expect(reasons).toEqual([[1, '']])
  expect(told).toEqual([{ reasoning: '' }])
  expect(result?.state.reasoning).toEqual([''])
})

describe('a failed run', () => {
  const failing = (strategy: AgentStrategy) =>
    agent({ model: scripted([calls('get'), fails('boom')]), tools: [get], strategy })
  const entries: [string, (strategy: AgentStrategy) => Promise<GenerateResult>][] = [
    ['generate', (strategy) => failing(strategy).generate('x', start)],
    ['stream', (strategy) => failing(strategy).stream('x', start).result],
  ]

  test.each(entries)('UAP-141 %s: onError gets the state after the last step', async (_, enter) => {
    const seen: AgentState[] = []
    const strategy: AgentStrategy = { onError: (_error, state) => void seen.push(state) }
    await expect(enter(strategy)).rejects.toThrow('boom')
    expect(seen.map(({ step, messages }) => [step, messages.map(({ type }) => type)])).toEqual([
      [1, ['user', 'assistant', 'tool_result']],
    ])
  })

  test.each(entries)(
    'UAP-141 %s: an error of onError is the error of the run',
    async (_, enter) => {
      const strategy: AgentStrategy = { onError: () => Promise.reject(new Error('worse')) }
      await expect(enter(strategy)).rejects.toThrow(/onError .*worse/)
    },
  )

  test('UAP-134 UAP-141 a cancelled run waits for its error hooks, and none of them makes it a result', async () => {
    const log: string[] = []
    const recovery = { turn: {} as GenerateResult['turn'], state: start }
    const later = async (name: string): Promise<GenerateResult> => {
      await new Promise((resolve) => setImmediate(resolve))
      log.push(name)
      return recovery
    }
    const controller = new AbortController()
    const worker = agent({
      model: scripted(() => (controller.abort(), waits(Infinity))),
      strategy: { onError: () => later('strategy') },
      middleware: ['outer', 'inner'].map((name) => ({ name, onError: () => later(name) })),
    })
    await expect(worker.generate('x', start, { signal: controller.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    expect(log).toEqual(['strategy', 'inner', 'outer'])
  })
})

describe('the tool strategy', () => {
  class Own implements ToolUseStrategy {
    readonly #log: string[] = []
    get log(): readonly string[] {
      return this.#log
    }
    onToolCall(_tool: Tool, _params: unknown, { toolCallId }: ToolCall): void {
      this.#log.push(`call ${toolCallId}`)
    }
    onBeforeCall(): void {
      this.#log.push('before')
    }
    onAfterCall(): void {
      this.#log.push('after')
    }
    onError(): void {
      this.#log.push('error')
    }
  }

  test('UAP-142 may be an object with methods and private fields', async () => {
    const bad: Tool = { ...get, name: 'bad', run: () => Promise.reject(new Error('no')) }
    const toolStrategy = new Own()
    const model = scripted([calls('get', {}, { id: 'g' }), calls('bad', {}, { id: 'b' }), says('')])
    await agent({ model, tools: [get, bad], toolStrategy }).generate('x', start)
    expect(toolStrategy.log).toEqual(['call g', 'before', 'after', 'call b', 'before', 'error'])
  })

  test.each(['', 0, false, null, { a: 1 }])(
    'UAP-142 a result that onAfterCall replaces with %j is what the model reads',
    async (result) => {
      const model = scripted([calls('get'), says('ok')])
      const toolStrategy = { onAfterCall: () => ({ result }) }
      const { turn } = await agent({ model, tools: [get], toolStrategy }).generate('x', start)
      expect(turn.toolExecutions.map((one) => one.result)).toEqual([result])
      expect(model.requests[1]!.messages.at(-1)).toMatchObject({ results: [{ result }] })
    },
  )

  test.each([false, { proceed: false }])(
    'UAP-143 onBeforeCall that returns %j skips a call, an approved one too, and the model reads an error',
    async (answer) => {
      const ran: string[] = []
      const paid: Tool = { ...ask, run: () => void ran.push('paid') }
      const model = scripted(({ messages }) =>
        messages.length === 1 ? calls('ask', {}, { id: 'a' }) : says('ok'),
      )
      const waiting = await agent({ model, tools: [paid] }).generate('x', start)
      const toolStrategy = { onBeforeCall: () => answer as false }
      const worker = agent({ model, tools: [paid], toolStrategy })
      const { turn } = await worker.resume(waiting.state, { a: { type: 'approve' } })
      expect(ran).toEqual([])
      expect(turn.toolExecutions).toMatchObject([{ toolCallId: 'a', isError: true }])
      expect(model.requests.at(-1)!.messages.at(-1)).toMatchObject({
        results: [{ toolCallId: 'a', isError: true }],
      })
    },
  )
})
