import { agent, AgentState, type Agent, type AgentOptions } from '@skein/agents'
import { memoryCheckpoints } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { type LLMRequest, type Middleware, type ToolUseStrategy } from '@skein/ai'
import { jsonSchema } from '@skein/ai/json-schema'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { manualClock, sequentialIds } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()
const adding = calls('add', { a: 1, b: 2 })
const strategies = { loop, react, plan, custom }

/** Every way to start a run with a new input. */
const forms = {
  generate: async (worker: Agent) => (await worker.generate('x', start)).turn,
  stream: async (worker: Agent) => (await worker.stream('x', start).result).turn,
  ask: async (worker: Agent) => (await worker.ask('x', start)).turn,
  query: (worker: Agent) => worker.query('x'),
}

const settings = {
  temperature: 0,
  maxOutputTokens: 9,
  topP: 0.5,
  stop: ['END'],
  seed: 0,
  topK: 3,
  toolChoice: 'auto',
  parallelToolCalls: false,
  reasoning: 'low',
} as const

describe.each(Object.entries(strategies))('with %s', (_name, strategy) => {
  test.each(Object.entries(forms))(
    'UAP-035 each option of llm() is in every request (%s)',
    async (_form, run) => {
      const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))
      const params = { top_k: 3 }
      const config = { headers: { 'x-a': 'b' } }
      const system = 'Be brief.'
      const execution = strategy()
      await run(agent({ model, params, config, system, tools: [add], execution, ...settings }))
      expect(model.requests.length).toBeGreaterThan(0)
      for (const request of model.requests) {
        expect(request).toMatchObject({ params, system })
        expect(request.config.headers).toEqual(config.headers)
        // Without tools there is nothing to choose, and vendors refuse such a request.
        const { toolChoice: _, ...others } = settings
        expect(request.settings).toEqual(request.tools.length > 0 ? settings : others)
      }
    },
  )

  test('UAP-035 validate checks the answer, and repair asks for another', async () => {
    const structure = jsonSchema({
      type: 'object',
      properties: { n: { type: 'number' } },
      required: ['n'],
    })
    const answers = ['{"n":"one"}', '{"n":1}']
    const model = scripted((request) => {
      if (request.structure && 'steps' in (request.structure['properties'] as object))
        return says('{"steps":[]}')
      return says(request.structure ? answers.shift()! : 'I think.')
    })
    const options = { model, structure, validate: true, execution: strategy() }
    const once = agent(options)
    await expect(once.generate('x', start)).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
      issues: [{ pointer: '/n' }],
    })
    const repaired = agent({ ...once, repair: 1 })
    for (const form of [
      () => repaired.generate('x', start),
      () => repaired.stream('x', start).result,
    ]) {
      answers.splice(0, 2, '{"n":"one"}', '{"n":1}')
      const { turn, state } = await form()
      expect(turn.data).toEqual({ n: 1 })
      expect(state.messages.at(-1)).toBe(turn.response)
      expect(state.messages.map(({ text }) => text)).toContain('{"n":"one"}')
      expect(turn.messages).toEqual(state.messages)
      expect(turn.cycles).toBe(turn.messages.filter(({ type }) => type === 'assistant').length)
    }
  })
})

/** An agent with every option there is; none has its default value. */
function everything(): AgentOptions {
  return {
    ...settings,
    model: scripted([]),
    config: { headers: {} },
    params: {},
    system: '',
    tools: [add],
    toolStrategy: { maxIterations: 3, maxConcurrency: 2 },
    structure: { type: 'object' },
    validate: false,
    repair: 0,
    open: () => ({}),
    signal: new AbortController().signal,
    clock: manualClock(5),
    ids: sequentialIds('id-'),
    execution: react(),
    middleware: [],
    llmMiddleware: [],
    strategy: {},
    checkpoints: memoryCheckpoints(),
    sessionId: 'mine',
    durability: 'sync',
    onCheckpointError: () => {},
  } satisfies Required<AgentOptions>
}

test('UAP-016 UAP-040 every option is a property of the agent and remains when it is spread', () => {
  const options = everything()
  const methods = ['generate', 'stream', 'ask', 'query', 'resume', 'resumeStream', 'flush']
  const first = agent(options)
  const second = agent({ ...first })
  const third = agent({ ...second, system: undefined })
  expect([first.id, second.id, third.id]).toEqual(['id-1', 'id-2', 'id-3'])
  for (const worker of [first, second]) {
    expect(Object.keys(worker).sort()).toEqual([...Object.keys(options), 'id', ...methods].sort())
    for (const [name, value] of Object.entries(options))
      if (name === 'tools') expect(worker.tools).toEqual(value)
      else expect(worker[name as keyof Agent], name).toBe(value)
  }
  expect('system' in third).toBe(false)
  for (const name of methods)
    expect(second[name as keyof Agent], name).not.toBe(first[name as keyof Agent])
  const bare = agent({ model: options.model })
  expect(Object.keys(bare).sort()).toEqual(['id', 'model', 'tools', ...methods].sort())
})

test('UAP-040 UAP-013 what the caller passed stays the caller’s', async () => {
  const model = scripted(() => says('ok'))
  const tools = [add]
  const toolStrategy: ToolUseStrategy = { onToolCall: () => {} }
  const worker = agent({ model, tools, toolStrategy })
  expect(Object.isFrozen(tools)).toBe(false)
  tools.push({ ...add, name: 'later' })
  await worker.generate('x', start)
  const [request] = model.requests as readonly LLMRequest[]
  expect(request!.tools.map(({ name }) => name)).toEqual(['add'])
  expect(worker.tools).toHaveLength(1)
  expect(Object.keys(toolStrategy)).toEqual(['onToolCall'])
})

test('UAP-035 UAP-036 ids and times come from the given sources, for every form of call', async () => {
  for (const [name, run] of Object.entries(forms))
    for (const strategy of Object.values(strategies)) {
      const execution = strategy()
      const model = scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))
      const worker = agent({ model, ids: sequentialIds('id-'), clock: manualClock(7), execution })
      const { messages } = await run(worker)
      expect(messages.length).toBeGreaterThan(1)
      for (const { id, timestamp } of messages) {
        expect(id, name).toMatch(/^id-\d+$/)
        expect(timestamp.getTime(), name).toBe(7)
      }
    }
})

test('UAP-035 middleware of the model has one state for the run, and counts its inferences', async () => {
  for (const [name, run] of Object.entries(forms)) {
    const seen: unknown[] = []
    const counting: Middleware = {
      name: 'counting',
      onCycle: (_, cycle, { state }) => {
        const count = ((state.get('count') as number | undefined) ?? 0) + 1
        state.set('count', count)
        seen.push([cycle, count])
      },
      onToolCall: (_, { state }) => void seen.push(['tool', state.get('count')]),
    }
    const model = scripted([adding, says('three')])
    await run(agent({ model, tools: [add], llmMiddleware: [counting] }))
    expect(seen, name).toEqual([
      [1, 1],
      ['tool', 1],
      [2, 2],
    ])
  }
})

test('UAP-035 UAP-013 middleware of the model may edit its list of messages; the state keeps its own', async () => {
  const model = scripted([says('ok')])
  const trimming: Middleware = {
    name: 'trimming',
    onRequest: ({ request }) =>
      void (request as unknown as { messages: unknown[] }).messages.splice(0, 2),
  }
  const { state: before } = await agent({ model: scripted([says('one')]) }).generate('x', start)
  const { state } = await agent({ model, llmMiddleware: [trimming] }).generate('y', before)
  expect(model.requests[0]!.messages.map(({ text }) => text)).toEqual(['y'])
  expect(state.messages.map(({ text }) => text)).toEqual(['x', 'one', 'y', 'ok'])
})

test('UAP-035 the signal of the agent and the gate of its calls hold for every strategy', async () => {
  for (const strategy of Object.values(strategies)) {
    const execution = strategy()
    const gone = new AbortController()
    const model = scripted([waits(Infinity)])
    const running = agent({ model, execution, signal: gone.signal }).generate('x', start)
    gone.abort('closing time')
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
  }
  const deny = { admit: () => ({ type: 'deny', reason: 'not here' }) as const }
  for (const execution of [loop(), react(), custom()]) {
    const script = execution.name === 'react' ? [says('t'), adding, says('t')] : [adding]
    const model = scripted([...script, says('ok')])
    const open = () => ({ gate: deny })
    const worker = agent({ model, execution, tools: [add], open })
    const { turn } = await worker.generate('x', start)
    expect(turn.toolExecutions, execution.name).toMatchObject([{ result: 'not here' }])
  }
})

test('UAP-020 UAP-039 a limit that is undefined is none, also for a strategy of the application', async () => {
  const script = [...Array.from({ length: 12 }, () => adding), says('done')]
  for (const execution of [loop(), custom()])
    for (const toolStrategy of [{ maxIterations: undefined }, {}] as ToolUseStrategy[]) {
      const worker = agent({ model: scripted(script), tools: [add], toolStrategy, execution })
      expect((await worker.query('x')).toolExecutions).toHaveLength(12)
    }
})

test('UAP-002 UAP-039 all hooks of a tool strategy of a class keep its private fields', async () => {
  class Noting implements ToolUseStrategy {
    readonly #log: unknown[] = []
    get log(): readonly unknown[] {
      return this.#log
    }
    onToolCall(): void {
      this.#log.push('call')
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
    onMaxIterations(rounds: number): void {
      this.#log.push(`limit ${rounds}`)
    }
  }
  class Limited extends Noting {
    readonly maxIterations = 1
  }
  const broken = { ...add, name: 'broken', run: () => Promise.reject(new Error('no')) }
  // A reading tool fails at its limit without a grace.
  const limits = { timeoutMs: 1, risk: 'read_only' } as const
  const slow = { ...add, name: 'slow', ...limits, run: () => new Promise(() => {}) }
  const tools = [add, broken, slow]
  const each = ['call', 'before', 'after', 'call', 'before', 'error', 'call', 'before', 'error']
  for (const execution of [loop(), custom()])
    for (const [name, run] of Object.entries(forms)) {
      const script = [adding, calls('broken'), calls('slow'), says('ok')]
      const free = new Noting()
      await run(agent({ model: scripted(script), tools, toolStrategy: free, execution }))
      expect(free.log, name).toEqual(each)
      const limited = new Limited()
      const two = scripted([adding, adding])
      await run(agent({ model: two, tools, toolStrategy: limited, execution }))
      expect(limited.log, name).toEqual(['call', 'before', 'after', 'limit 1'])
    }
})
