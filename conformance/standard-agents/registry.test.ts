import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { type AgentDefinition, defineEffect } from '@skein/runtime'
import { threadView } from '@skein/runtime/view'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const finish = tool('finish')
const status = tool('status')

function child(
  name: string,
  side: Partial<SideSetup> = {},
  agent: Partial<AgentDefinition> = {},
): AgentDefinition {
  return pair(
    name,
    {
      a: {
        script: () => calls('finish', { summary: 'done' }),
        tools: [finish, status],
        sessionStop: { name: finish, messageProperty: 'summary' },
        sessionStatus: { name: status, messageProperty: 'text' },
        ...side,
      },
      b: { script: [] },
    },
    agent,
  )
}

test('SA-76 an entry of the registry has the fields of the spec', async () => {
  const go = latch()
  const rich = child(
    'rich',
    {
      script: async () => {
        await go.reached
        return calls('finish', { summary: 'done' })
      },
    },
    { title: 'The Rich One', description: 'Counts money.' },
  )
  const plain = child('plain')
  const seen: unknown[] = []
  const found: unknown[] = []
  const top = solo('boss', {
    script: [
      [
        calls('subagent_create', { agent: 'rich', name: 'Ada', message: 'go' }),
        calls('subagent_create', { agent: 'plain', name: 'Bob', message: 'go' }),
      ],
      calls('see'),
      says('Good.'),
      says('Good.'),
    ],
    tools: [
      tool('see', (state) => {
        seen.push(...state.children)
        for (const one of state.children) found.push(state.getChildThread(one.reference))
        found.push(state.getChildThread('nobody'))
      }),
      { name: rich, blocking: false, resumable: { parentCommunication: 'explicit' } },
      { name: plain, resumable: {} },
    ],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const [first, second] = await it.events(id, 'subagent_created')
  const createdAt = Date.UTC(2026, 0, 1) * 1000
  const entries = [
    {
      reference: first!.reference,
      name: 'rich',
      title: 'The Rich One',
      description: 'Counts money.',
      resumable: true,
      blocking: false,
      threadName: 'Ada',
      createdAt,
      status: 'running',
      parentCommunication: 'explicit',
    },
    {
      reference: second!.reference,
      name: 'plain',
      description: 'Two who do plain.',
      resumable: true,
      blocking: true,
      threadName: 'Bob',
      createdAt,
      status: 'idle',
      parentCommunication: 'implicit',
    },
  ]
  expect(seen).toEqual(entries)
  expect(found).toEqual([...entries.map((one) => ({ ...one, threadId: one.reference })), null])
  expect(await it.threads.children(id)).toEqual(entries)
  expect(first!.reference).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  go.open()
  await it.idle()
})

test('SA-07 SA-27 SA-40 the view of a thread has its children, with what the log says of them', async () => {
  const [counting, go] = [latch(), latch()]
  const script = [
    calls('status', { text: 'counting' }),
    async () => {
      counting.open()
      await go.reached
      return calls('finish', { summary: 'done' })
    },
  ]
  const titled = child('titled', { script }, { title: 'The Titled One' })
  const top = solo('boss', {
    script: [
      [
        calls('titled', { message: 'go' }),
        calls('subagent_create', { agent: 'kept', name: 'Ada', message: 'go' }),
      ],
      says('Started.'),
      () => says('I see.'),
      () => says('I see.'),
    ],
    tools: [
      { name: titled, blocking: false },
      { name: child('kept'), blocking: false, resumable: {} },
    ],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await counting.reached
  const [first, second] = await it.events(id, 'subagent_created')
  const createdAt = '2026-01-01T00:00:00.000Z'
  const entry = { threadId: first!.reference, name: 'titled', title: 'The Titled One', createdAt }
  const other = { threadId: second!.reference, name: 'kept', title: undefined, createdAt }
  const view = async () => threadView(await it.threads.events(id)).children
  expect((await view())[0]).toEqual({ ...entry, status: 'running', statusText: 'counting' })
  go.open()
  await it.idle()
  expect(await view()).toEqual([
    { ...entry, status: 'completed', statusText: undefined },
    { ...other, status: 'idle', statusText: undefined },
  ])
  await it.threads.terminate(second!.reference)
  expect((await view())[1]).toMatchObject({ ...other, status: 'terminated' })
  // What was on its way when the child was terminated changes nothing.
  const events = await it.threads.events(id)
  const late = { type: 'subagent_updated', at: createdAt, status: 'running' } as const
  const event = { ...late, reference: second!.reference }
  const last = { ...events.at(-1)!, seq: events.at(-1)!.seq + 1, event }
  expect(threadView([...events, last]).children[1]!.status).toBe('terminated')
})

test('SA-77 models are notified of the children, and again only when something has changed', async () => {
  const counting = latch()
  const go = latch()
  const helper = child('helper', {
    script: [
      calls('status', { text: 'counting' }),
      async () => {
        counting.open()
        await go.reached
        return calls('finish', { summary: 'done' })
      },
    ],
  })
  const top = solo('boss', {
    script: [
      calls('look'),
      calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' }),
      async () => {
        await counting.reached
        return calls('look')
      },
      calls('look'),
      calls('look'),
      says('Waiting.'),
      says('I see.'),
    ],
    tools: [tool('look'), { name: helper, blocking: false, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const reference = (await it.threads.children(id))[0]!.reference
  const notes = (index: number) =>
    linesOf(requestsOf(top)[index]).filter((line) => line.startsWith('user: [runtime] Subagents'))
  const line = (text: string) =>
    `user: [runtime] Subagents of this thread:\n- helper "Ada" (reference: ${reference}): ${text}`
  // None while there are no children; one when there are; one more for the status, and no more after it.
  expect([0, 1].map(notes)).toEqual([[], []])
  expect(notes(2)).toEqual([line('running')])
  expect(notes(3)).toEqual([line('running'), line('counting')])
  expect(notes(4)).toEqual(notes(3))
  expect(notes(5)).toEqual(notes(3))
  expect(linesOf(requestsOf(top)[3]).at(-1)).toBe(line('counting'))
  go.open()
  await it.idle()
  expect(notes(6)).toEqual([line('running'), line('counting'), line('idle')])
  const shown = await it.threads.messages(id)
  expect(shown.some(({ message }) => JSON.stringify(message).includes('Subagents of'))).toBe(false)
})

test('SA-77 each side of a dual_ai parent gets notes of its own', async () => {
  const helper = child('helper')
  const top = pair('parent', {
    a: {
      script: [
        calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' }),
        says('I have a helper.'),
      ],
      tools: [{ name: helper, resumable: {} }],
    },
    b: {
      script: [calls('finish', { summary: 'done' })],
      tools: [finish],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
  })
  const it = await simulate({ agents: [top] })
  await it.ask('hi')
  const told = (side: 'a' | 'b') =>
    requestsOf(top, side)
      .flatMap(linesOf)
      .some((line) => line.includes('helper "Ada"'))
  expect([told('a'), told('b')]).toEqual([true, true])
})

test('SA-77 side B is notified again only when something has changed', async () => {
  const started = latch()
  const go = latch()
  const helper = child('helper', {
    script: async () => {
      started.open()
      await go.reached
      return calls('finish', { summary: 'done' })
    },
  })
  const look = tool('look', async () => {
    await started.reached
  })
  const top = pair('parent', {
    a: {
      script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('Started.')),
      tools: [{ name: helper, blocking: false }],
    },
    b: {
      script: (_, index) => (index < 3 ? calls('look') : calls('finish', { summary: 'done' })),
      tools: [finish, look],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const reference = (await it.events(id, 'subagent_created'))[0]!.reference
  const notes = (side: 'a' | 'b') =>
    linesOf(requestsOf(top, side).at(-1)).filter((line) =>
      line.startsWith('user: [runtime] Subagents'),
    )
  const line = `user: [runtime] Subagents of this thread:\n- helper (reference: ${reference}): running, not resumable`
  expect(requestsOf(top, 'b')).toHaveLength(4)
  expect(notes('b')).toEqual([line])
  expect(notes('a')).toEqual([line])
  go.open()
  await it.idle()
})

test('SA-77 a model that no longer sees the last note is notified again: without the chat, and after a summary', async () => {
  const long = 'word '.repeat(200)
  const prompts: SideSetup['prompt'][] = [
    { includeChat: false },
    { compaction: { maxTokens: 400, keepMessages: 1 } },
  ]
  for (const prompt of prompts) {
    const top = solo('boss', {
      script: ({ system }, index) => {
        if (system === undefined) return says('They spoke of words.')
        if (index === 0)
          return calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
        return says(long)
      },
      tools: [{ name: child('helper'), resumable: {} }],
      prompt: prompt!,
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('one')
    for (const text of ['two', 'three']) await it.run(id, text)
    const asked = requestsOf(top).filter(({ system }) => system !== undefined)
    const told = asked.map((request) =>
      linesOf(request).filter((line) => line.includes('helper "Ada"')),
    )
    expect(told.map((lines) => lines.length)).toEqual([0, 1, 1, 1])
    const notes = (await it.threads.messages(id, { includeSilent: true })).filter(
      ({ metadata }) => metadata?.['kind'] === 'registry',
    )
    expect(notes.length).toBeGreaterThan(1)
  }
})

test('SA-75 an idle child that sets its status does not count as working, and its parent continues', async () => {
  const rest = defineEffect({ name: 'rest', execute: (state) => state.setStatus('resting') })
  const top = solo('boss', {
    script: () => says('Hello.'),
    tools: [{ name: child('helper'), immediate: true, resumable: {} }],
  })
  const it = await simulate({ agents: [top], effects: [rest] })
  const { id } = await it.ask('hi')
  await it.idle()
  const { reference } = (await it.threads.children(id))[0]!
  await it.threads.effects.schedule(reference, 'rest', null, 0)
  await it.idle()
  expect(await it.threads.children(id)).toMatchObject([{ status: 'resting' }])
  await it.send(id, 'again')
  await it.idle()
  expect(requestsOf(top).filter(({ system }) => system === 'You are boss_a.')).toHaveLength(2)
  await it.runtime.withState(reference, (state) => state.setStatus('asleep'))
  expect(await it.threads.children(id)).toMatchObject([{ status: 'asleep' }])
  // The next session begins without it.
  await it.run(reference, 'wake up')
  expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
})
