import { describe, expect, test, vi } from 'vitest'
import { defer, type DeferRequest, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { memoryCheckpoints } from '../checkpoint/index.ts'
import { agent, AgentState, subagent, ThreadTree } from '../index.ts'

const start = AgentState.initial()
const waiting = (request: () => DeferRequest): Tool => ({
  name: 'pay',
  description: 'Pays.',
  parameters: { type: 'object' },
  run: () => defer(request()),
})
const pay = waiting(() => ({ kind: 'approval', request: { amount: 5 } }))

describe('what a stored state waits for', () => {
  test('is readable without a model, at any depth, with the ids that resume takes', async () => {
    const inner = agent({ model: scripted([calls('pay', {}), says('paid')]), tools: [pay] })
    const kid = subagent({
      name: 'kid',
      description: 'Pays.',
      parameters: { type: 'object' },
      agent: inner,
      prompt: () => 'pay',
    })
    const model = scripted([[calls('kid', {}), calls('pay', {})], says('done')])
    const top = agent({ model, tools: [kid, pay] })
    const { state, interrupts } = await top.generate('go', start)
    const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
    expect(stored.interrupts).toEqual(interrupts)
    expect(stored.interrupts.map(({ path, request }) => [path, request])).toEqual([
      [['kid'], { amount: 5 }],
      [[], { amount: 5 }],
    ])
    const answers = Object.fromEntries(
      stored.interrupts.map(({ id }) => [id, { type: 'result', value: 'ok' } as const]),
    )
    const done = await top.resume(stored, answers)
    expect(done.stopReason).toBe('complete')
    expect(done.state.interrupts).toEqual([])
  })
})

describe('defer checks its request at once', () => {
  const wrong: Readonly<Record<string, () => DeferRequest>> = {
    'an unknown kind': () => ({ kind: 'confirm', request: {} }) as never,
    'no request': () => ({ kind: 'approval' }) as never,
    'a function': () => ({ kind: 'input', request: () => 1 }) as never,
    nothing: () => undefined as never,
  }
  test.each(Object.entries(wrong))('%s is an error of that call', async (_, request) => {
    expect(() => defer(request())).toThrow(
      expect.objectContaining({ code: 'DEFER_REQUEST_INVALID' }),
    )
    const store = memoryCheckpoints()
    const model = scripted([calls('pay', {}), says('I see.')])
    const { state, stopReason } = await agent({
      model,
      tools: [waiting(request)],
      checkpoints: store,
      sessionId: 's',
      durability: 'sync',
    }).generate('go', start)
    expect(stopReason).toBe('complete')
    expect(state.messages[2]).toMatchObject({
      results: [{ isError: true, result: expect.stringContaining('cannot be deferred') }],
    })
    AgentState.fromJSON(await store.load('s'))
  })

  test('what JSON can express by the result rule is stored and read again', async () => {
    const date = new Date(0)
    const tool = waiting(() => ({ kind: 'input', request: { date } as never }))
    const model = scripted([calls('pay', {})])
    const { state } = await agent({ model, tools: [tool] }).generate('go', start)
    const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
    expect(stored.interrupts[0]?.request).toEqual({ date: date.toISOString() })
  })
})

describe('the end of a run', () => {
  test('onComplete is called for a run that is over, not for one that waits', async () => {
    const seen: string[] = []
    const model = scripted([calls('pay', {}), says('done')])
    const worker = agent({
      model,
      tools: [pay],
      strategy: { onComplete: ({ stopReason }) => void seen.push(String(stopReason)) },
    })
    const { state, interrupts } = await worker.generate('go', start)
    expect(seen).toEqual([])
    await worker.resume(state, { [interrupts![0]!.id]: { type: 'result', value: 1 } })
    expect(seen).toEqual(['complete'])
  })

  test('steer is refused once the run is over, failed or aborted', async () => {
    const over = agent({ model: scripted([says('done')]) }).stream('go', start)
    over.steer('before it starts is fine')
    await over.result.catch(() => {})
    const failed = agent({ model: scripted([]) }).stream('go', start)
    await failed.result.catch(() => {})
    const aborted = agent({ model: scripted([says('x')]) }).stream('go', start)
    aborted.abort()
    for (const run of [over, failed, aborted])
      expect(() => run.steer('more')).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringMatching(/over/),
        }),
      )
  })
})

test('the leaves of a tree are the newest nodes of its branches', () => {
  const tree = new ThreadTree()
  expect(tree.leaves).toEqual([tree.root])
  const first = tree.branch(tree.root.id, 'first')
  const second = tree.branch(tree.root.id, 'second')
  const third = tree.branch(first, 'third')
  expect(tree.leaves.map(({ id }) => id)).toEqual([second, third])
  expect(ThreadTree.fromJSON(tree.toJSON()).leaves.map(({ id }) => id)).toEqual([second, third])
})

test('a stop condition that reads the turn costs the same per step in a long run', async () => {
  const work: Tool = { ...pay, name: 'work', run: () => 'ok' }
  const run = async (steps: number): Promise<number> => {
    const model = scripted((_, index) => (index < steps ? calls('work', {}) : says('done')))
    // `deepFreeze` looks every object of a value up, so this counts how much of the run is walked through.
    const lookUps = vi.spyOn(WeakSet.prototype, 'has')
    try {
      await agent({
        model,
        tools: [work],
        strategy: { stopCondition: (_, { turn }) => turn.messages.length < 0 },
      }).generate('go', start)
      return lookUps.mock.calls.length / steps
    } finally {
      lookUps.mockRestore()
    }
  }
  const [short, long] = [await run(50), await run(200)]
  expect(long).toBeLessThan(short * 1.2)
})
