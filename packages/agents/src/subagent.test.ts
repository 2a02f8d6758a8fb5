import { manualClock } from '@skein/base'
import {
  AssistantMessage,
  defer,
  type LLMInstance,
  type Tool,
  ToolResultMessage,
  type Turn,
} from '@skein/ai'
import { calls, says, scripted, stops, waits, type ScriptFunction } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { memoryCheckpoints } from './checkpoint/index.ts'
import { loop } from './strategies/index.ts'
import { maxCost, maxSteps, maxTime, maxTokens } from './middleware/index.ts'
import type { StopCondition } from './middleware/budget.ts'
import {
  agent,
  AgentState,
  subagent,
  type Agent,
  type AgentContext,
  type ExecutionStrategy,
  type GenerateResult,
} from './index.ts'
import type { CheckpointStore, StepEffect } from './contract/checkpoint-store.ts'

const parameters = { type: 'object' }
const start = AgentState.initial()
const restore = (json: unknown) => AgentState.fromJSON(JSON.parse(JSON.stringify(json)))

function child(name: string, its: Agent, more: { sharesBudget?: boolean } = {}): Tool {
  return subagent({ name, description: 'd', parameters, agent: its, prompt: () => 'go', ...more })
}

function effect(name: string, done: string[], more: Partial<Tool> = {}): Tool {
  return {
    name,
    description: 'd',
    parameters,
    run: (_: unknown, { idempotencyKey }: AgentContext) =>
      void done.push(`${name} ${idempotencyKey}`),
    ...more,
  }
}

test.each<[string, ExecutionStrategy | undefined]>([
  ['a built-in strategy', undefined],
  ['a strategy of the application', ownStrategy()],
])(
  'two runs of %s that begin with one state share no session of a sub-agent and no key',
  async (_, execution) => {
    const done: string[] = []
    const saved = new Set<string>()
    const store = memoryCheckpoints()
    const checkpoints: CheckpointStore = {
      ...store,
      save: (id, ...more) => (saved.add(id), store.save(id, ...more)),
    }
    const kid = agent({ model: scripted(() => says('helped')), checkpoints })
    const top = agent({
      model: scripted(({ messages }) =>
        messages.at(-1)?.type === 'user'
          ? [calls('kid', {}, { id: 'call_1' }), calls('pay', {}, { id: 'call_2' })]
          : says('done'),
      ),
      tools: [child('kid', kid), effect('pay', done)],
      execution,
    })
    await Promise.all(['Ann', 'Bob'].map((name) => top.generate(name, start)))
    await top.generate('Cid', start)
    await kid.flush()
    expect(saved.size).toBe(3)
    expect(new Set(done).size).toBe(3)
  },
)

/** Asks the model, which runs the tools itself. */
function ownStrategy(): ExecutionStrategy {
  const { stream } = loop()
  return {
    name: 'own',
    stream,
    async execute({ llm, input, state }) {
      const messages = [...state.messages, input]
      const turn = await llm.generate(messages)
      const next = state.withMessages([input, ...turn.messages]).withStep(1)
      return { turn, state: next }
    },
  }
}

describe('a crash inside a sub-agent', () => {
  /** Runs until the tool `ship` has run, then never answers again: the process is dead. */
  function world(checkpoints: CheckpointStore, done: string[], dies: boolean) {
    const never = new Promise<never>(() => {})
    let die = (): void => {}
    const death = new Promise<void>((resolve) => (die = resolve))
    const kid = agent({
      model: scripted(({ messages }, index) => {
        if (messages.length === 1)
          return [calls('pay', {}, { id: 'p' }), calls('ship', {}, { id: 's' })]
        if (dies && index > 0) {
          die()
          return never
        }
        return says('shipped')
      }),
      tools: [effect('pay', done), effect('ship', done)],
      checkpoints,
    })
    const top = agent({
      model: scripted(({ messages }) =>
        messages.length === 1
          ? [calls('book', {}, { id: 'b' }), calls('kid', {}, { id: 'k' })]
          : says('done'),
      ),
      tools: [effect('book', done), child('kid', kid)],
      checkpoints,
      sessionId: 's1',
    })
    return { top, death }
  }

  test('is resumed inside: each effect once, the same keys, one trace, no session left', async () => {
    const checkpoints = memoryCheckpoints({ journal: true })
    const done: string[] = []
    const first = world(checkpoints, done, true)
    void first.top.generate('x', start)
    await first.death
    expect((await checkpoints.list()).sort()).toEqual(['s1', 's1/k'])
    const { top } = world(checkpoints, done, false)
    const { state, turn } = await top.resume(restore(await checkpoints.load('s1')))
    await top.flush()
    expect(done.sort()).toEqual(['book s1:b', 'pay s1/k:p', 'ship s1/k:s'])
    expect(turn.response.text).toBe('done')
    expect(state.subagentTraces).toMatchObject([
      {
        success: true,
        result: 'shipped',
        toolExecutions: [{ toolName: 'pay' }, { toolName: 'ship' }],
      },
    ])
    expect(await checkpoints.list()).toEqual(['s1'])
    const whole = world(memoryCheckpoints(), [], false)
    const { state: expected } = await whole.top.generate('x', start)
    expect(state.run).toEqual({
      ...expected.run,
      revision: state.run!.revision,
      durationMs: state.run!.durationMs,
    })
    expect(state.subagentTraces[0]!.usage).toEqual(expected.subagentTraces[0]!.usage)
  })

  test('a call id that is used again does not continue an old session', async () => {
    const checkpoints = memoryCheckpoints({ journal: true })
    const done: string[] = []
    const first = world(checkpoints, done, true)
    void first.top.generate('x', start)
    await first.death
    const { top } = world(checkpoints, done, false)
    await top.generate('again', start)
    await top.flush()
    expect(done.filter((one) => one.startsWith('pay'))).toHaveLength(2)
    expect(await checkpoints.list()).toEqual(['s1'])
  })

  test('parallel children have sessions of their own', async () => {
    const saved = new Set<string>()
    const store = memoryCheckpoints()
    const checkpoints = {
      ...store,
      save: (id: string, state: never) => (saved.add(id), store.save(id, state)),
    }
    const kid = agent({ model: scripted(() => says('ok')), checkpoints })
    const model = scripted([
      [calls('kid', {}, { id: 'a' }), calls('kid', {}, { id: 'b' })],
      says('x'),
    ])
    const top = agent({ model, tools: [child('kid', kid)], checkpoints, sessionId: 's' })
    await top.generate('x', start)
    await top.flush()
    expect([...saved].sort()).toEqual(['s', 's/a', 's/b'])
    expect(await store.list()).toEqual(['s'])
  })

  test('a session is deleted only after the save with its result', async () => {
    const log: string[] = []
    const store = memoryCheckpoints()
    const checkpoints: CheckpointStore = {
      ...store,
      save: async (id, state) => {
        if (id === 's') await new Promise((resolve) => setTimeout(resolve, 20))
        await store.save(id, state)
        log.push(`save ${id} ${state.subagentTraces?.length ?? 0}`)
      },
      delete: async (id) => (log.push(`delete ${id}`), store.delete(id)),
    }
    const kid = agent({ model: scripted(() => says('ok')), checkpoints })
    const top = agent({
      model: scripted([calls('kid', {}, { id: 'k' }), says('x')]),
      tools: [child('kid', kid)],
      checkpoints,
      sessionId: 's',
    })
    await top.generate('x', start)
    await top.flush()
    expect(log.slice(0, 3)).toEqual(['save s/k 0', 'save s 1', 'delete s/k'])
  })

  test('with a journal the run waits until the session is deleted, so that a crash leaves none', async () => {
    const store = memoryCheckpoints({ journal: true })
    const log: string[] = []
    const checkpoints: CheckpointStore = {
      ...store,
      delete: async (id) => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        await store.delete(id)
        log.push(`deleted ${id}`)
      },
    }
    const kid = agent({ model: scripted(() => says('ok')), checkpoints })
    const top = agent({
      model: scripted(({ messages }) => {
        if (messages.length === 1) return calls('kid', {}, { id: 'k' })
        log.push('asked again')
        return says('x')
      }),
      tools: [child('kid', kid)],
      checkpoints,
      sessionId: 's',
    })
    await top.generate('x', start)
    expect(log.slice(0, 2)).toEqual(['deleted s/k', 'asked again'])
  })

  test('a session that the application has named is kept', async () => {
    const checkpoints = memoryCheckpoints({ journal: true })
    const kid = agent({ model: scripted(() => says('ok')), checkpoints, sessionId: 'mine' })
    const model = scripted([calls('kid'), says('x')])
    const top = agent({ model, tools: [child('kid', kid)], checkpoints, sessionId: 's' })
    await top.generate('x', start)
    await top.flush()
    expect((await checkpoints.list()).sort()).toEqual(['mine', 's'])
  })

  test('without a session, a resumed run has the same keys as before', async () => {
    const done: string[] = []
    const ask = () => defer({ kind: 'approval' as const, request: {} })
    const kid = agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? [calls('a'), calls('b')] : says('ok'),
      ),
      tools: [effect('a', done), effect('b', done, { approval: ask })],
    })
    const model = scripted(({ messages }) => (messages.length === 1 ? calls('kid') : says('ok')))
    const top = agent({ model, tools: [child('kid', kid)] })
    const { state, interrupts } = await top.generate('x', start)
    await top.resume(restore(state), { [interrupts![0]!.id]: { type: 'approve' } })
    const roots = done.map((one) => one.split(' ')[1]!.split(':')[0])
    expect(roots).toHaveLength(2)
    expect(new Set(roots).size).toBe(1)
  })

  test('a save that is still queued is waited for: before a child is resumed, and before its call ends', async () => {
    const store = memoryCheckpoints()
    const slow: CheckpointStore = {
      ...store,
      save: async (id, state) => {
        await new Promise((resolve) => setTimeout(resolve, 30))
        await store.save(id, state)
      },
    }
    const done: string[] = []
    const checkpoints = memoryCheckpoints({ journal: true })
    const controller = new AbortController()
    const family = (isAborted: boolean) => {
      const kid = agent({
        model: scripted(({ messages }) => {
          if (messages.length === 1) return calls('act', {}, { id: 'a' })
          if (!isAborted) return says('ok')
          controller.abort()
          return waits(Infinity)
        }),
        tools: [effect('act', done)],
        checkpoints: slow,
      })
      return agent({
        model: scripted(({ messages }) =>
          messages.length === 1 ? calls('kid', {}, { id: 'k' }) : says('x'),
        ),
        tools: [child('kid', kid)],
        checkpoints,
        sessionId: 's',
      })
    }
    const { signal } = controller
    await expect(family(true).generate('x', start, { signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    const saved: unknown[] = []
    const commit = async (one: StepEffect): Promise<void> => {
      if (one.type === 'call_end') saved.push((await store.load('s/k'))?.messages.length)
    }
    const state = restore(await checkpoints.load('s'))
    const { turn } = await family(false).resume(state, {}, { commit })
    expect([turn.response.text, done]).toEqual(['x', ['act s/k:a']])
    expect(saved).toEqual([4])
  })

  test('a long chain of calls still has a session that a file can be named after', async () => {
    const seen: string[] = []
    let inner: Agent = agent({
      model: scripted([calls('look'), says('ok')]),
      tools: [
        {
          ...effect('look', []),
          run: (_: unknown, c: AgentContext) => void seen.push(c.idempotencyKey),
        },
      ],
    })
    for (let depth = 0; depth < 12; depth++)
      inner = agent({
        model: scripted([calls('kid', {}, { id: `toolu_${'x'.repeat(24)}` }), says('ok')]),
        tools: [child('kid', inner)],
      })
    await inner.generate('x', start)
    expect(encodeURIComponent(seen[0]!).length).toBeLessThan(255)
  })
})

describe('the session of a sub-agent follows from its call', () => {
  /** Runs two calls of sub-agents that each have one effect; returns the sessions, and the keys of the effects. */
  async function sessionsOf(ids: readonly string[], inner?: string) {
    const [sessions, keys]: [Set<string>, string[]] = [new Set(), []]
    const store = memoryCheckpoints()
    const checkpoints: CheckpointStore = {
      ...store,
      save: (sessionId, ...rest) => {
        sessions.add(sessionId)
        return store.save(sessionId, ...rest)
      },
    }
    const worker = (): Agent =>
      agent({
        model: scripted(({ messages }) =>
          messages.length === 1 ? calls('pay', {}, { id: 'p' }) : says('paid'),
        ),
        tools: [effect('pay', keys)],
        checkpoints,
      })
    const manager = agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? calls('worker', {}, { id: inner ?? 'w' }) : says('managed'),
      ),
      tools: [child('worker', worker())],
      checkpoints,
    })
    const names = ['worker', inner === undefined ? 'worker' : 'manager']
    const top = agent({
      model: scripted(({ messages }) =>
        messages.length === 1
          ? ids.map((id, index) => calls(names[index]!, {}, { id }))
          : says('done'),
      ),
      tools: [child('worker', worker()), child('manager', manager)],
      checkpoints,
      sessionId: 's',
    })
    await top.generate('go', start)
    return { sessions: [...sessions].filter((id) => id !== 's'), keys }
  }

  test('two calls never share one, whatever their ids contain', async () => {
    // The worker of the call "a/b", and the worker of the call "b" inside of the call "a".
    const { sessions, keys } = await sessionsOf(['a/b', 'a'], 'b')
    expect(sessions).toHaveLength(3)
    expect(new Set(keys).size).toBe(2)
  })

  test('nor do two calls whose ids are too long for a file name', async () => {
    const { sessions, keys } = await sessionsOf([`${'x'.repeat(300)}1`, `${'x'.repeat(300)}2`])
    expect(sessions).toHaveLength(2)
    expect(new Set(keys).size).toBe(2)
    expect(sessions.every((id) => encodeURIComponent(id).length <= 255)).toBe(true)
  })

  test('an id whose characters become long in a file name is shortened', async () => {
    const { sessions } = await sessionsOf(['語'.repeat(20), '😀'.repeat(15)])
    expect(sessions).toHaveLength(2)
    expect(sessions.every((id) => encodeURIComponent(id).length <= 255)).toBe(true)
  })

  test('a second call of the message does not continue the run of the first in a session that both use', async () => {
    const asked: unknown[] = []
    const kid = agent({
      model: scripted(({ messages }) => {
        asked.push(messages.map(({ text }) => text))
        return says('ok')
      }),
      checkpoints: memoryCheckpoints(),
      sessionId: 'kid',
    })
    const tool = subagent({
      name: 'kid',
      description: 'd',
      parameters,
      agent: kid,
      prompt: ({ n }) => `task ${String(n)}`,
      sequential: true,
    })
    const top = agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? [calls('kid', { n: 1 }), calls('kid', { n: 2 })] : says('done'),
      ),
      tools: [tool],
    })
    await top.generate('go', start)
    expect(asked).toEqual([['task 1'], ['task 2']])
  })
})

test('a sub-agent that waited keeps its id when it goes on', async () => {
  const kid = agent({
    model: scripted([calls('ask'), says('ok')]),
    tools: [
      {
        name: 'ask',
        description: 'd',
        parameters,
        approval: () => defer({ kind: 'approval', request: {} }),
        run: () => 'yes',
      },
    ],
  })
  const top = agent({
    model: scripted([calls('kid', {}, { id: 'k' }), says('done')]),
    tools: [child('kid', kid)],
  })
  const ids = new Set<string>()
  const follow = async (stream: ReturnType<Agent['stream']>): Promise<GenerateResult> => {
    for await (const { uap } of stream)
      if (uap?.type === 'subagent_start' || uap?.type === 'subagent_end')
        ids.add((uap.data as { readonly subagentId: string }).subagentId)
    return stream.result
  }
  const { state, interrupts } = await follow(top.stream('go', start))
  const answers = { [interrupts![0]!.id]: { type: 'approve' as const } }
  const end = await follow(top.resumeStream(restore(state.toJSON()), answers))
  expect(end.turn.response.text).toBe('done')
  expect(end.state.subagentTraces.map(({ subagentId }) => subagentId)).toEqual([...ids])
})

describe('a session of a sub-agent that waits', () => {
  const make = (checkpoints: CheckpointStore, ran: string[]) => {
    const kid = agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? calls('pay', {}, { id: 'p' }) : says('paid'),
      ),
      tools: [effect('pay', ran, { approval: () => defer({ kind: 'approval', request: {} }) })],
      checkpoints,
    })
    return agent({
      model: scripted(({ messages }) =>
        messages.at(-1)!.type === 'user' ? calls('kid', {}, { id: 'k' }) : says('done'),
      ),
      tools: [child('kid', kid)],
      checkpoints,
      sessionId: 's',
    })
  }

  test('is deleted when a new input closes its call', async () => {
    const checkpoints = memoryCheckpoints({ journal: true })
    const top = make(checkpoints, [])
    const { state } = await top.generate('x', start)
    await top.flush()
    const calm = agent({ ...top, model: scripted([says('never mind')]) })
    await calm.generate('forget it', restore(state))
    await calm.flush()
    expect(await checkpoints.list()).toEqual(['s'])
  })

  test('is continued from the newer of its own state and the one in its caller’s', async () => {
    const store = memoryCheckpoints()
    // The process died before the child's last state was written, but after its caller's.
    const late: CheckpointStore = {
      ...store,
      save: async (id, state) => {
        if (!state.suspension) await store.save(id, state)
      },
    }
    const done: string[] = []
    const kid = agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? calls('act') : messages.length === 3 ? calls('pay') : says('paid'),
      ),
      tools: [
        effect('act', done),
        effect('pay', done, { approval: () => defer({ kind: 'approval', request: {} }) }),
      ],
      checkpoints: late,
    })
    const model = scripted(({ messages }) => (messages.length === 1 ? calls('kid') : says('done')))
    const top = agent({ model, tools: [child('kid', kid)], checkpoints: late, sessionId: 's' })
    const result = await top.generate('x', start)
    await top.flush()
    expect(await store.list()).toEqual(['s/call_1'])
    const { turn, interrupts } = await goOn(top, 'generate', result)
    expect([turn.response.text, interrupts, done.length]).toEqual(['done', undefined, 2])
  })

  test('an answer is kept before its call runs, so that nobody is asked twice', async () => {
    const checkpoints = memoryCheckpoints({ journal: true })
    const ran: string[] = []
    const top = make(checkpoints, ran)
    const { interrupts } = await top.generate('x', start)
    await top.flush()
    expect(interrupts).toMatchObject([{ id: 'k/p' }])
    const never = new Promise<never>(() => {})
    let die = (): void => {}
    const death = new Promise<void>((resolve) => (die = resolve))
    const dying: CheckpointStore = {
      ...checkpoints,
      record: () => (die(), never),
    }
    void make(dying, ran).resume(restore(await checkpoints.load('s')), {
      'k/p': { type: 'approve' },
    })
    await death
    expect(ran).toEqual(['pay s/k:p'])
    const saved = restore(await checkpoints.load('s'))
    const { interrupts: again, turn } = await make(checkpoints, ran).resume(saved)
    expect(again).toBeUndefined()
    expect(turn.response.text).toBe('done')
    // The result of the payment was not recorded, so it runs again, under the same key.
    expect(new Set(ran)).toEqual(new Set(['pay s/k:p']))
  })
})

/** Works for ever: a hundred tokens, a cent and a second a step. */
const endless: ScriptFunction = () => [
  calls('work'),
  stops('tool_use', {
    usage: { inputTokens: 60, outputTokens: 40, totalTokens: 100, costUsd: 0.01 },
  }),
]

type Mode = 'generate' | 'stream'
const modes = ['generate', 'stream'] as const

async function go(worker: Agent, mode: Mode, state = start): Promise<GenerateResult> {
  return mode === 'generate' ? worker.generate('x', state) : worker.stream('x', state).result
}

async function goOn(worker: Agent, mode: Mode, { state, interrupts = [] }: GenerateResult) {
  const answers = Object.fromEntries(interrupts.map(({ id }) => [id, { type: 'approve' as const }]))
  return mode === 'generate'
    ? worker.resume(restore(state), answers)
    : worker.resumeStream(restore(state), answers).result
}

describe.each(modes)('one budget for a tree of runs: %s', (mode) => {
  const clock = manualClock(0)
  const work: Tool = { name: 'work', description: 'd', parameters, run: () => clock.advance(1000) }

  function tree(count: number, stopCondition: StopCondition, slow = false) {
    const kids = Array.from({ length: count }, () =>
      scripted((request, index) =>
        slow
          ? [waits(1), ...([endless(request, index)].flat() as never[])]
          : endless(request, index),
      ),
    )
    const tools = kids.map((model, index) =>
      child(`kid${index}`, agent({ model, tools: [work], clock }), { sharesBudget: true }),
    )
    const model = scripted(({ messages }) =>
      messages.length === 1
        ? [
            ...tools.map(({ name }) => calls(name)),
            stops('tool_use', {
              usage: { totalTokens: 100, inputTokens: 60, outputTokens: 40, costUsd: 0 },
            }),
          ]
        : says('done'),
    )
    const top = agent({ model, tools, strategy: { stopCondition }, clock })
    const inferences = () => kids.reduce((sum, { requests }) => sum + requests.length, 0)
    return { top, inferences }
  }

  test.each([1, 3, 8])('%i children use at most the tokens, plus one inference', async (count) => {
    const { top, inferences } = tree(count, maxTokens(2000), true)
    const { state, stopReason } = await go(top, mode)
    expect(stopReason).toBe('stop_condition')
    const used = 100 + inferences() * 100
    expect(used).toBeGreaterThanOrEqual(1900)
    expect(used).toBeLessThanOrEqual(2100)
    expect(state.run!.usage.totalTokens + state.run!.subagentUsage.totalTokens).toBe(used)
  })

  test('children that wait for each other’s reservations use the budget up', async () => {
    const { top, inferences } = tree(8, maxTokens(950), true)
    await go(top, mode)
    expect(inferences()).toBeGreaterThanOrEqual(8)
    expect(inferences()).toBeLessThanOrEqual(9)
  })

  test('cost and steps are shared as well', async () => {
    const cost = tree(8, maxCost(0.15))
    await go(cost.top, mode)
    expect(cost.inferences()).toBeLessThanOrEqual(16)
    const steps = tree(4, maxSteps(9))
    await go(steps.top, mode)
    expect(steps.inferences()).toBe(8)
  })

  test('the steps of a child that has ended still count for its siblings', async () => {
    const short = scripted([calls('work'), calls('work'), says('short')])
    const long = scripted(
      (request, index) => [waits(5), ...[endless(request, index)].flat()] as never,
    )
    const tools = [short, long].map((model, index) =>
      child(`kid${index}`, agent({ model, tools: [work] }), { sharesBudget: true }),
    )
    const top = agent({
      model: scripted([[calls('kid0'), calls('kid1')], says('done')]),
      tools,
      strategy: { stopCondition: maxSteps(6) },
    })
    await go(top, mode)
    expect([short.requests.length, long.requests.length]).toEqual([3, 2])
  })

  test('sub-agents that a hook adds during a run share it too', async () => {
    const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 }
    const model = scripted(() => [calls('work', {}), stops('tool_use', { usage })])
    const kids = [0, 1, 2].map((index) =>
      child(`kid${index}`, agent({ model, tools: [work] }), { sharesBudget: true }),
    )
    const top = agent({
      model: scripted([kids.map(({ name }) => calls(name, {})), says('done')]),
      strategy: { stopCondition: maxTokens(500), onInference: () => ({ tools: kids }) },
    })
    const { state, stopReason } = await go(top, mode)
    const used = state.run!.usage.totalTokens + state.run!.subagentUsage.totalTokens
    expect(stopReason).toBe('stop_condition')
    expect(used).toBeGreaterThanOrEqual(500)
    expect(used).toBeLessThanOrEqual(600)
  })

  test('the tokens of a child that has ended count once for its siblings', async () => {
    const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 }
    const short = scripted([[says('short'), stops('end_turn', { usage })]])
    const long = scripted(
      (request, index) => [waits(5), ...[endless(request, index)].flat()] as never,
    )
    const tools = [short, long].map((model, index) =>
      child(`kid${index}`, agent({ model, tools: [work] }), { sharesBudget: true }),
    )
    const top = agent({
      model: scripted([[calls('kid0'), calls('kid1'), stops('tool_use', { usage })], says('done')]),
      tools,
      strategy: { stopCondition: maxTokens(600) },
    })
    await go(top, mode)
    expect([short.requests.length, long.requests.length]).toEqual([1, 4])
  })

  test('the tokens of a child that waits for an answer count for its siblings too', async () => {
    const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 }
    const asks = scripted([[calls('ask'), stops('tool_use', { usage })]])
    const long = scripted(
      (request, index) => [waits(5), ...[endless(request, index)].flat()] as never,
    )
    const ask: Tool = {
      name: 'ask',
      description: 'd',
      parameters,
      run: () => defer({ kind: 'input', request: 'well?' }),
    }
    const tools = [asks, long].map((model, index) =>
      child(`kid${index}`, agent({ model, tools: [work, ask] }), { sharesBudget: true }),
    )
    const top = agent({
      model: scripted([[calls('kid0'), calls('kid1'), stops('tool_use', { usage })], says('done')]),
      tools,
      strategy: { stopCondition: maxTokens(600) },
    })
    await go(top, mode)
    expect([asks.requests.length, long.requests.length]).toEqual([1, 4])
  })

  test('a child waits for the reservations of others instead of giving up', async () => {
    const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 }
    const models = [1, 2, 3].map(() =>
      scripted(({ messages }) =>
        messages.length === 1
          ? [waits(5), calls('work'), stops('tool_use', { usage })]
          : [waits(5), says('found'), stops('end_turn', { usage })],
      ),
    )
    const tools = models.map((model, index) =>
      child(`kid${index}`, agent({ model, tools: [work] }), { sharesBudget: true }),
    )
    const top = agent({
      model: scripted([[...tools.map(({ name }) => calls(name)), stops('tool_use', { usage })]]),
      tools,
      strategy: { stopCondition: maxTokens(650) },
    })
    const { state } = await go(top, mode)
    expect(models.map(({ requests }) => requests.length)).toEqual([2, 2, 2])
    // The last inference has used the budget up, so that the child which made it was stopped after it.
    expect(state.run!.subagentUsage.totalTokens).toBe(600)
  })

  test('steps of a child that does not share the budget do not count for its siblings', async () => {
    const other = scripted((_, index) => (index < 9 ? calls('work') : says('end')))
    const shared = scripted(
      (request, index) => [waits(5), ...[endless(request, index)].flat()] as never,
    )
    const top = agent({
      model: scripted([[calls('other'), calls('shared')], says('done')]),
      tools: [
        child(
          'other',
          agent({
            model: other,
            tools: [{ ...work, run: () => new Promise((r) => setTimeout(r, 8)) }],
          }),
        ),
        child('shared', agent({ model: shared, tools: [work] }), { sharesBudget: true }),
      ],
      strategy: { stopCondition: maxSteps(5) },
    })
    await go(top, mode)
    expect(shared.requests).toHaveLength(4)
  })

  test('what a child used before each answer counts once', async () => {
    const kid = scripted(endless)
    const tool = { ...work, approval: () => defer({ kind: 'approval' as const, request: {} }) }
    const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 }
    const top = agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? [calls('kid'), stops('tool_use', { usage })] : says('done'),
      ),
      tools: [child('kid', agent({ model: kid, tools: [tool] }), { sharesBudget: true })],
      strategy: { stopCondition: maxTokens(1000) },
    })
    let result = await go(top, mode)
    for (let answers = 0; answers < 20 && result.interrupts; answers++)
      result = await goOn(top, mode, result)
    expect([result.stopReason, kid.requests.length]).toEqual(['stop_condition', 9])
    expect(result.state.subagentTraces).toMatchObject([
      { success: false, usage: { totalTokens: 900 }, toolExecutions: { length: 9 } },
    ])
  })

  test('a child that does not share it is not stopped, but counted', async () => {
    const kid = agent({
      model: scripted([calls('work'), calls('work'), says('ok')]),
      tools: [work],
    })
    const totals: number[] = []
    const top = agent({
      model: scripted([calls('kid'), says('done')]),
      tools: [child('kid', kid)],
      strategy: {
        stopCondition: (_, { usage, steps }) => (totals.push(usage.totalTokens, steps), false),
      },
    })
    const { state } = await go(top, mode)
    expect(state.run!.subagentSteps).toBe(0)
    expect(totals[1]).toBe(1)
    expect(totals[0]).toBeGreaterThan(state.subagentTraces[0]!.usage!.totalTokens)
  })

  function asking(stopCondition: StopCondition) {
    const model = scripted(endless)
    const tool = { ...work, approval: () => defer({ kind: 'approval', request: {} }) }
    return { model, worker: agent({ model, tools: [tool], strategy: { stopCondition }, clock }) }
  }

  test.each([
    ['steps', maxSteps(3), 3],
    ['tokens', maxTokens(400), 4],
    ['cost', maxCost(0.05), 5],
    ['time', maxTime(2000), 2],
  ] as const)('a limit of %s goes on counting after each answer', async (_, condition, count) => {
    const { model, worker } = asking(condition)
    let result = await go(worker, mode)
    for (let answers = 0; answers < 12 && result.interrupts; answers++) {
      clock.advance(60_000) // a person takes a while; that is not the run's time
      result = await goOn(worker, mode, result)
    }
    expect(result.stopReason).toBe('stop_condition')
    expect(model.requests).toHaveLength(count)
  })

  test('a limit of iterations too; a new input starts anew', async () => {
    const model = scripted(endless)
    const tool = { ...work, approval: () => defer({ kind: 'approval', request: {} }) }
    const worker = agent({ model, tools: [tool], execution: loop({ maxIterations: 2 }) })
    let result = await go(worker, mode)
    for (let answers = 0; answers < 5 && result.interrupts; answers++)
      result = await goOn(worker, mode, result)
    expect([result.stopReason, model.requests.length]).toEqual(['max_iterations', 2])
    const { state } = await go(worker, mode, result.state)
    expect(state.run!.steps).toBe(1)
  })
})

describe('a sub-agent that is cut by a limit', () => {
  test.each(modes)('is no success, and the caller’s model is told: %s', async (mode) => {
    const kid = agent({
      model: scripted(() => [says('partial finding'), calls('work')]),
      tools: [effect('work', [])],
      execution: loop({ maxIterations: 2 }),
    })
    const model = scripted([calls('kid'), says('done')])
    const { state, turn } = await go(agent({ model, tools: [child('kid', kid)] }), mode)
    expect(state.subagentTraces).toMatchObject([
      {
        success: false,
        result: 'partial finding',
        error: expect.stringContaining('max_iterations'),
      },
    ])
    const told =
      'The sub-agent "kid" was stopped by a limit (max_iterations) before it had finished. Its last words: partial finding'
    expect(turn.toolExecutions).toMatchObject([{ isError: true, result: told }])
    expect(JSON.stringify(model.requests[1]!.messages.at(-1))).toContain('stopped by a limit')
  })
})

test('a reader that pauses stops sub-agents at every depth', async () => {
  const model = scripted((_, index) => (index < 300 ? calls('work') : says('end')))
  const leaf = agent({ model, tools: [effect('work', [])] })
  const middle = agent({
    model: scripted([calls('leaf'), says('ok')]),
    tools: [child('leaf', leaf)],
  })
  const top = agent({
    model: scripted([calls('middle'), says('ok')]),
    tools: [child('middle', middle)],
  })
  let count = 0
  for await (const _ of top.stream('x', start)) {
    if (++count !== 12) continue
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(model.requests.length).toBeLessThan(20)
  }
  expect(model.requests).toHaveLength(301)
})

describe('an agent that a tool runs bare', () => {
  const kid = () =>
    agent({
      model: scripted(() => calls('pay')),
      tools: [effect('pay', [], { approval: () => defer({ kind: 'approval', request: {} }) })],
    })

  test.each(modes)('fails if a call of it waits: %s', async (mode) => {
    const byHand: Tool = {
      name: 'hand',
      description: 'd',
      parameters,
      run: async () => {
        await new Promise((resolve) => setTimeout(resolve, 1))
        return (await go(kid(), mode)).turn.response.text
      },
    }
    const { turn } = await agent({
      model: scripted([calls('hand'), says('ok')]),
      tools: [byHand],
    }).generate('x', start)
    expect(turn.toolExecutions).toMatchObject([
      { isError: true, result: expect.stringContaining('waits for an answer') },
    ])
  })

  test('work that a tool left behind is not inside it any more', async () => {
    let late: Promise<GenerateResult> | undefined
    const byHand: Tool = {
      name: 'hand',
      description: 'd',
      parameters,
      run: () => {
        late = new Promise((resolve) => setTimeout(resolve, 20)).then(() =>
          kid().generate('x', start),
        )
      },
    }
    await agent({ model: scripted([calls('hand'), says('ok')]), tools: [byHand] }).generate(
      'x',
      start,
    )
    expect((await late!).interrupts).toHaveLength(1)
  })
})

describe('a model that has only what UPP names', () => {
  const usage = {
    inputTokens: 1,
    outputTokens: 1,
    totalTokens: 2,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  }

  test.each(modes)('works, and the calls that it ran are reported: %s', async (mode) => {
    const asked = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'look', arguments: {} }])
    const response = new AssistantMessage('seen')
    const execution = {
      toolName: 'look',
      toolCallId: 'c',
      arguments: {},
      result: 1,
      isError: false,
      duration: 0,
    }
    const result = new ToolResultMessage([{ toolCallId: 'c', result: 1 }])
    const turn = {
      messages: [asked, result, response],
      response,
      toolExecutions: [execution],
      usage,
      cycles: 2,
    } as unknown as Turn
    const opaque = {
      generate: async () => turn,
      stream: () => ({
        async *[Symbol.asyncIterator]() {},
        turn: Promise.resolve(turn),
        abort() {},
      }),
    } as unknown as LLMInstance
    const execute: ExecutionStrategy = {
      name: 'swapped',
      execute: (context) => loop().execute({ ...context, llm: opaque }),
      stream: (context) => loop().stream({ ...context, llm: opaque }),
    }
    const seen: unknown[] = []
    const worker = agent({
      model: scripted([]),
      execution: execute,
      strategy: {
        onAct: (_, actions) => void seen.push(actions.map(({ toolCallId }) => toolCallId)),
        onObserve: (_, observations) => void seen.push(observations.map((one) => one.result)),
      },
    })
    const events: string[] = []
    let out: GenerateResult
    if (mode === 'stream') {
      const stream = worker.stream('x', start)
      for await (const { uap } of stream) events.push(uap?.type ?? 'upp')
      out = await stream.result
      expect(events).toEqual(['step_start', 'action', 'observation', 'step_end'])
    } else out = await worker.generate('x', start)
    expect(seen).toEqual([['c'], [1]])
    expect(out.turn).toMatchObject({
      cycles: 1,
      usage: { totalTokens: 2 },
      warnings: [],
      sources: [],
      openCalls: [],
    })
    expect(out.state.run!.usage.totalTokens).toBe(2)
  })
})

test('an endless run over a model in memory lets timers fire', async () => {
  const worker = agent({ model: scripted(() => calls('work')), tools: [effect('work', [])] })
  await expect(
    worker.generate('x', start, { signal: AbortSignal.timeout(60) }),
  ).rejects.toMatchObject({ code: 'CANCELLED' })
})

test.each(modes)('aborting a wrapped strategy keeps what it has produced: %s', async (mode) => {
  const wrapped: ExecutionStrategy = {
    name: 'wrapped',
    execute: (context) => loop().execute(context),
    stream: (context) => loop().stream(context),
  }
  const controller = new AbortController()
  const model = scripted([calls('work'), () => (controller.abort(), [waits(Infinity)])])
  const worker = agent({ model, tools: [effect('work', [])], execution: wrapped })
  const { signal } = controller
  const error = await (
    mode === 'generate'
      ? worker.generate('x', start, { signal })
      : worker.stream('x', start, { signal }).result
  ).catch((failure: unknown) => failure)
  expect(error).toMatchObject({
    code: 'CANCELLED',
    turn: { toolExecutions: [{ toolName: 'work' }] },
  })
})

describe('under a strategy of one’s own', () => {
  const own = (isOver: () => void = () => {}): ExecutionStrategy => ({
    name: 'own',
    execute: async ({ llm, input, state }) => {
      const turn = await llm.generate(state.messages, input)
      isOver()
      return { turn, state: state.withMessages(turn.messages).withStep(3) }
    },
    stream(context) {
      const result = this.execute(context)
      result.catch(() => {})
      return {
        result,
        abort: () => {},
        async *[Symbol.asyncIterator]() {
          await result
          yield* [] // its events are those of its sub-agents
        },
      }
    },
  })

  test('UAP-111 UAP-113 events of a sub-agent name the agent that called it', async () => {
    const parent = agent({
      model: scripted([calls('kid', {}, { id: 'k' }), says('ok')]),
      tools: [child('kid', agent({ model: scripted([says('hi')]) }))],
      execution: own(),
    })
    const stream = parent.stream('x', start.withStep(2))
    const seen: unknown[] = []
    for await (const { uap } of stream)
      if (uap?.type === 'subagent_start' || uap?.type === 'subagent_end')
        seen.push([uap.type, uap.agentId, uap.step, uap.data.parentToolCallId])
    expect(seen).toEqual([
      ['subagent_start', parent.id, 2, 'k'],
      ['subagent_end', parent.id, 2, 'k'],
    ])
    expect((await stream.result).state.subagentTraces).toHaveLength(1)
  })

  test('UAP-151 leaving its stream aborts the run, unless its last step has ended', async () => {
    for (const stopReason of [undefined, 'complete'] as const) {
      let signal: AbortSignal | undefined
      let end: () => void = () => {}
      const strategy: ExecutionStrategy = {
        name: 'slow',
        execute: () => Promise.reject(new Error('not streamed')),
        stream: (context) => {
          signal = context.signal
          const turn = { messages: [] } as unknown as Turn
          const result = new Promise<GenerateResult>((resolve) => {
            end = () => resolve({ turn, state: context.state })
          })
          return {
            result,
            abort: () => {},
            async *[Symbol.asyncIterator]() {
              const data = { usage: {} as never, ...(stopReason && { stopReason }) }
              yield {
                source: 'uap',
                uap: { type: 'step_end', step: 1, agentId: 'a', data },
              } as const
              await result
            },
          }
        },
      }
      const run = agent({ model: scripted([]), execution: strategy }).stream('x', start)
      for await (const { uap } of run) {
        expect(uap?.type).toBe('step_end')
        end()
        break
      }
      if (stopReason) await expect(run.result).resolves.toMatchObject({ state: start })
      else await expect(run.result).rejects.toMatchObject({ code: 'CANCELLED' })
      expect(signal?.aborted).toBe(stopReason === undefined)
    }
  })
})

test('flush waits until the sessions of sub-agents that have ended are deleted', async () => {
  const store = memoryCheckpoints()
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => (release = resolve))
  const slow: CheckpointStore = {
    ...store,
    delete: async (sessionId) => {
      await gate
      await store.delete(sessionId)
    },
  }
  const kid = agent({ model: scripted([says('hi')]), checkpoints: slow })
  const parent = agent({
    model: scripted([calls('kid'), says('ok')]),
    tools: [child('kid', kid)],
    checkpoints: memoryCheckpoints(),
  })
  await parent.generate('x', start)
  expect(await store.list()).toHaveLength(1)
  let isFlushed = false
  const flushed = parent.flush().then(() => (isFlushed = true))
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(isFlushed).toBe(false)
  release()
  await flushed
  expect(await store.list()).toEqual([])
})

test('UAP-125 the journal entry of a sub-agent’s call has its trace, and that of another call has none', async () => {
  const effects: [string, unknown][] = []
  const parent = agent({
    model: scripted([[calls('kid', {}, { id: 'k' }), calls('plain', {}, { id: 'p' })], says('ok')]),
    tools: [
      child('kid', agent({ model: scripted([says('hi')]) })),
      { name: 'plain', description: 'd', parameters, run: () => 'x' },
    ],
  })
  const commit = (effect: StepEffect): void => {
    if (effect.type === 'call_end')
      effects.push([effect.call.toolCallId, effect.traces?.map((one) => one.parentToolCallId)])
  }
  await parent.generate('x', start, { commit })
  expect(new Map(effects)).toEqual(
    new Map<string, unknown>([
      ['k', ['k']],
      ['p', undefined],
    ]),
  )
})

test('UAP-047 UAP-027 a query has a session only with a store, and then a new one each time', async () => {
  const seen: unknown[] = []
  const strategy = {
    onComplete: ({ state }: GenerateResult) => void seen.push(state.metadata['sessionId']),
  }
  const model = scripted(() => says('hi'))
  await agent({ model, strategy }).query('x')
  expect(seen).toEqual([undefined])
  const store = memoryCheckpoints()
  const saving = agent({ model, strategy, checkpoints: store })
  await saving.query('x')
  await saving.query('x')
  await saving.flush()
  expect(seen[1]).toBeTypeOf('string')
  expect(seen[1]).not.toBe(seen[2])
  expect((await store.list()).toSorted()).toEqual(seen.slice(1).toSorted())
})

test('two questions inside one sub-agent are answered together, each with its own answer', async () => {
  const got: unknown[] = []
  const ask: Tool = {
    name: 'ask',
    description: 'd',
    parameters,
    run: (_: unknown, { answer, toolCallId }: AgentContext) => {
      if (!answer) return defer({ kind: 'approval', request: toolCallId })
      got.push([toolCallId, answer])
      return 'asked'
    },
  }
  for (const journal of [false, true]) {
    got.length = 0
    const kid = agent({
      model: scripted([[calls('ask', {}, { id: 'a' }), calls('ask', {}, { id: 'b' })], says('hi')]),
      tools: [ask],
    })
    const parent = agent({
      model: scripted([calls('kid', {}, { id: 'k' }), says('ok')]),
      tools: [child('kid', kid)],
      checkpoints: memoryCheckpoints({ journal }),
    })
    const { state, interrupts } = await parent.generate('x', start)
    expect(interrupts?.map(({ id, path }) => [id, path])).toEqual([
      ['k/a', ['kid']],
      ['k/b', ['kid']],
    ])
    const { turn, stopReason } = await parent.resume(restore(state), {
      'k/a': { type: 'approve' },
      'k/b': { type: 'deny', reason: 'not this' },
    })
    expect(got).toEqual([['a', { type: 'approve' }]])
    expect(stopReason).toBe('complete')
    expect(turn.toolExecutions).toMatchObject([{ toolCallId: 'k', result: 'hi', isError: false }])
  }
})

test('UAP-112 UAP-115 a sub-agent that a tool left open has one end, with its own id, when the run ends', async () => {
  const open: Tool = {
    name: 'open',
    description: 'd',
    parameters,
    run: async (_: unknown, { onSubagentEvent, toolCallId }: AgentContext) => {
      await onSubagentEvent?.({
        type: 'subagent_start',
        subagentId: 'mine',
        subagentType: 'hand-written',
        parentToolCallId: toolCallId,
        prompt: 'go',
        timestamp: 5,
      })
      return 'left'
    },
  }
  const run = agent({
    model: scripted([calls('open', {}, { id: 'o' }), says('ok')]),
    tools: [open],
  }).stream('x', start)
  const ends: unknown[] = []
  for await (const { uap } of run) if (uap?.type === 'subagent_end') ends.push(uap.data)
  const identity = { subagentId: 'mine', subagentType: 'hand-written', parentToolCallId: 'o' }
  expect(ends).toMatchObject([{ ...identity, success: false, error: 'The call ended.' }])
  const { state } = await run.result
  expect(state.subagentTraces).toMatchObject([
    { ...identity, prompt: 'go', startTime: 5, success: false },
  ])
})

test('every effect that is committed has the step and the state it belongs to', async () => {
  const seen: unknown[] = []
  const worker = agent({
    model: scripted([calls('plain', {}, { id: 'p' }), says('ok')]),
    tools: [{ name: 'plain', description: 'd', parameters, run: () => 'x' }],
  })
  const commit = (effect: StepEffect): void => {
    const count = 'state' in effect ? effect.state.messages.length : effect.call.toolCallId
    seen.push([effect.type, effect.step, count])
  }
  await worker.generate('x', start, { commit })
  expect(seen).toEqual([
    ['inference_start', 1, 1],
    ['inference_end', 1, 2],
    ['call_start', 1, 'p'],
    ['call_end', 1, 'p'],
    ['inference_start', 2, 3],
    ['inference_end', 2, 4],
  ])
})

test('the settings of the tool are those that were given', () => {
  const approval = () => true
  const settings = {
    metadata: { acme: { a: 1 } },
    risk: 'write_high_risk' as const,
    sequential: true,
    dependsOn: ['other'],
    timeoutMs: 50,
  }
  const made = subagent({
    name: 'kid',
    description: 'd',
    parameters,
    agent: agent({ model: scripted([]) }),
    prompt: () => 'go',
    approval,
    ...settings,
  })
  expect(made).toMatchObject({ name: 'kid', description: 'd', ...settings })
  expect(made.approval).toBeTypeOf('function')
})

test('UAP-116 UAP-123 sub-agents of a hand-written sub-agent are read from the events it passes on', async () => {
  const usage = (totalTokens: number) => ({
    inputTokens: 0,
    outputTokens: totalTokens,
    totalTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  })
  const relaying: Tool = {
    name: 'relay',
    description: 'd',
    parameters,
    run: async (_: unknown, { onSubagentEvent: tell, toolCallId, agentId }: AgentContext) => {
      const own = { subagentId: 'outer', subagentType: 'relay', parentToolCallId: toolCallId }
      const inner = { subagentId: 'inner', subagentType: 'deep', parentToolCallId: 'x' }
      const pass = (type: 'subagent_start' | 'subagent_end', data: object) =>
        tell?.({
          type: 'subagent_event',
          ...own,
          innerEvent: { source: 'uap', uap: { type, step: 1, agentId, data } } as never,
        })
      await tell?.({ type: 'subagent_start', ...own, prompt: 'go', timestamp: 1 })
      await pass('subagent_start', { ...inner, prompt: 'deeper', timestamp: 2 })
      await pass('subagent_end', {
        ...inner,
        success: true,
        result: 'found',
        timestamp: 3,
        usage: usage(5),
      })
      await tell?.({
        type: 'subagent_end',
        ...own,
        success: true,
        result: 'done',
        timestamp: 4,
        usage: usage(7),
        toolExecutions: [
          { toolName: 'a', toolCallId: 'b', arguments: {}, result: { n: 1 }, isError: false, duration: 2 }, // prettier-ignore
        ],
      })
      return 'ok'
    },
  }
  const { state } = await agent({
    model: scripted([calls('relay', {}, { id: 'r' }), says('ok')]),
    tools: [relaying],
  }).generate('x', start)
  expect(state.subagentTraces).toEqual([
    {
      subagentId: 'outer',
      subagentType: 'relay',
      parentToolCallId: 'r',
      prompt: 'go',
      startTime: 1,
      endTime: 4,
      success: true,
      result: 'done',
      usage: usage(7),
      toolExecutions: [
        { toolName: 'a', toolCallId: 'b', arguments: {}, result: '{"n":1}', isError: false, duration: 2 }, // prettier-ignore
      ],
      children: [
        {
          subagentId: 'inner',
          subagentType: 'deep',
          parentToolCallId: 'x',
          prompt: 'deeper',
          startTime: 2,
          endTime: 3,
          success: true,
          result: 'found',
          usage: usage(5),
        },
      ],
    },
  ])
  expect(state.run?.subagentUsage.totalTokens).toBe(12)
})

test('of two calls, one answered and one waiting, the turn and the state say which is open', async () => {
  const worker = agent({
    model: scripted([
      [
        calls('fine', {}, { id: 'f' }),
        calls('bad', {}, { id: 'b' }),
        calls('wait', {}, { id: 'w' }),
      ],
      says('done'),
    ]),
    tools: [
      { name: 'fine', description: 'd', parameters, run: () => ({ n: 1 }) },
      { name: 'bad', description: 'd', parameters, run: () => Promise.reject(new Error('no')) },
      { name: 'wait', description: 'd', parameters, run: () => defer({ kind: 'input', request: 1 }) }, // prettier-ignore
    ],
  })
  const { turn, state, interrupts } = await worker.generate('x', start)
  expect(turn.openCalls).toEqual([{ toolCallId: 'w', request: { kind: 'input', request: 1 } }])
  expect(turn.toolExecutions.map(({ toolCallId }) => toolCallId)).toEqual(['f', 'b'])
  expect(interrupts?.map(({ id }) => id)).toEqual(['w'])
  const resumed = await worker.resume(restore(state), { w: { type: 'result', value: 'told' } })
  expect(resumed.turn.toolExecutions.map(({ toolCallId }) => toolCallId)).toEqual(['w'])
  expect(resumed.state.messages.find(({ type }) => type === 'tool_result')).toMatchObject({
    results: [
      { toolCallId: 'f', result: { n: 1 } },
      { toolCallId: 'b', result: 'no', isError: true },
      { toolCallId: 'w', result: 'told' },
    ],
  })
  expect(resumed.state.suspension).toBeUndefined()
})
