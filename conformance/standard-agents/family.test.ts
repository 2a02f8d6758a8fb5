// Parents, children and grandchildren: who belongs to whom, and what they hear of each other.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says } from '@skein/ai/testing'
import type { SubagentToolConfig } from '@skein/runtime'
import { threadView } from '@skein/runtime/view'
import {
  burn,
  child,
  finish,
  finished,
  linesOf,
  pair,
  requestsOf,
  solo,
  tool,
  type SideSetup,
} from './support/agents.ts'
import { latch } from './support/latch.ts'
import { childOf, simulate } from './support/simulate.ts'

test('SA-36 SA-40 every level of a tree knows its parent, its root, its owner and its depth', async () => {
  const seen: unknown[] = []
  const who = tool('who', (state) => void seen.push([state.agentId, state.getParentThread()]))
  const leaf = child('leaf', { script: [calls('who'), finished('leaf')], tools: [who] })
  const middle = child('middle', {
    script: [calls('who'), calls('leaf', { message: 'go' }), finished('middle')],
    tools: [who, leaf],
  })
  const boss = solo('boss', {
    script: [calls('who'), calls('middle', { message: 'go' }), says('Done.')],
    tools: [who, middle],
  })
  const it = await simulate({ agents: [boss] })
  const id = await it.create({ tenant: 'acme', owner: 'ann' })
  await it.run(id, 'go')
  const below = await childOf(it, id)
  const lowest = await childOf(it, below)
  expect(seen).toEqual([
    ['boss', null],
    ['middle', { threadId: id }],
    ['leaf', { threadId: below }],
  ])
  const family = [
    { threadId: id, agent: 'boss', parentId: null },
    { threadId: below, agent: 'middle', parentId: id },
    { threadId: lowest, agent: 'leaf', parentId: below },
  ]
  for (const [depth, { threadId, agent, parentId }] of family.entries()) {
    expect(await it.threads.get(threadId)).toMatchObject({
      agent,
      parentId,
      rootId: id,
      tenant: 'acme',
      owner: 'ann',
    })
    const [created] = await it.events(threadId, 'thread_created')
    expect(created).toMatchObject({ threadId, agent, depth })
    expect(created!.parentThreadId ?? null).toBe(parentId)
    const view = threadView(await it.threads.events(threadId))
    expect(view).toMatchObject({ threadId, agent })
    expect(view.parentThreadId ?? null).toBe(parentId)
  }
  expect((await it.threads.list({ tenant: 'acme', owner: 'ann', rootId: id })).length).toBe(3)
})

test('SA-18 the first message comes as it was written, and the arguments are side A’s', async () => {
  const helper = pair('helper', {
    a: {
      script: () => finished('done'),
      tools: [finish],
      sessionStop: 'finish',
      prompt: { requiredSchema: z.object({ task: z.string() }) },
    },
    b: { script: [], prompt: { requiredSchema: z.object({ review: z.string() }) } },
  })
  const task = '  two blanks, then a line\n'
  const boss = solo('boss', {
    script: [calls('helper', { task }), says('Thanks.')],
    tools: [{ name: helper, initUserMessageProperty: 'task' }],
  })
  const it = await simulate({ agents: [boss] })
  await it.ask('go')
  expect(requestsOf(boss)[0]!.tools[0]!.parameters).toMatchObject({
    properties: { task: { type: 'string' } },
    required: ['task'],
  })
  expect(linesOf(requestsOf(helper)[0])).toEqual([`user: ${task}`])
})

describe('the list of children', () => {
  test.each([
    ['disposable and awaited', {}],
    ['disposable and not awaited', { blocking: false }],
    ['resumable and awaited', { resumable: {} }],
    ['resumable and not awaited', { resumable: {}, blocking: false }],
  ] satisfies [string, Partial<SubagentToolConfig>][])(
    'SA-40 has a child that waits for a person: %s',
    async (_, config) => {
      const helper = child('helper', { script: [calls('burn'), finished('done')], tools: [burn] })
      const start =
        'resumable' in config
          ? calls('subagent_create', { name: 'Ada', message: 'go' })
          : calls('helper', { message: 'go' })
      const boss = solo('boss', {
        script: (_request, index) => (index === 0 ? start : says('Ok.')),
        tools: [{ name: helper, ...config }],
      })
      const it = await simulate({ agents: [boss] })
      const id = await it.create({ message: 'go' })
      await it.idle()
      const reference = await childOf(it, id)
      expect(await it.threads.children(id)).toMatchObject([
        {
          reference,
          name: 'helper',
          status: 'awaiting_human',
          resumable: 'resumable' in config,
          blocking: !('blocking' in config),
        },
      ])
      const [item] = await it.runtime.inbox.list({})
      await it.runtime.inbox.approve({ ...item!, by: 'ann' })
      await it.idle()
      const after = 'resumable' in config ? [{ reference, status: 'idle' }] : []
      expect(await it.threads.children(id)).toMatchObject(after)
    },
  )

  test.each([
    ['a', {}],
    ['b', {}],
    ['a', { resumable: {} }],
    ['b', { resumable: {} }],
  ] satisfies ['a' | 'b', Partial<SubagentToolConfig>][])(
    'SA-27 has the whole status that side %s publishes (%j), until the child is idle',
    async (side, config) => {
      const text = `Counted 1,200 of 4,711 pages, and ${'very '.repeat(20)}slowly.`
      const [published, go] = [latch(), latch()]
      const hold = tool('hold', async () => {
        published.open()
        await go.reached
      })
      const tell = tool('tell')
      const tells: Partial<SideSetup> = {
        script: [calls('tell', { text }), calls('hold'), finished('one'), finished('two')],
        tools: [finish, tell, hold],
        sessionStop: { name: finish, messageProperty: 'summary' },
        sessionStatus: { name: tell, messageProperty: 'text' },
      }
      const helper = pair('helper', {
        a: { script: () => says('draft'), ...(side === 'a' && tells) },
        b: { script: () => says('no'), ...(side === 'b' && tells) },
      })
      const isKept = 'resumable' in config
      const start = isKept
        ? calls('subagent_create', { name: 'Ada', message: 'go' })
        : calls('helper', { message: 'go' })
      const boss = solo('boss', {
        script: (_request, index) => (index === 0 ? start : says('Ok.')),
        tools: [{ name: helper, blocking: false, ...config }],
      })
      const it = await simulate({ agents: [boss] })
      const { id } = await it.ask('go')
      await published.reached
      expect(await it.threads.children(id)).toMatchObject([{ status: text }])
      go.open()
      await it.idle()
      expect(await it.threads.children(id)).toMatchObject(isKept ? [{ status: 'idle' }] : [])
      if (!isKept) return
      // The text of the session before is not shown again.
      const statuses: string[] = []
      const { commit } = it.store
      it.store.commit = async (change) => {
        const result = await commit.call(it.store, change)
        if (change.point.includes('session_start'))
          statuses.push((await it.threads.children(id))[0]!.status)
        return result
      }
      await it.run(await childOf(it, id), 'more')
      it.store.commit = commit
      expect(statuses).toEqual(['running'])
    },
  )

  test.each(['implicit', 'explicit'] as const)(
    'SA-27 an empty status takes the last one back (%s)',
    async (parentCommunication) => {
      const told = [latch(), latch()]
      const go = [latch(), latch()]
      let holds = 0
      const hold = tool('hold', async () => {
        const place = holds++
        told[place]!.open()
        await go[place]!.reached
      })
      const tell = tool('tell')
      const helper = child('helper', {
        script: [
          calls('tell', { text: 'half way' }),
          calls('hold'),
          calls('tell', { text: '' }),
          calls('hold'),
          finished('done'),
        ],
        tools: [tell, hold],
        sessionStatus: { name: tell, messageProperty: 'text' },
      })
      const boss = solo('boss', {
        script: (_request, index) =>
          index === 0 ? calls('subagent_create', { name: 'Ada', message: 'go' }) : says('Ok.'),
        tools: [{ name: helper, blocking: false, resumable: { parentCommunication } }],
      })
      const it = await simulate({ agents: [boss] })
      const { id } = await it.ask('go')
      for (const [place, status] of ['half way', 'running'].entries()) {
        await told[place]!.reached
        expect(await it.threads.children(id)).toMatchObject([{ status, parentCommunication }])
        go[place]!.open()
      }
      await it.idle()
      expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
    },
  )

  test('SA-38 a side can message only children of the agents that it lists', async () => {
    const [mine, yours] = [child('mine'), child('yours')]
    let reference = ''
    const boss = pair('boss', {
      a: {
        script: [
          calls('subagent_create', { agent: 'mine', name: 'Ada', message: 'go' }),
          says('I have one.'),
        ],
        tools: [{ name: mine, resumable: {} }],
      },
      b: {
        script: [
          async () => {
            reference = (await it.threads.children(id))[0]!.reference
            return calls('subagent_message', { reference, message: 'hello' })
          },
          finished('done'),
        ],
        tools: [finish, { name: yours, resumable: {} }],
        sessionStop: { name: finish, messageProperty: 'summary' },
      },
    })
    const it = await simulate({ agents: [boss] })
    const id = await it.create()
    await it.run(id, 'go')
    expect(linesOf(requestsOf(boss, 'b')[1]).at(-1)).toBe(
      `tool_result: subagent_message ! There is no subagent with the reference "${reference}". Create one with subagent_create.`,
    )
    expect(await it.events(reference, 'message_queued')).toHaveLength(1)
    const offered = requestsOf(boss, 'b')[0]!.tools.find(({ name }) => name === 'subagent_create')
    expect(offered!.description).toContain('yours: Two who do yours.')
    expect(offered!.description).not.toContain('mine')
  })
})
