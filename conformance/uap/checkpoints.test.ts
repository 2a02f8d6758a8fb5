import { agent, AgentState, type AgentStateJSON } from '@skein/agents'
import { type CheckpointStore, memoryCheckpoints } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { describeCheckpointStore, recordEvents, scriptedAgent } from '@skein/agents/testing'
import type { Tool } from '@skein/ai'
import { calls, fails, says, scripted, waits, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test, vi } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { content, recordingStore, uuidV4 } from './support/state.ts'
import { add } from './support/tools.ts'
import { suiteFunctions } from '../support/suite-functions.ts'

const twoRounds = [
  calls('add', { a: 1, b: 2 }),
  calls('add', { a: 3, b: 4 }),
  says('Three, seven.'),
]
const steps = [
  { id: 'one', description: 'add', dependsOn: [] },
  { id: 'two', description: 'tell', dependsOn: ['one'] },
]
const strategies = {
  loop: { execution: loop(), script: twoRounds },
  react: {
    execution: react(),
    script: [says('I should add.'), twoRounds[0]!, says('Enough.'), says('Three.')],
  },
  plan: {
    execution: plan(),
    script: [says(JSON.stringify({ steps })), twoRounds[0]!, says('Added.'), says('Three.')],
  },
}

test('UAP-167 a save that failed is reported once and not tried again as a conflict', async () => {
  const errors: unknown[] = []
  let saves = 0
  const store: CheckpointStore = {
    ...memoryCheckpoints(),
    save: () => {
      saves++
      return Promise.reject(new Error('disk full'))
    },
  }
  const coder = agent({
    model: scripted([says('done')]),
    checkpoints: store,
    durability: 'sync',
    onCheckpointError: (error) => void errors.push(error),
  })
  const { events, result } = await recordEvents(coder.stream('go', AgentState.initial()))
  expect(saves).toBe(1)
  expect(errors).toMatchObject([{ message: 'disk full' }])
  expect(events.filter(({ uap }) => uap?.type === 'checkpoint_conflict')).toEqual([])
  expect(result?.turn.warnings).toEqual([])
})

test('a session that someone else saved meanwhile is named in the event, with both versions', async () => {
  const store = memoryCheckpoints()
  const meddling = {
    ...add,
    name: 'meddle',
    run: async () => void (await store.save('s', AgentState.initial().toJSON())),
  }
  const coder = agent({
    model: scripted([calls('meddle'), says('done')]),
    tools: [meddling],
    checkpoints: store,
    sessionId: 's',
    durability: 'sync',
    onCheckpointError: () => {},
  })
  const { events, result } = await recordEvents(coder.stream('go', AgentState.initial()))
  const [other] = await store.history('s')
  expect(
    events.flatMap(({ uap }) => (uap?.type === 'checkpoint_conflict' ? [uap.data] : [])),
  ).toEqual([{ sessionId: 's', expected: null, found: other!.checkpointId }])
  expect(result?.turn.warnings).toMatchObject([
    { code: 'checkpoint_conflict', message: expect.stringContaining('"s"') as string },
  ])
})

test('UAP-162 a store with a journal has one more save where calls are about to run, and no other', async () => {
  const store = memoryCheckpoints({ journal: true })
  const coder = agent({
    model: scripted(twoRounds),
    tools: [add],
    checkpoints: store,
    sessionId: 's',
  })
  await coder.generate('go', AgentState.initial())
  await coder.flush()
  expect((await store.history('s')).map(({ step }) => step)).toEqual([1, 1, 2, 2, 3])
})

describe.each(Object.entries(strategies))('%s', (_, { execution, script }) => {
  const create = (checkpoints: CheckpointStore, options: { sessionId?: string } = {}) =>
    agent({ model: scripted(script), tools: [add], execution, checkpoints, ...options })

  test('UAP-162 each step_end is followed by one save of that very state, streamed or not', async () => {
    const store = recordingStore()
    const coder = create(store, { sessionId: 's' })
    const stream = coder.stream('go', AgentState.initial())
    const seen: number[] = []
    for await (const { uap } of stream)
      if (uap?.type === 'step_end') {
        seen.push(uap.step)
        expect(store.saves.length).toBeLessThanOrEqual(seen.length)
      }
    const { state } = await stream.result
    await coder.flush()
    expect(store.saves.map(([id, { step }]) => [id, step])).toEqual(seen.map((step) => ['s', step]))
    expect(store.saves.at(-1)?.[1]).toEqual(state.toJSON())

    const waiting = recordingStore()
    const other = create(waiting, { sessionId: 's' })
    await other.generate('go', AgentState.initial())
    await other.flush()
    expect(waiting.saves.map(([, { step }]) => step)).toEqual(seen)
  })

  test('UAP-163 UAP-029 without a session id one is made, kept by the agent, and told in the state', async () => {
    const store = recordingStore()
    const coder = create(store)
    const { state } = await coder.generate('go', AgentState.initial())
    await coder.flush()
    const { sessionId } = state.metadata
    expect(sessionId).toMatch(uuidV4)
    expect(new Set(store.saves.map(([id]) => id))).toEqual(new Set([sessionId]))
  })

  test('UAP-164 a save that never ends does not hold up the run', async () => {
    const store = { ...recordingStore(), save: () => new Promise<void>(() => {}) }
    const { turn } = await create(store).generate('go', AgentState.initial())
    expect(turn.response.text).toContain('Three')
    const { result } = await recordEvents(create(store).stream('go', AgentState.initial()))
    expect(result?.turn.response.text).toContain('Three')
  })

  test('UAP-165 the session id is in every checkpoint and survives a restore', async () => {
    const store = memoryCheckpoints()
    const first = create(store, { sessionId: 'mine' })
    await first.generate('go', AgentState.initial())
    await first.flush()
    const saved = await store.load('mine')
    expect(saved?.metadata['sessionId']).toBe('mine')

    const later = create(store)
    const { state } = await later.generate('again', AgentState.fromJSON(saved))
    await later.flush()
    expect(state.metadata['sessionId']).toBe('mine')
    expect(await store.list()).toEqual(['mine'])
  })
})

test('UAP-166 a restored state continues like the live one', async () => {
  const script: ScriptStep[] = [...twoRounds, says('Ten.')]
  const store = memoryCheckpoints()
  const live = scriptedAgent(script, { tools: [add], checkpoints: store, sessionId: 's' })
  const { state } = await live.generate('go', AgentState.initial())
  await live.flush()
  const restored = AgentState.fromJSON(await store.load('s'))

  const model = scripted([says('Ten.')])
  const later = agent({ model, tools: [add], sessionId: 's', checkpoints: memoryCheckpoints() })
  const [a, b] = [
    await live.generate('and both?', state),
    await later.generate('and both?', restored),
  ]
  const known = (one: AgentState) => content(one.withMetadata('agentId', 'x'))
  expect(known(b.state)).toEqual(known(a.state))
  expect(model.requests[0]?.messages.map(({ id }) => id).slice(0, -1)).toEqual(
    live.model.requests
      .at(-1)
      ?.messages.map(({ id }) => id)
      .slice(0, -1),
  )
})

describe('UAP-167 a save that fails is reported and never thrown', () => {
  const faults: Record<string, Partial<CheckpointStore>> = {
    'by throwing immediately': {
      save: () => {
        throw new Error('disk full')
      },
    },
    'by rejecting': { save: () => Promise.reject(new Error('disk full')) },
  }
  test.each(Object.entries(faults))('UAP-167 %s', async (_, fault) => {
    const onCheckpointError = vi.fn()
    const coder = scriptedAgent(twoRounds, {
      tools: [add],
      checkpoints: { ...recordingStore(), ...fault },
      sessionId: 's',
      onCheckpointError,
    })
    const { turn } = await coder.generate('go', AgentState.initial())
    await coder.flush()
    expect(turn.response.text).toBe('Three, seven.')
    expect(onCheckpointError.mock.calls).toEqual(
      Array.from({ length: 3 }, () => [expect.objectContaining({ message: 'disk full' }), 's']),
    )
  })

  test('UAP-167 a state that JSON cannot say; a handler that throws or rejects; the console by default', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const broken = new Error('the handler is broken too')
    const handlers = [() => Promise.reject(broken), () => { throw broken }] // prettier-ignore
    for (const onCheckpointError of handlers) {
      log.mockClear()
      const coder = scriptedAgent([says('ok')], {
        checkpoints: recordingStore(),
        onCheckpointError,
      })
      const state = AgentState.initial().withMetadata('big', 1n as unknown as number)
      expect((await coder.generate('go', state)).turn.response.text).toBe('ok')
      await coder.flush()
      expect(log.mock.calls.flat().join()).toContain('the handler is broken too')
    }

    const plain = scriptedAgent([says('ok')], {
      checkpoints: { ...recordingStore(), save: () => Promise.reject(new Error('disk full')) },
      sessionId: 'plain',
    })
    await plain.generate('go', AgentState.initial())
    await plain.flush()
    expect(log.mock.calls.flat().join()).toMatch(/plain.*disk full/)
    log.mockRestore()
  })
})

test('UAP-168 UAP-162 slow saves keep their order; none is left out', async () => {
  const saved: number[] = []
  let delay = 6
  const store: CheckpointStore = {
    ...recordingStore(),
    save: async (_, { step }) => {
      await new Promise((resolve) => setTimeout(resolve, (delay -= 2))) // later ones are faster
      saved.push(step)
    },
  }
  const coder = scriptedAgent(twoRounds, { tools: [add], checkpoints: store })
  await coder.generate('go', AgentState.initial())
  await coder.flush()
  expect(saved).toEqual([1, 2, 3])
})

test.each([
  { name: 'loop', execution: loop(), script: [says('a')] },
  { name: 'custom', execution: custom(), script: [says('a')] },
])('UAP-162 $name: what onStepEnd returns is the state of the step', async (one) => {
  const checkpoints = recordingStore()
  const coder = agent({
    model: scripted(one.script),
    execution: one.execution,
    checkpoints,
    sessionId: 's',
    strategy: { onStepEnd: (_, { state }) => state.withMetadata('seen', true) },
  })
  await coder.generate('go', AgentState.initial())
  await coder.flush()
  expect(checkpoints.saves.map(([, { metadata }]) => metadata['seen'])).toEqual([true])
})

test('UAP-164 with durability sync each step waits until it is saved', async () => {
  const order: string[] = []
  const store: CheckpointStore = {
    ...recordingStore(),
    save: async (_, { step }) => {
      await new Promise((resolve) => setTimeout(resolve, 2))
      order.push(`saved ${step}`)
    },
  }
  const coder = scriptedAgent(twoRounds, {
    tools: [add],
    checkpoints: store,
    durability: 'sync',
    strategy: { onStepStart: (step) => void order.push(`start ${step}`) },
  })
  await coder.generate('go', AgentState.initial())
  expect(order).toEqual(['start 1', 'saved 1', 'start 2', 'saved 2', 'start 3', 'saved 3'])
})

test('UAP-047 UAP-163 a query has a session of its own', async () => {
  const store = memoryCheckpoints()
  const coder = scriptedAgent([says('a'), says('b')], { checkpoints: store, sessionId: 'mine' })
  await coder.generate('first', AgentState.initial())
  await coder.query('by the way')
  await coder.flush()
  expect((await store.list()).filter((id) => id !== 'mine')).toEqual([
    expect.stringMatching(uuidV4),
  ])
  expect(AgentState.fromJSON(await store.load('mine')).messages[0]?.text).toBe('first')
})

/** The store of UAP §12.4.6, over a client that is a Map. */
function redisCheckpoints(client: Map<string, string>): CheckpointStore {
  return {
    save: async (sessionId, state) =>
      void client.set(`checkpoint:${sessionId}`, JSON.stringify(state)),
    load: async (sessionId) => {
      const data = client.get(`checkpoint:${sessionId}`)
      return data ? (JSON.parse(data) as AgentStateJSON) : null
    },
    delete: async (sessionId) => void client.delete(`checkpoint:${sessionId}`),
    list: async () => [...client.keys()].map((key) => key.replace('checkpoint:', '')),
  }
}

describeCheckpointStore(suiteFunctions('UAP-159 '), {
  name: 'of the specification',
  open: () => redisCheckpoints(new Map()),
})

test('UAP-159 a store of one’s own, without loadMetadata, serves an agent', async () => {
  const store = redisCheckpoints(new Map())
  const coder = scriptedAgent(twoRounds, {
    tools: [add],
    checkpoints: store,
    sessionId: 'user-123-task-456',
  })
  const { state } = await coder.generate('go', AgentState.initial())
  await coder.flush()
  expect(await store.load('user-123-task-456')).toEqual(state.toJSON())
})

describe('the journal', () => {
  const store = () => memoryCheckpoints({ journal: true })
  const pay = (paid: string[], fail = false): Tool => ({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object' },
    run: async ({ to }: { to: string }, { idempotencyKey }: { idempotencyKey: string }) => {
      if (fail && to === 'bob') await new Promise(() => {}) // the process dies here
      paid.push(`${to} ${idempotencyKey}`)
      return { receipt: Uint8Array.of(paid.length) }
    },
  })
  const script = [
    [calls('pay', { to: 'ada' }), calls('pay', { to: 'bob' })],
    says('Both are paid.'),
  ] as const

  test('UAP-166 a call that was finished before the crash is not run again', async () => {
    const checkpoints = store()
    const paid: string[] = []
    const options = { checkpoints, sessionId: 's' }
    const controller = new AbortController()
    const first = scriptedAgent(script, { tools: [pay(paid, true)], ...options })
    const dies = first.generate('pay both', AgentState.initial(), { signal: controller.signal })
    await vi.waitFor(async () =>
      expect((await checkpoints.load('s'))?.suspension?.answered).toBeDefined(),
    )
    controller.abort()
    await expect(dies).rejects.toMatchObject({ code: 'CANCELLED' })

    const model = scripted([says('Both are paid.')])
    const next = agent({ model, tools: [pay(paid)], ...options })
    const { turn, state } = await next.resume(AgentState.fromJSON(await checkpoints.load('s')))
    expect(turn.response.text).toBe('Both are paid.')
    expect(paid.map((line) => line.split(' ')[0])).toEqual(['ada', 'bob'])
    expect(new Set(paid).size).toBe(2)
    expect(state.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'assistant',
    ])
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      results: [
        { result: { receipt: { $bytes: 'AQ==' } } },
        { result: { receipt: { $bytes: 'Ag==' } } },
      ],
    })
    await next.flush()
    expect((await checkpoints.load('s'))?.suspension).toBeUndefined()
  })

  test('UAP-167 a journal that cannot be written is reported, and the run continues', async () => {
    const onCheckpointError = vi.fn()
    const coder = scriptedAgent(script, {
      tools: [pay([])],
      checkpoints: { ...store(), record: () => Promise.reject(new Error('disk full')) },
      onCheckpointError,
    })
    const { turn } = await coder.generate('pay both', AgentState.initial())
    expect(turn.response.text).toBe('Both are paid.')
    expect(onCheckpointError).toHaveBeenCalledTimes(2)
  })

  test('UAP-162 a run that fails leaves the checkpoint of its last step', async () => {
    const checkpoints = memoryCheckpoints()
    const coder = scriptedAgent([twoRounds[0]!, fails('down')], {
      tools: [add],
      checkpoints,
      sessionId: 's',
    })
    await expect(coder.generate('go', AgentState.initial())).rejects.toThrow('down')
    await coder.flush()
    const state = AgentState.fromJSON(await checkpoints.load('s'))
    expect([state.step, state.messages.at(-1)?.type]).toEqual([1, 'tool_result'])
  })

  test('UAP-152 UAP-162 an aborted run too', async () => {
    const checkpoints = memoryCheckpoints()
    const coder = scriptedAgent([twoRounds[0]!, waits(Infinity)], {
      tools: [add],
      checkpoints,
      sessionId: 's',
    })
    const stream = coder.stream('go', AgentState.initial())
    const result = expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED' })
    await vi.waitFor(async () => expect(await checkpoints.load('s')).not.toBeNull())
    stream.abort()
    await result
    expect((await checkpoints.load('s'))?.step).toBe(1)
  })
})
