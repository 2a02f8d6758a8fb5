// Messages between parents and children, and silent ones: which of them are sent, heard and answered, and when.
import { expect, test } from 'vitest'
import type { JsonValue } from '@skein/base'
import { calls, says, waits } from '@skein/ai/testing'
import { child, finished, linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { childOf, simulate } from './support/simulate.ts'

const values: readonly [value: JsonValue, text: string][] = [
  [' as it is \n', ' as it is \n'],
  ['', ''],
  [{ ships: [3] }, '{"ships":[3]}'],
  [[], '[]'],
  [0, '0'],
  [false, 'false'],
]

test.each(
  values.flatMap(([value, text]) =>
    ['its argument', 'its result'].flatMap((from) =>
      [true, false].map((blocking) => [from, value, text, blocking] as const),
    ),
  ),
)(
  'SA-65 SA-69 a session tool whose text is %s %j tells the parent %j (blocking: %j)',
  async (from, value, text, blocking) => {
    const end = tool('end', () => value)
    const helper = child('helper', {
      script: [calls('end', { said: value })],
      tools: [end],
      sessionStop: from === 'its result' ? 'end' : { name: 'end', messageProperty: 'said' },
    })
    const top = solo('boss', {
      script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('I see.')),
      tools: [{ name: helper, blocking }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    const [made] = await it.events(id, 'subagent_created')
    const opening = `Subagent (reference: ${made!.reference}) has returned the following result:\n\n`
    const heard = requestsOf(top).flatMap(linesOf)
    expect(heard).toContain(
      blocking ? `tool_result: helper = ${JSON.stringify(text)}` : `user: ${opening}${text}`,
    )
  },
)

test('SA-57 SA-59 subagent_message does not reach a disposable child that works', async () => {
  const [begun, go] = [latch(), latch()]
  const once = child('once', {
    script: async () => {
      begun.open()
      await go.reached
      return finished('done')
    },
  })
  const top = solo('boss', {
    script: async (request, index) => {
      if (index === 0) return calls('once', { message: 'go' })
      if (index > 1) return says('I see.')
      await begun.reached
      const [, reference] = /reference: ([^)]+)/.exec(linesOf(request).join()) ?? []
      return calls('subagent_message', { reference, message: 'more' })
    },
    tools: [
      { name: once, blocking: false },
      { name: child('kept'), resumable: {} },
    ],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const [made] = await it.events(id, 'subagent_created')
  expect(requestsOf(top).flatMap(linesOf)).toContain(
    `tool_result: subagent_message ! There is no subagent with the reference "${made!.reference}". Create one with subagent_create.`,
  )
  expect(await it.events(made!.reference, 'message_queued')).toHaveLength(1)
  go.open()
  await it.idle()
})

test.each(['subagent_create', 'subagent_message'])(
  'SA-44 SA-67 two calls of %s in one message wait together: no child waits for the other',
  async (name) => {
    const begun: string[] = []
    const both = latch()
    const helper = child('helper', {
      script: async (request) => {
        const said = linesOf(request).at(-1)!
        if (said.includes('together')) {
          begun.push(said)
          if (begun.length === 2) both.open()
          await both.reached
        }
        return calls('finish', { summary: `heard ${said}` })
      },
    })
    const references: string[] = []
    const create = (named: string, message: string) =>
      calls('subagent_create', { agent: 'helper', name: named, message })
    const top = solo('boss', {
      script: (request, index) => {
        if (index > 1 || (index === 1 && name === 'subagent_create')) return says('Done.')
        if (index === 0)
          return ['Ada', 'Bob'].map((one) =>
            create(one, name === 'subagent_create' ? `${one}, together` : `Hello, ${one}`),
          )
        const found = linesOf(request)
          .join()
          .matchAll(/reference: ([0-9a-f-]+)\) has returned/g)
        for (const [, reference] of found) references.push(reference!)
        return references.map((reference) =>
          calls('subagent_message', { reference, message: 'together' }),
        )
      },
      tools: [{ name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    expect((await it.ask('hi')).text).toBe('Done.')
    expect(begun).toHaveLength(2)
  },
)

test.each(['a client', 'an endpoint', 'a tool'])(
  'SA-82 SA-83 a silent message of %s forces a turn, and the model receives it',
  async (by) => {
    const note = tool('note', (state) => state.queueMessage({ content: 'psst', isSilent: true }))
    const top = solo('boss', {
      script: (_, index) => (index === 0 && by === 'a tool' ? calls('note') : says('I see.')),
      tools: [note],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const before = by === 'a tool' ? 0 : requestsOf(top).length
    if (by === 'a client') await it.send(id, { text: 'psst', isSilent: true })
    if (by === 'an endpoint')
      await it.runtime.withState(id, (state) =>
        state.queueMessage({ content: 'psst', isSilent: true }),
      )
    await it.idle()
    const sent = requestsOf(top).slice(before)
    expect(linesOf(sent.at(-1))).toContain('user: psst')
    const shown = await it.threads.messages(id)
    expect(shown.map(({ message }) => message.text)).not.toContain('psst')
  },
)

test.each(['before', 'after'])(
  'SA-84 code that changes something %s it terminates the thread aborts the model, too',
  async (order) => {
    const started = latch<AbortSignal>()
    const top = solo('boss', {
      script: ({ signal }) => {
        started.open(signal)
        return [waits(Infinity)]
      },
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'hi' })
    const signal = await started.reached
    await it.runtime.withState(id, (state) => {
      if (order === 'before') state.setValue('key', 1)
      state.terminate()
      if (order === 'after') state.setValue('key', 1)
    })
    expect(signal.aborted).toBe(true)
    await it.idle()
    expect((await it.threads.get(id)).lifecycle).toBe('terminated')
  },
)

test('SA-69 SA-81 the report of a call that was stopped comes after what was queued before it', async () => {
  const top = solo('boss', {
    script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('I see.')),
    tools: [child('helper')],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  const commit = it.store.commit.bind(it.store)
  const closed = latch()
  it.store.commit = async (change) => {
    const isEnd = change.point.split('+').includes('session_end')
    // The stop, and then a message that starts nothing, come when the child is about to store its result.
    if (isEnd && change.threads[0]?.id !== id) {
      await it.threads.stop(id)
      await closed.reached
      await it.runtime.withState(id, (state) =>
        state.queueMessage({ content: 'earlier', isSilent: true }),
      )
    }
    const result = await commit(change)
    if (isEnd) closed.open()
    return result
  }
  await it.send(id, 'go')
  await closed.reached
  await it.idle()
  it.store.commit = commit
  await it.run(id, 'and?')
  const [made] = await it.events(id, 'subagent_created')
  const heard = linesOf(requestsOf(top).at(-1)).filter(
    (line) => !line.startsWith('user: [runtime]'),
  )
  expect(heard.slice(-3)).toEqual([
    'user: earlier',
    `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nhelper is done`,
    'user: and?',
  ])
})

test('SA-44 a message for whose answer the parent waits cannot be withdrawn from the child', async () => {
  const [begun, go] = [latch(), latch()]
  const helper = child('helper', {
    script: async (request) => {
      const said = linesOf(request).at(-1)!
      if (said.includes('busy')) {
        begun.open()
        await go.reached
      }
      return finished(`heard ${said}`)
    },
  })
  const top = solo('boss', {
    script: (request, index) => {
      if (index === 0)
        return calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'one' })
      if (index !== 2) return says('I see.')
      const [, reference] = /reference: ([0-9a-f-]+)/.exec(linesOf(request).join()) ?? []
      return calls('subagent_message', { reference, message: 'two' })
    },
    tools: [{ name: helper, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const reference = await childOf(it, id)
  await it.send(reference, 'be busy')
  await begun.reached
  await it.send(id, 'again')
  const queued = async () => (await it.events(reference, 'message_queued')).at(-1)!
  for await (const _ of it.runtime.subscribe(reference))
    if (JSON.stringify((await queued()).message).includes('two')) break
  const { queueId } = await queued()
  for (const withdraw of [it.threads.unsend, it.threads.deleteMessage])
    await expect(withdraw(reference, queueId)).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  go.open()
  await it.idle()
  expect(requestsOf(top).flatMap(linesOf).join()).toContain('heard user: two')
})
