import { expect, test, vi } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import type { AgentDefinition, PromptDefinition, SubagentToolConfig } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const finish = tool('finish')

/** Answers each message with how many messages of others it has seen. */
function helper(before: () => Promise<void> = async () => {}): AgentDefinition {
  return pair('helper', {
    a: {
      script: async ({ messages }) => {
        await before()
        const heard = messages.filter(({ type }) => type === 'user').length
        return calls('finish', { summary: `result ${heard}` })
      },
      tools: [finish],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    b: { script: [] },
  })
}

function boss(
  script: SideSetup['script'],
  tools: NonNullable<PromptDefinition['tools']>,
): AgentDefinition {
  return solo('boss', { script, tools })
}

const withHelper = (
  script: SideSetup['script'],
  agent: AgentDefinition,
  config: Partial<SubagentToolConfig>,
): AgentDefinition => boss(script, [{ name: agent, ...config }])

test('SA-41 SA-42 disposable and blocking: the parent waits, the child ends with its result', async () => {
  const started = latch()
  const go = latch()
  const agent = helper(async () => {
    started.open()
    await go.reached
  })
  const top = withHelper([calls('helper', { message: 'go' }), says('Thanks.')], agent, {})
  const it = await simulate({ agents: [top] })
  const id = await it.create({ message: 'please' })
  await started.reached
  // While the child works the parent is not asked, and nothing runs for it.
  await it.runtime.store.head(id)
  expect(requestsOf(top)).toHaveLength(1)
  expect(await it.threads.children(id)).toMatchObject([{ blocking: true, resumable: false }])
  go.open()
  await it.idle()
  expect(linesOf(requestsOf(top)[1])).toEqual([
    'user: please',
    'assistant:  [helper({"message":"go"})]',
    'tool_result: helper = "result 1"',
  ])
  expect(await it.threads.children(id)).toEqual([])
  const [ended] = await it.events(id, 'subagent_ended')
  expect(ended).toMatchObject({ outcome: 'completed' })
  expect(await it.threads.get(ended!.reference)).toMatchObject({ lifecycle: 'terminated' })
  // Told once: the tool result, and no message besides.
  expect(await it.events(id, 'message_queued')).toHaveLength(1)
})

test('SA-41 SA-43 disposable and non-blocking: the parent continues, the result comes later', async () => {
  const go = latch()
  const agent = helper(() => go.reached)
  const top = withHelper(
    [calls('helper', { message: 'go' }), says('Started.'), says('It came.')],
    agent,
    { blocking: false },
  )
  const it = await simulate({ agents: [top] })
  const { id, text } = await it.ask('please')
  expect(text).toBe('Started.')
  const [made] = await it.events(id, 'subagent_created')
  const reference = made!.reference
  expect(linesOf(requestsOf(top)[1])).toContain(
    `tool_result: helper = "Subagent (reference: ${reference}) was started. Its result will come as a message."`,
  )
  go.open()
  await it.idle()
  expect(linesOf(requestsOf(top)[2]).at(-2)).toBe(
    `user: Subagent (reference: ${reference}) has returned the following result:\n\nresult 1`,
  )
  expect((await it.threads.settled(id)).text).toBe('It came.')
  expect(await it.threads.children(id)).toEqual([])
  expect(await it.threads.get(reference)).toMatchObject({ lifecycle: 'terminated' })
})

test('SA-41 SA-44 resumable and blocking: each call waits, and the child remembers the one before', async () => {
  const agent = helper()
  const top = withHelper(
    [
      calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'one' }),
      ({ messages }) => {
        const told = JSON.stringify(messages)
        const reference = /reference: ([0-9a-f-]{36})/.exec(told)![1]!
        return calls('subagent_message', { reference, message: 'two' })
      },
      says('Thanks.'),
    ],
    agent,
    { resumable: {} },
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('please')
  const made = await it.events(id, 'subagent_created')
  expect(made).toHaveLength(1)
  const text = (result: string) =>
    JSON.stringify(
      `Subagent (reference: ${made[0]!.reference}) has returned the following result:\n\n${result}`,
    )
  const told = linesOf(requestsOf(top)[2])
  expect(told).toContain(`tool_result: subagent_create = ${text('result 1')}`)
  expect(told).toContain(`tool_result: subagent_message = ${text('result 2')}`)
  expect(linesOf(requestsOf(agent)[1])).toEqual([
    'user: one',
    'assistant:  [finish({"summary":"result 1"})]',
    'tool_result: finish = "ok"',
    'user: two',
  ])
  expect(await it.threads.children(id)).toMatchObject([{ resumable: true, status: 'idle' }])
  // No message besides the person's: the results were answers of calls.
  expect(await it.events(id, 'message_queued')).toHaveLength(1)
})

test('SA-44 two calls that wait for one session of the child are both answered', async () => {
  const look = tool('look')
  let reference = ''
  const agent = pair('helper', {
    a: {
      script: async (_, index) => {
        if (index !== 1) return calls('finish', { summary: `result ${index}` })
        // The third message arrives while the child works on the second.
        await vi.waitFor(async () =>
          expect(await it.events(reference, 'message_queued')).toHaveLength(3),
        )
        return calls('look')
      },
      tools: [finish, look],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    b: { script: [] },
  })
  const top = withHelper(
    [
      calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'one' }),
      ({ messages }) => {
        reference = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))![1]!
        return [
          calls('subagent_message', { reference, message: 'two' }),
          calls('subagent_message', { reference, message: 'three' }),
        ]
      },
      says('Thanks.'),
    ],
    agent,
    { resumable: {} },
  )
  const it = await simulate({ agents: [top] })
  const { text } = await it.ask('please')
  expect(text).toBe('Thanks.')
  const results = linesOf(requestsOf(top)[2]).at(-1)!
  expect(results.match(/subagent_message = /g)).toHaveLength(2)
  expect(results.match(/result 2/g)).toHaveLength(2)
})

test('SA-41 SA-45 resumable and non-blocking: the parent may speak any time, also while the child works', async () => {
  const started = latch()
  const go = latch()
  let reference = ''
  const agent = pair('helper', {
    a: {
      script: [
        async () => {
          started.open()
          await go.reached
          return calls('look')
        },
        ({ messages }) => calls('finish', { summary: messages.map((m) => m.type).join(' ') }),
      ],
      tools: [finish, tool('look')],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    b: { script: [] },
  })
  const top = withHelper(
    [
      calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'one' }),
      async ({ messages }) => {
        await started.reached
        reference = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))![1]!
        return calls('subagent_message', { reference, message: 'two' })
      },
      says('Both sent.'),
      says('I see.'),
    ],
    agent,
    { blocking: false, resumable: {} },
  )
  const it = await simulate({ agents: [top] })
  const { id, text } = await it.ask('please')
  expect(text).toBe('Both sent.')
  expect(linesOf(requestsOf(top)[2]).at(-1)).toBe(
    `tool_result: subagent_message = "The message was sent to subagent (reference: ${reference})."`,
  )
  go.open()
  await it.idle()
  // Taken before the next step of the running session, so there is one session and one report.
  expect(linesOf(requestsOf(agent)[1])).toEqual([
    'user: one',
    'assistant:  [look({})]',
    'tool_result: look = "ok"',
    'user: two',
  ])
  expect(linesOf(requestsOf(top)[3])).toContain(
    `user: Subagent (reference: ${reference}) has returned the following result:\n\nuser assistant tool_result user`,
  )
  expect(await it.threads.children(id)).toMatchObject([{ reference, status: 'idle' }])
})

test('SA-45 a child that is idle is running again as soon as it was messaged', async () => {
  const again = latch()
  const go = latch()
  let reference = ''
  let asked = 0
  const agent = helper(async () => {
    if (++asked === 1) return
    again.open()
    await go.reached
  })
  const top = withHelper(
    [
      calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'one' }),
      says('Sent.'),
      says('I see.'),
      () => calls('subagent_message', { reference, message: 'two' }),
      says('Sent again.'),
      says('I see.'),
    ],
    agent,
    { blocking: false, resumable: {} },
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('please')
  await it.idle()
  const [entry] = await it.threads.children(id)
  expect(entry).toMatchObject({ status: 'idle' })
  reference = entry!.reference
  expect((await it.run(id, 'more')).text).toBe('Sent again.')
  await again.reached
  expect(await it.threads.children(id)).toMatchObject([{ reference, status: 'running' }])
  go.open()
  await it.idle()
  expect(await it.threads.children(id)).toMatchObject([{ reference, status: 'idle' }])
  expect(linesOf(requestsOf(top)[5])).toContain(
    `user: Subagent (reference: ${reference}) has returned the following result:\n\nresult 2`,
  )
})

test('SA-43 a report that comes in the middle of a step is taken before the next one', async () => {
  const childDone = latch()
  const agent = helper()
  const top = boss(
    [
      calls('helper', { message: 'go' }),
      async () => {
        await childDone.reached
        return calls('look')
      },
      says('I have it.'),
    ],
    [tool('look'), { name: agent, blocking: false }],
  )
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  const commit = it.store.commit.bind(it.store)
  it.store.commit = async (change) => {
    const result = await commit(change)
    if (change.point.split('+').includes('session_end') && change.threads[0]?.id !== id)
      childDone.open()
    return result
  }
  expect((await it.run(id, 'please')).text).toBe('I have it.')
  const [made] = await it.events(id, 'subagent_created')
  expect(linesOf(requestsOf(top)[2]).slice(-4)).toEqual([
    'assistant:  [look({})]',
    'tool_result: look = "ok"',
    `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nresult 1`,
    'user: [runtime] Subagents of this thread: none.',
  ])
  expect(requestsOf(top)).toHaveLength(3)
})

test('SA-42 SA-44 a parent waits for its child longer than for a person', async () => {
  for (const config of [{}, { resumable: {} }]) {
    const started = latch()
    const go = latch()
    const agent = helper(async () => {
      started.open()
      await go.reached
    })
    const start =
      'resumable' in config
        ? calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
        : calls('helper', { message: 'go' })
    const top = withHelper([start, says('Thanks.')], agent, config)
    const it = await simulate({
      agents: [top],
      limits: { interruptTtlMs: 60_000, modelIdleMs: Infinity, modelMs: Infinity },
    })
    const id = await it.create({ message: 'please' })
    await started.reached
    await it.timers.advance(300_000)
    expect(await it.events(id, 'interrupt_answered')).toEqual([])
    go.open()
    await it.idle()
    expect(linesOf(requestsOf(top)[1]).join('\n')).toContain('result 1')
    expect((await it.threads.settled(id)).text).toBe('Thanks.')
  }
})

test('SA-44 a result that comes after its call was cut off is queued once, in the words of the spec', async () => {
  const agent = helper()
  const top = withHelper(
    [calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' }), says('I heard.')],
    agent,
    { resumable: {} },
  )
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
  const [made] = await it.events(id, 'subagent_created')
  await it.run(id, 'and?')
  const heard = linesOf(requestsOf(top)[1]).filter((line) => line.includes('result 1'))
  expect(heard).toEqual([
    `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nresult 1`,
  ])
})
