import {
  agent,
  AgentState,
  subagent,
  type AgentContext,
  type AgentOptions,
  type ExecutionContext,
  type ExecutionStrategy,
  type GenerateResult,
  type Middleware,
  type MiddlewareContext,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import type { Tool, Turn } from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { recordingStore, uuidV4 } from './support/state.ts'
import { add } from './support/tools.ts'

const model = () => scripted(({ structure }) => says(structure ? '{"steps":[]}' : 'ok'))

test('UAP-025 agents have UUIDv4 ids, each its own', () => {
  const ids = Array.from({ length: 1000 }, () => agent({ model: model() }).id)
  expect(new Set(ids).size).toBe(1000)
  expect(ids.every((id) => uuidV4.test(id))).toBe(true)
})

test('UAP-026 UAP-087 each operation gives a new UUIDv4, also one that changes nothing', () => {
  const state = AgentState.initial()
  const states = [
    state,
    state.withMessages([]),
    state.withContext([]),
    state.withStep(0),
    state.withMetadata('a', undefined),
    state.withReasoning(''),
    state.withPlan([]),
    ...Array.from({ length: 10_000 }, () => AgentState.initial()),
  ]
  expect(new Set(states.map(({ id }) => id)).size).toBe(states.length)
  expect(states.every(({ id }) => uuidV4.test(id))).toBe(true)
})

test('UAP-027 UAP-028 UAP-163 a session id is made where a store has none, and a given one is used as it is', async () => {
  const checkpoints = recordingStore()
  const worker = agent({ model: model(), checkpoints })
  const first = await worker.generate('x', AgentState.initial())
  const second = await worker.generate('y', AgentState.initial())
  await worker.flush()
  expect(first.state.metadata['sessionId']).toMatch(uuidV4)
  expect(second.state.metadata['sessionId']).toMatch(uuidV4)
  expect(second.state.metadata['sessionId']).not.toBe(first.state.metadata['sessionId'])
  expect(checkpoints.saves[0]![0]).toBe(first.state.metadata['sessionId'])
  const named = agent({ model: model(), checkpoints, sessionId: 'my-session' })
  await named.generate('x', AgentState.initial())
  await named.flush()
  expect(checkpoints.saves.at(-1)![0]).toBe('my-session')
})

test('UAP-029 the returned state names its session, with every strategy and call', async () => {
  const forgets: ExecutionStrategy = {
    ...custom(),
    name: 'forgets',
    execute: async (context) => {
      const { turn } = await custom().execute(context)
      return { turn, state: AgentState.initial().withMessages(turn.messages) }
    },
  }
  for (const execution of [loop(), react(), plan(), custom(), forgets]) {
    const worker = agent({
      model: model(),
      execution,
      checkpoints: recordingStore(),
      sessionId: 's',
    })
    const { state: generated } = await worker.generate('x', AgentState.initial())
    const { state: streamed } = await worker.stream('x', AgentState.initial()).result
    const { state: asked } = await worker.ask('x', AgentState.initial())
    for (const { metadata } of [generated, streamed, asked])
      expect(metadata['sessionId'], execution.name).toBe('s')
  }
  const { state } = await agent({ model: model() }).generate('x', AgentState.initial())
  expect(state.metadata).toEqual({})
})

test('UAP-029 a state of another session is named after the session it is used in', async () => {
  const renames: ExecutionStrategy = {
    ...custom(),
    name: 'renames',
    execute: async (context) => {
      const { turn, state } = await custom().execute(context)
      return { turn, state: state.withMetadata('sessionId', 'another') }
    },
  }
  for (const execution of [loop(), react(), plan(), custom(), renames]) {
    const checkpoints = recordingStore()
    const worker = agent({ model: model(), execution, checkpoints, sessionId: 's' })
    const old = AgentState.initial().withMetadata('sessionId', 'old').withMetadata('agentId', 'old')
    const { state: generated } = await worker.generate('x', old)
    const { state: streamed } = await worker.stream('x', old).result
    const { state: asked } = await worker.ask('x', old)
    await worker.flush()
    const ids = { sessionId: 's', agentId: worker.id }
    for (const { metadata } of [generated, streamed, asked])
      expect(metadata, execution.name).toEqual(ids)
    expect(checkpoints.saves.length).toBeGreaterThan(2)
    for (const [id, { metadata }] of checkpoints.saves)
      expect([id, metadata], execution.name).toEqual(['s', ids])
  }
})

test('UAP-029 a result that a hook or a middleware made names the session, too', async () => {
  const made = (turn: GenerateResult['turn']): GenerateResult => ({
    turn,
    state: AgentState.initial(),
  })
  const broken = () => {
    throw new Error('broken')
  }
  const stateless = (context: MiddlewareContext): MiddlewareContext => ({
    ...context,
    state: undefined as unknown as AgentState,
  })
  const cases: Partial<AgentOptions>[] = [
    { strategy: { onError: () => made({} as Turn) }, model: scripted([fails('down')]) },
    { middleware: [{ name: 'm', after: (_, { turn }) => made(turn) }] },
    { middleware: [{ name: 'm', onError: () => made({} as Turn) }], model: scripted([fails('x')]) },
    // The strategy never begins.
    { middleware: [{ name: 'm', before: broken, onError: () => made({} as Turn) }] },
    { middleware: [{ name: 'm', before: broken }], strategy: { onError: () => made({} as Turn) } },
    { middleware: [{ name: 'm', before: stateless, onError: () => made({} as Turn) }] },
  ]
  for (const [index, options] of cases.entries()) {
    const checkpoints = recordingStore()
    const worker = agent({ model: model(), checkpoints, sessionId: 's', ...options })
    for (const running of [
      worker.generate('x', AgentState.initial()),
      worker.stream('x', AgentState.initial()).result,
    ]) {
      const { state } = await running
      expect(state.metadata, String(index)).toEqual({ sessionId: 's', agentId: worker.id })
    }
  }
})

test('UAP-029 UAP-165 a run that fails before its strategy begins is recovered in the session of its state', async () => {
  const recovering: Middleware = {
    name: 'recovering',
    before: () => {
      throw new Error('busy')
    },
    onError: () => ({ turn: {} as Turn, state: AgentState.initial() }),
  }
  const moving: Middleware = {
    name: 'moving',
    before: (context) => ({ ...context, state: context.state.withMetadata('sessionId', 'tenant') }),
  }
  const known = AgentState.initial().withMetadata('sessionId', 'known')
  for (const [middleware, sessionId] of [
    [[recovering], 'known'],
    [[moving, recovering], 'tenant'],
  ] as const) {
    const worker = agent({ model: model(), middleware, checkpoints: recordingStore() })
    const { state } = await worker.generate('x', known)
    expect(state.metadata).toEqual({ sessionId, agentId: worker.id })
  }
})

test('UAP-165 a restored state stays in its session', async () => {
  const checkpoints = recordingStore()
  const first = agent({ model: model(), checkpoints })
  const { state } = await first.generate('x', AgentState.initial())
  await first.flush()
  const sessionId = state.metadata['sessionId'] as string
  const saved = await checkpoints.load(sessionId)
  expect(saved?.metadata['sessionId']).toBe(sessionId)
  const second = agent({ model: model(), checkpoints })
  const { state: next } = await second.generate('y', AgentState.fromJSON(saved))
  expect(next.metadata['sessionId']).toBe(sessionId)
})

test('UAP-031 a step is a number that counts up within a call and starts again with the next', async () => {
  const steps: number[] = []
  const worker = agent({
    model: scripted([
      calls('add', { a: 1, b: 1 }),
      says('a'),
      calls('add', { a: 1, b: 1 }),
      says('b'),
    ]),
    tools: [add],
    strategy: { onStepStart: (step) => void steps.push(step) },
  })
  const { state } = await worker.generate('x', AgentState.initial())
  await worker.generate('y', state)
  expect(steps).toEqual([1, 2, 1, 2])
})

test('UAP-032 strategies and tools know who runs them, down a chain of agents', async () => {
  const contexts: AgentContext[] = []
  const look: Tool = {
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' },
    run: (_: unknown, context: AgentContext) => void contexts.push(context),
  }
  const seen: ExecutionContext[] = []
  const child = agent({
    model: scripted([calls('look'), says('seen')]),
    tools: [look],
    execution: custom((context) => seen.push(context)),
    sessionId: 'inner',
  })
  const deep = agent({ model: scripted([calls('look'), says('seen')]), tools: [look] })
  const parameters = { type: 'object' }
  const tools = [
    subagent({ name: 'child', description: 'd', parameters, agent: child, prompt: () => 'go' }),
    subagent({ name: 'deep', description: 'd', parameters, agent: deep, prompt: () => 'go' }),
  ]
  const parent = agent({
    model: scripted([[calls('child'), calls('deep')], says('done')]),
    tools,
    sessionId: 'outer',
  })
  await parent.generate('x', AgentState.initial())
  expect(seen[0]).toMatchObject({ agentId: child.id, sessionId: 'inner' })
  expect(seen[0]!.stateId).toBe(seen[0]!.state.id)
  expect(seen[0]!.parentContext).toMatchObject({ agentId: parent.id, sessionId: 'outer' })
  expect(contexts.map(({ agentId }) => agentId).sort()).toEqual([child.id, deep.id].sort())
  for (const { stateId } of contexts) expect(stateId).toMatch(uuidV4)
  for (const context of contexts)
    expect(context.parentContext).toMatchObject({ agentId: parent.id, sessionId: 'outer' })
})

test('UAP-034 each run of a sub-agent has an id of its own', async () => {
  const child = agent({ model: scripted(() => says('ok')) })
  const tool = subagent({
    name: 'child',
    description: 'd',
    parameters: { type: 'object' },
    agent: child,
    prompt: () => 'go',
  })
  const parent = agent({
    model: scripted([[calls('child'), calls('child')], says('x')]),
    tools: [tool],
  })
  const { state } = await parent.generate('x', AgentState.initial())
  const ids = state.subagentTraces.map(({ subagentId }) => subagentId)
  expect(new Set(ids).size).toBe(2)
  expect(ids.every((id) => uuidV4.test(id))).toBe(true)
})
