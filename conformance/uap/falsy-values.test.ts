/** Values that are empty, zero, false or undefined, where others are expected. */
import { agent, AgentState, ThreadTree, type AgentOptions } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { defer, isToolResultMessage, UserMessage, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { recordingStore, uuidV4 } from './support/state.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()

test('UAP-036 UAP-037 options that are undefined are as if they were not given', async () => {
  const names = [
    'execution',
    'middleware',
    'strategy',
    'checkpoints',
    'sessionId',
    'durability',
    'onCheckpointError',
    'toolStrategy',
    'llmMiddleware',
    'system',
    'params',
    'config',
    'structure',
    'repair',
    'signal',
    'ids',
    'clock',
  ] as const
  const none = Object.fromEntries(names.map((name) => [name, undefined])) as Partial<AgentOptions>
  const model = scripted([calls('add', { a: 1, b: 1 }), says('two')])
  const worker = agent({ model, tools: [add], ...none })
  const { turn, state, stopReason } = await worker.generate('x', start)
  expect([turn.response.text, turn.toolExecutions.length, stopReason]).toEqual([
    'two',
    1,
    'complete',
  ])
  expect([worker.id, state.metadata]).toEqual([expect.stringMatching(uuidV4), {}])
  expect(names.filter((name) => name in worker)).toEqual([])
  const bare = scripted([says('ok')])
  const alone = agent({ model: bare, tools: undefined, ...none })
  expect([alone.tools, (await alone.query('')).response.text]).toEqual([[], 'ok'])
  expect(bare.requests[0]!.messages.map(({ text }) => text)).toEqual([''])
})

test.each(['', 0, false, null, []])(
  'UAP-070 UAP-011 a tool whose form for the model is %j: the model reads that, the turn has the result',
  async (form) => {
    for (const execution of [loop(), react(), plan()]) {
      const model = scripted(({ structure, tools, messages }) => {
        if (structure) return says('{"steps":[]}')
        const isDone = messages.some(isToolResultMessage)
        return isDone || tools.length === 0 ? says('done') : calls('look')
      })
      const look: Tool = { ...add, name: 'look', run: () => 'secret', toModel: () => form }
      const worker = agent({ model, tools: [look], execution })
      const { turn, state } = await worker.generate('x', start)
      const [sent] = model.requests.at(-1)!.messages.filter(isToolResultMessage)
      expect(sent!.results, execution.name).toMatchObject([{ toolName: 'look', result: form }])
      expect(state.messages).toContain(sent)
      expect(turn.toolExecutions).toMatchObject([{ result: 'secret', isError: false }])
    }
  },
)

test('UAP-007 UAP-033 a branch with an empty name keeps it, and an id of its own', () => {
  const tree = ThreadTree.fromJSON(new ThreadTree({ state: start }).toJSON())
  const ids = ['', '', undefined, 'a', 'a'].map((name) => tree.branch(tree.root.id, name))
  expect(new Set([tree.root.id, ...ids]).size).toBe(6)
  for (const id of ids) expect(id).toMatch(uuidV4)
  const restored = ThreadTree.fromJSON(JSON.parse(JSON.stringify(tree)))
  for (const nodes of [tree.nodes, restored.nodes])
    expect(ids.map((id) => nodes.get(id)!.toJSON().name)).toEqual(['', '', undefined, 'a', 'a'])
})

test('UAP-080 UAP-084 empty and falsy fields of a state are in its JSON and come back', () => {
  const state = start
    .withPlan([])
    .withReasoning('')
    .withStep(0)
    .withMetadata('zero', 0)
    .withMetadata('empty', '')
    .withMetadata('no', false)
    .withMetadata('null', null)
  const json = JSON.parse(JSON.stringify(state))
  const metadata = { zero: 0, empty: '', no: false, null: null }
  expect(json).toMatchObject({ plan: [], reasoning: [''], step: 0, metadata })
  const restored = AgentState.fromJSON(json)
  const { plan: steps, reasoning, step, metadata: known } = restored
  expect({ plan: steps, reasoning, step, metadata: known }).toEqual({
    plan: [],
    reasoning: [''],
    step: 0,
    metadata,
  })
  expect('plan' in start.toJSON()).toBe(false)
})

test('UAP-027 UAP-048 a query has a session id of the kind that agents make, and ids of the given source', async () => {
  const checkpoints = recordingStore()
  const worker = agent({ model: scripted(() => says('ok')), checkpoints, sessionId: 'mine' })
  await worker.query('x')
  await worker.query('y')
  await worker.flush()
  const sessions = await checkpoints.list!()
  expect(new Set(sessions).size).toBe(2)
  for (const id of sessions) expect(id).toMatch(uuidV4)

  let count = 0
  const seen: string[] = []
  const counting = agent({
    model: scripted(() => says('ok')),
    ids: () => `id-${count++}`,
    middleware: [{ name: 'look', before: ({ state }) => void seen.push(state.id) }],
    strategy: { onStepStart: (_, { id }) => void seen.push(id) },
  })
  await counting.query('x')
  expect(seen).toHaveLength(2)
  for (const id of seen) expect(id).toMatch(/^id-\d+$/)
})

test('UAP-061 UAP-082 what has ended next to a call that waits is observed, and messages leave it waiting', async () => {
  const seen: unknown[] = []
  const waiting: Tool = { ...add, name: 'ask', run: () => defer({ kind: 'input', request: '' }) }
  const worker = agent({
    model: scripted([[calls('add', { a: 1, b: 1 }), calls('ask', {}, { id: 'q' })], says('done')]),
    tools: [add, waiting],
    strategy: {
      onObserve: (step, executions) =>
        void seen.push([step, ...executions.map(({ toolName, result }) => [toolName, result])]),
    },
  })
  const { state } = await worker.generate('x', start)
  expect(seen).toEqual([[1, ['add', 2]]])
  for (const kept of [
    state,
    state.withMessages([]),
    state.withMetadata('a', 1),
    state.withStep(state.step),
    state.withReasoning(''),
  ]) {
    expect(kept.suspension).toEqual(state.suspension)
    expect(kept.interrupts.map(({ id }) => id)).toEqual(['q'])
  }
  expect(state.withMessage(new UserMessage('more')).suspension).toEqual(state.suspension)
  const { turn } = await worker.resume(state.withMessages([]), { q: { type: 'result', value: 0 } })
  expect(turn.response.text).toBe('done')
  expect(seen.slice(1)).toEqual([[1, ['ask', 0]]])
})
