import { describe, expect, test } from 'vitest'
import { calls, says, waits } from '@skein/ai/testing'
import {
  defineHook,
  defineTool,
  type AgentDefinition,
  type PromptDefinition,
  type RuntimeEvent,
} from '@skein/runtime'
import { child, linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

type Tools = NonNullable<PromptDefinition['tools']>

function boss(script: SideSetup['script'], tools: Tools): AgentDefinition {
  return solo('boss', { script, tools })
}

test('SA-01 SA-18 the same dual_ai agent runs by itself and as the child of a tool call', async () => {
  const helper = child('helper')
  const top = boss([calls('helper', { message: 'go' }), says('Thanks.')], [helper])
  const it = await simulate({ agents: [top, helper] })

  const alone = await it.create({ agent: 'helper' })
  expect(await it.run(alone, 'go')).toMatchObject({
    outcome: 'completed',
    reason: 'session_stop',
    text: 'helper is done',
  })
  const { id, text } = await it.ask('please')
  expect(text).toBe('Thanks.')
  const [made] = await it.events(id, 'subagent_created')
  const heard = (await it.threads.messages(made!.reference)).map(({ message }) => message.type)
  expect(heard).toEqual((await it.threads.messages(alone)).map(({ message }) => message.type))
  // The child was asked word for word what the agent by itself was asked.
  expect(linesOf(requestsOf(helper)[1])).toEqual(linesOf(requestsOf(helper)[0]))
})

test('SA-31 the parent receives the mapped field of the stop or fail call, not what the tool answered', async () => {
  const good = child('good')
  const bad = pair('bad', {
    a: {
      script: [calls('give_up', { why: 'no paper' })],
      tools: [tool('give_up', () => 'the tool says this')],
      sessionFail: { name: 'give_up', messageProperty: 'why' },
    },
    b: { script: [] },
  })
  const top = boss(
    [calls('good', { message: 'go' }), calls('bad', { message: 'go' }), says('I see.')],
    [good, bad],
  )
  const it = await simulate({ agents: [top] })
  await it.ask('please')
  const told = linesOf(requestsOf(top)[2])
  expect(told).toContain('tool_result: good = "good is done"')
  expect(told).toContain('tool_result: bad ! no paper')
  expect(told.join('\n')).not.toContain('the tool says this')
})

test('SA-36 SA-38 an exposed dual_ai agent in the tool list becomes a child thread when it is called', async () => {
  const helper = child('helper')
  const top = boss([calls('helper', { message: 'go' }), says('Thanks.')], [helper])
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('please')
  const [offered] = requestsOf(top)[0]!.tools
  expect(offered).toMatchObject({ name: 'helper', description: 'Two who do helper.' })
  const [made] = await it.events(id, 'subagent_created')
  expect(await it.threads.get(made!.reference)).toMatchObject({
    agent: 'helper',
    parentId: id,
    rootId: id,
  })
  expect((await it.threads.get(id)).agent).toBe('boss')
})

test('SA-38 an agent that the prompt does not list cannot be called', async () => {
  const helper = child('helper')
  const top = boss([calls('helper', { message: 'go' }), says('Then not.')], [])
  const it = await simulate({ agents: [top, helper] })
  const { id, text } = await it.ask('please')
  expect(text).toBe('Then not.')
  expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: helper ! /)
  expect(await it.events(id, 'subagent_created')).toEqual([])
  expect(requestsOf(helper)).toEqual([])
})

test('SA-39 a child has messages, files and ids of its own', async () => {
  const seen: unknown[] = []
  const look = tool('look', async (state) => {
    seen.push(state.statFile('/plan.txt'), state.listFiles(), state.getMessages().length)
    seen.push(state.getValue('colour'))
    await expect(state.readFile('/plan.txt')).rejects.toThrow('/plan.txt')
    await state.writeFile('/own.txt', 'mine')
    return 'looked'
  })
  const helper = child('helper', {
    script: [calls('look'), calls('finish', { summary: 'done' })],
    tools: [look],
  })
  const write = tool('write', async (state) => {
    await state.writeFile('/plan.txt', 'the plan')
    state.setValue('colour', 'red')
  })
  const top = boss(
    [calls('write'), calls('helper', { message: 'go' }), says('Thanks.')],
    [write, helper],
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('please')
  expect(seen).toEqual([undefined, [], 2, undefined])
  const [made] = await it.events(id, 'subagent_created')
  const reference = made!.reference
  expect((await it.threads.files.list(id)).map(({ path }) => path)).toEqual(['/plan.txt'])
  expect((await it.threads.files.list(reference)).map(({ path }) => path)).toEqual(['/own.txt'])
  const query = { includeSilent: true } as const
  const ids = new Set((await it.threads.messages(id, query)).map((message) => message.id))
  const own = (await it.threads.messages(reference, query)).map((message) => message.id)
  expect(own.length).toBeGreaterThan(0)
  expect(own.filter((one) => ids.has(one))).toEqual([])
})

test('SA-40 child and parent know each other: getParentThread, children', async () => {
  const parents: unknown[] = []
  const children: unknown[] = []
  const who = tool('who', (state) => void parents.push(state.getParentThread()))
  const see = tool('see', (state) => void children.push(state.children))
  const started = latch()
  const go = latch()
  const helper = child('helper', {
    script: [
      async () => {
        started.open()
        await go.reached
        return calls('who')
      },
      calls('finish', { summary: 'done' }),
    ],
    tools: [who],
  })
  const top = boss(
    [
      calls('helper', { message: 'go' }),
      async () => {
        await started.reached
        return calls('see')
      },
      calls('who'),
      says('Good.'),
      says('Fine.'),
    ],
    [who, see, { name: helper, blocking: false }],
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('please')
  const [made] = await it.events(id, 'subagent_created')
  expect(children).toEqual([
    [expect.objectContaining({ reference: made!.reference, name: 'helper' })],
  ])
  go.open()
  await it.idle()
  expect(parents).toEqual([null, { threadId: id }])
  expect(await it.threads.children(id)).toEqual([])
})

describe('limits, stops and ends of a tree', () => {
  test('a blocking child that runs into a limit is a tool error with the reason', async () => {
    const endless = pair(
      'endless',
      { a: { script: () => says('ping') }, b: { script: () => says('pong') } },
      { maxSessionTurns: 4 },
    )
    const top = boss([calls('endless', { message: 'go' }), says('Oh.')], [endless])
    const it = await simulate({ agents: [top] })
    const { text } = await it.ask('please')
    expect(text).toBe('Oh.')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(
      /^tool_result: endless ! .*4 turns.*\(reason: max_session_turns\)$/,
    )
  })

  /** Root, middle and leaf; the leaf's model waits until it is aborted. */
  function threeLevels(): { agents: AgentDefinition[]; leafRuns: Promise<void> } {
    const runs = latch()
    const leaf = child('leaf', {
      script: () => {
        runs.open()
        return [waits(Infinity)]
      },
    })
    const middle = child('middle', { script: [calls('leaf', { message: 'go' })], tools: [leaf] })
    const root = boss([calls('middle', { message: 'go' }), says('never')], [middle])
    return { agents: [root, middle, leaf], leafRuns: runs.reached }
  }

  test('terminate reaches three levels, leaves no session open, and is in each registry', async () => {
    const { agents, leafRuns } = threeLevels()
    const it = await simulate({ agents })
    const id = await it.create({ message: 'go' })
    await leafRuns
    await it.threads.terminate(id)
    await it.idle()
    const tree = await it.threads.list({ rootId: id })
    expect(tree.map(({ agent, lifecycle }) => `${agent} ${lifecycle}`).toSorted()).toEqual([
      'boss terminated',
      'leaf terminated',
      'middle terminated',
    ])
    for (const head of tree) {
      expect(await it.events(head.id, 'session_end')).toMatchObject([{ outcome: 'terminated' }])
      for (const ended of await it.events(head.id, 'subagent_ended'))
        expect(ended.outcome).toBe('terminated')
    }
    await expect(it.threads.send(id, 'hello?')).rejects.toMatchObject({ code: 'THREAD_TERMINATED' })
  })

  test('terminate with detach leaves the children alone', async () => {
    const { agents, leafRuns } = threeLevels()
    const it = await simulate({ agents })
    const id = await it.create({ message: 'go' })
    await leafRuns
    await it.threads.terminate(id, { detach: true })
    const tree = await it.threads.list({ rootId: id })
    const lifecycles = Object.fromEntries(tree.map(({ agent, lifecycle }) => [agent, lifecycle]))
    expect(lifecycles).toMatchObject({ boss: 'terminated', leaf: 'running' })
    expect(lifecycles['middle']).not.toBe('terminated')
  })

  test('a child that is created while its parent is terminated does not escape', async () => {
    const helper = child('helper', { script: () => [waits(Infinity)] })
    const top = boss(() => calls('helper', { message: 'go' }), [helper])
    const it = await simulate({ agents: [top] })
    // The parent ends just before the commit that would have created the child, just after it, or earlier.
    const places = [
      ['call_start', 'before', 0],
      ['call_waits', 'before', 0],
      ['call_waits', 'after', 1],
    ] as const
    for (const [point, when, children] of places) {
      const id = await it.create()
      const commit = it.store.commit.bind(it.store)
      const ended = latch()
      it.store.commit = async (change) => {
        const isPlace = change.point.split('+').includes(point) && change.threads[0]?.id === id
        const end = async () => {
          void it.threads.terminate(id)
          await ended.reached
        }
        if (isPlace && when === 'before') await end()
        const result = await commit(change)
        if (isPlace && when === 'after') await end()
        if (change.point === 'terminate_thread') ended.open()
        return result
      }
      await it.send(id, 'go')
      await ended.reached
      await it.idle()
      it.store.commit = commit
      const tree = await it.threads.list({ rootId: id })
      expect(tree.map(({ lifecycle }) => lifecycle)).toEqual(tree.map(() => 'terminated'))
      expect(tree).toHaveLength(1 + children)
    }
  })

  test('a child whose parent has ended keeps its result, marked as undelivered', async () => {
    const started = latch()
    const go = latch()
    const helper = child('helper', {
      script: [
        async () => {
          started.open()
          await go.reached
          return calls('finish', { summary: 'too late' })
        },
      ],
    })
    const top = boss([calls('helper', { message: 'go' }), says('never')], [helper])
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'go' })
    await started.reached
    await it.threads.terminate(id, { detach: true })
    const before = (await it.threads.events(id)).length
    go.open()
    await it.idle()
    const [made] = await it.events(id, 'subagent_created')
    expect(await it.events(made!.reference, 'session_end')).toMatchObject([
      { outcome: 'completed', message: 'too late', isUndelivered: true },
    ])
    expect((await it.threads.events(id)).length).toBe(before)
  })

  const isEnd = ({ type }: RuntimeEvent): boolean => type === 'thread_terminated'

  test('terminating a blocking child answers the call that waits, before and after it began', async () => {
    const started = latch()
    const helper = child('helper', {
      script: () => {
        started.open()
        return [waits(Infinity)]
      },
    })
    const top = boss(
      ({ messages }) =>
        messages.at(-1)?.type === 'user' ? calls('helper', { message: 'go' }) : says('Gone.'),
      [helper],
    )
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'go' })
    await started.reached
    const [first] = await it.events(id, 'subagent_created')
    await it.threads.terminate(first!.reference)
    expect((await it.threads.settled(id)).text).toBe('Gone.')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: helper ! .*terminated/)

    const asked = requestsOf(helper).length
    const { commit, claim } = { commit: it.store.commit, claim: it.store.claim }
    const over = latch()
    let second: string | undefined
    it.store.commit = async (change) => {
      const result = await commit.call(it.store, change)
      if (change.point.split('+').includes('call_waits')) {
        second = change.threads[1]!.id
        void it.threads.terminate(second)
      }
      if (
        change.threads.some(({ id: ended, append = [] }) => ended === second && append.some(isEnd))
      )
        over.open()
      return result
    }
    // The child does not begin before it is terminated, however long a commit takes.
    it.store.claim = async (threadId, options) => {
      if (threadId === second) await over.reached
      return claim.call(it.store, threadId, options)
    }
    expect((await it.run(id, 'again')).text).toBe('Gone.')
    Object.assign(it.store, { commit, claim })
    expect(linesOf(requestsOf(top)[3]).at(-1)).toMatch(/^tool_result: helper ! .*terminated/)
    expect(requestsOf(helper)).toHaveLength(asked)
  })

  test('stopping a parent stops the child it waits for, and the next message continues', async () => {
    const started = latch()
    const helper = child('helper', {
      script: () => {
        started.open()
        return [waits(Infinity)]
      },
    })
    const top = boss([calls('helper', { message: 'go' }), says('All right.')], [helper])
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'go' })
    await started.reached
    await it.threads.stop(id, { by: 'ann' })
    await it.idle()
    const [made] = await it.events(id, 'subagent_created')
    expect((await it.threads.get(id)).lifecycle).toBe('stopped')
    expect(await it.events(made!.reference, 'session_end')).toMatchObject([{ outcome: 'stopped' }])
    expect((await it.run(id, 'leave it')).text).toBe('All right.')
    expect(linesOf(requestsOf(top)[1])[2]).toMatch(
      /^tool_result: helper ! The user stopped the run/,
    )
  })

  test('a result that comes after its call was cut off is queued, and waits while the parent is stopped', async () => {
    const helper = child('helper')
    const top = boss([calls('helper', { message: 'go' }), says('I heard.')], [helper])
    const it = await simulate({ agents: [top] })
    const id = await it.create()
    const commit = it.store.commit.bind(it.store)
    const closed = latch()
    it.store.commit = async (change) => {
      const isEnd = change.point.split('+').includes('session_end')
      // The stop comes when the child has its result and is about to write it down.
      if (isEnd && change.threads[0]?.id !== id) {
        await it.threads.stop(id)
        await closed.reached
      }
      const result = await commit(change)
      if (isEnd) closed.open()
      return result
    }
    await it.send(id, 'go')
    await closed.reached
    await it.idle()
    it.store.commit = commit
    expect((await it.threads.get(id)).lifecycle).toBe('stopped')
    expect(requestsOf(top)).toHaveLength(1)
    const [made] = await it.events(id, 'subagent_created')
    await it.run(id, 'and?')
    expect(linesOf(requestsOf(top)[1]).slice(3)).toEqual([
      `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nhelper is done`,
      'user: and?',
    ])
  })

  test('an approval three levels down shows in the inbox with its path; approving it resumes all the way up', async () => {
    const burn = defineTool({
      name: 'burn',
      description: 'Burns.',
      risk: 'write_high_risk',
      rollback: () => ({ type: 'tool_call', target: 'burn', payload: {} }),
      execute: () => 'burnt',
    })
    const leaf = child('leaf', {
      script: [calls('burn'), calls('finish', { summary: 'it is ashes' })],
      tools: [burn],
    })
    const middle = child('middle', {
      script: [
        calls('leaf', { message: 'burn it' }),
        ({ messages }) => calls('finish', { summary: `leaf: ${JSON.stringify(messages.at(-1))}` }),
      ],
      tools: [leaf],
    })
    const root = boss([calls('middle', { message: 'go' }), says('Done.')], [middle])
    const it = await simulate({ agents: [root] })
    const { id, outcome, waiting } = await it.ask('burn it')
    expect(outcome).toBe('waiting')
    const listed = await it.runtime.inbox.list({ rootId: id })
    expect(listed).toMatchObject([
      { toolName: 'burn', kind: 'approval', path: ['boss', 'middle', 'leaf'], rootId: id },
    ])
    expect(waiting).toEqual(listed)
    await it.idle()
    expect(requestsOf(root)).toHaveLength(1)
    const { threadId, interruptId } = listed[0]!
    await it.runtime.inbox.approve({ threadId, interruptId, by: 'ann' })
    await it.idle()
    expect(linesOf(requestsOf(root)[1]).at(-1)).toContain('it is ashes')
    expect((await it.threads.settled(id)).text).toBe('Done.')
    expect(await it.runtime.inbox.list()).toEqual([])
  })

  test('two messages to one blocking child in one step are both answered by what came of them', async () => {
    const helper = child('helper', {
      script: ({ messages }) =>
        calls('finish', {
          summary: `heard ${messages.filter(({ type }) => type === 'user').length}`,
        }),
    })
    let reference = ''
    const top = boss(
      [
        calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'one' }),
        ({ messages }) => {
          reference = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))![1]!
          return ['two', 'three'].map((message) =>
            calls('subagent_message', { reference, message }),
          )
        },
        says('Good.'),
      ],
      [{ name: helper, resumable: {} }],
    )
    const it = await simulate({ agents: [top] })
    const { text } = await it.ask('hi')
    expect(text).toBe('Good.')
    const results = linesOf(requestsOf(top)[2]).findLast((line) => line.startsWith('tool_result'))!
    expect(results.match(/subagent_message = /g)).toHaveLength(2)
    const [first, ...more] = await it.events(reference, 'session_end')
    expect(first).toMatchObject({ message: 'heard 1' })
    expect(more.at(-1)).toMatchObject({ message: 'heard 3' })
  })

  test('a child that cannot even begin fails its call instead of leaving the parent to wait', async () => {
    const leaf = child('leaf')
    const middle = child('middle', { tools: [{ name: leaf, immediate: true }] })
    const top = boss([calls('middle', { message: 'go' }), says('Oh.')], [middle])
    const it = await simulate({ agents: [top] })
    const registry = { ...it.runtime.registry }
    it.runtime.replaceRegistry({
      ...registry,
      agent(name) {
        if (name === 'leaf') throw new Error('The leaf is gone.')
        return registry.agents.get(name)!
      },
    })
    const id = await it.create({ message: 'hi' })
    // It is tried again, later and later, until the runtime gives up on it.
    for (let tries = 0; tries < 100 && requestsOf(top).length < 2; tries++)
      await it.timers.advance(60_000)
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: middle ! .*drain_failed/)
    expect((await it.threads.settled(id)).text).toBe('Oh.')
    expect(requestsOf(middle)).toEqual([])
  })

  test('a thread whose agent is gone waits for it, says so once, and continues with it', async () => {
    const lone = solo('lone', { script: [says('at last')] })
    const it = await simulate({ agents: [solo('boss', { script: [] }), lone] })
    const registry = { ...it.runtime.registry }
    const agents = new Map([...registry.agents].filter(([name]) => name !== 'lone'))
    const id = await it.create({ agent: 'lone', secrets: { KEY: 'anchor-key' } })
    it.runtime.replaceRegistry({
      ...registry,
      agents,
      agent(name) {
        const found = agents.get(name)
        if (!found) throw new Error(`There is no agent ${name}.`)
        return found
      },
    })
    await it.send(id, 'hi')
    for (let tries = 0; tries < 20; tries++) await it.timers.advance(60_000)
    expect(await it.threads.get(id)).toMatchObject({ lifecycle: 'waiting', attempts: 0 })
    expect(await it.events(id, 'error_raised')).toMatchObject([{ code: 'AGENT_NOT_FOUND' }])
    it.runtime.replaceRegistry({ ...registry, agent: (name) => registry.agents.get(name)! })
    await it.timers.advance(0)
    expect(await it.threads.get(id)).toMatchObject({ lifecycle: 'idle' })
  })

  test('hooks hear of every child that is created, whatever created it', async () => {
    const heard: string[] = []
    const hook = defineHook({
      id: 'heard',
      hook: 'after_subagent_created',
      execute: (state, { reference, name }) => {
        expect(state.children.some((one) => one.reference === reference)).toBe(true)
        heard.push(name)
      },
    })
    const agents = ['waited', 'direct', 'kept', 'early'].map((name) => child(name))
    const [waited, direct, kept, early] = agents as [AgentDefinition, ...AgentDefinition[]]
    const top = solo('boss', {
      script: [
        calls('waited', { message: 'go' }),
        calls('direct', { message: 'go' }),
        calls('subagent_create', { agent: 'kept', name: 'Ada', message: 'go' }),
        () => says('Done.'),
        () => says('Done.'),
      ],
      tools: [
        waited!,
        { name: direct!, blocking: false },
        { name: kept!, resumable: {} },
        { name: early!, immediate: true },
      ],
      prompt: { hooks: [hook] },
    })
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    await it.idle()
    expect(heard).toEqual(['early', 'waited', 'direct', 'kept'])
  })

  test('the tokens of a tree are those of all its threads', async () => {
    const helper = child('helper')
    const top = boss([calls('helper', { message: 'go' }), says('Thanks.')], [helper])
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('please')
    const report = await it.threads.cost(id)
    const [made] = await it.events(id, 'subagent_created')
    expect(Object.keys(report.byThread).toSorted()).toEqual([id, made!.reference].toSorted())
    const parts = Object.values(report.byThread).map(({ tokens }) => tokens)
    expect(Math.min(...parts)).toBeGreaterThan(0)
    expect(report.tokens).toBe(parts.reduce((sum, tokens) => sum + tokens, 0))
    expect((await it.store.treeUsage(id)).tokens).toBe(report.tokens)
  })
})
