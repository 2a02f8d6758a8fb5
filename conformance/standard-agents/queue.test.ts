import { describe, expect, test } from 'vitest'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import { UserMessage } from '@skein/ai'
import { defineHook } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

/** A tool that waits until the test lets it go, or the run is aborted. */
function heldTool(name: string) {
  const started = latch<AbortSignal>()
  const go = latch()
  const held = tool(name, async (_, __, signal) => {
    started.open(signal)
    await new Promise<void>((resolve, reject) => {
      void go.reached.then(resolve)
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
    })
    return 'ok'
  })
  return { held, started: started.reached, go }
}

test('SA-82 a message that comes while a tool runs is in the next request', async () => {
  const { held, started, go } = heldTool('slow')
  const agent = solo('busy', { script: [calls('slow'), says('Both.')], tools: [held] })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const first = it.run(id, 'first')
  await started
  await it.send(id, 'second')
  await it.send(id, 'third')
  go.open()
  expect((await first).text).toBe('Both.')
  await it.idle()
  expect(linesOf(requestsOf(agent)[1])).toEqual([
    'user: first',
    'assistant:  [slow({})]',
    'tool_result: slow = "ok"',
    'user: second',
    'user: third',
  ])
  expect(requestsOf(agent)).toHaveLength(2)
})

test('SA-82 a message that comes while side B works is in the next request of side B', async () => {
  const { held, started, go } = heldTool('slow')
  const done = tool('done')
  const agent = pair('both', {
    a: { script: [says('draft')] },
    b: { script: [calls('slow'), calls('done')], tools: [held, done], sessionStop: 'done' },
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const run = it.run(id, 'first')
  await started
  await it.send(id, 'second')
  go.open()
  await run
  await it.idle()
  expect(linesOf(requestsOf(agent, 'b')[1])).toEqual([
    'user: first',
    'user: draft',
    'assistant:  [slow({})]',
    'tool_result: slow = "ok"',
    'user: second',
  ])
})

test('SA-82 a message that comes while the thread waits to ask its model again is in that request', async () => {
  const agent = solo('patient', {
    script: [fails({ code: 'RATE_LIMITED', message: 'Busy.' }), says('Both.')],
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create({ message: 'first' })
  await it.idle()
  expect(requestsOf(agent)).toHaveLength(1)
  await it.send(id, 'second')
  await it.idle()
  await it.advance(600_000)
  expect(requestsOf(agent).map(linesOf)).toEqual([['user: first'], ['user: first', 'user: second']])
})

test('SA-83 a report forces the next turn also of a thread whose last session failed', async () => {
  const go = latch()
  const done = tool('done', () => 'found')
  const helper = pair('helper', {
    a: {
      script: async () => {
        await go.reached
        return calls('done')
      },
      tools: [done],
      sessionStop: 'done',
    },
    b: { script: [] },
  })
  const agent = solo('boss', {
    script: [
      calls('helper', { message: 'go' }),
      fails({ code: 'INVALID_REQUEST' }),
      says('I see.'),
    ],
    tools: [{ name: helper, blocking: false }],
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('hi')
  expect(outcome).toBe('failed')
  go.open()
  await it.idle()
  expect((await it.events(id, 'session_end')).map((end) => end.outcome)).toEqual([
    'failed',
    'completed',
  ])
})

test('SA-83 a message to a thread that does nothing forces the next turn', async () => {
  const agent = solo('idle', { script: () => says('Yes.') })
  const it = await simulate({ agents: [agent] })
  const { id } = await it.ask('one')
  await it.idle()
  await it.send(id, 'two')
  await it.idle()
  expect(requestsOf(agent)).toHaveLength(2)
  expect(await it.events(id, 'session_end')).toHaveLength(2)
})

test('SA-83 a message that comes while the model gives its last answer forces another turn', async () => {
  const asked = latch()
  const answer = latch()
  const agent = solo('last', {
    script: [
      async () => {
        asked.open()
        await answer.reached
        return says('One.')
      },
      says('Two.'),
    ],
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const first = it.run(id, 'first')
  await asked.reached
  const second = it.run(id, 'second')
  answer.open()
  expect((await first).text).toBe('One.')
  expect((await second).text).toBe('Two.')
  expect(linesOf(requestsOf(agent)[1])).toEqual(['user: first', 'assistant: One.', 'user: second'])
})

test('SA-81 what is queued is taken in order, by another runtime too', async () => {
  const agent = solo('orderly', { script: [says('All.')] })
  const it = await simulate({ agents: [agent], starts: false })
  const id = await it.create()
  for (const text of ['one', 'two', 'three']) await it.send(id, text)
  expect(requestsOf(agent)).toHaveLength(0)
  const again = await it.restart({ starts: true })
  await again.idle()
  expect(linesOf(requestsOf(agent)[0])).toEqual(['user: one', 'user: two', 'user: three'])
  expect(requestsOf(agent)).toHaveLength(1)
})

test('SA-81 sending twice with one id queues once; a message that waits can be taken back', async () => {
  const agent = solo('once', { script: [says('Ok.')] })
  const it = await simulate({ agents: [agent], starts: false })
  const id = await it.create()
  const sent = await it.threads.send(id, { text: 'one', messageId: 'm1' })
  expect(await it.threads.send(id, { text: 'one', messageId: 'm1' })).toEqual(sent)
  const { queueId } = await it.threads.send(id, 'two')
  expect(await it.threads.unsend(id, queueId)).toBe(true)
  await it.runtime.start()
  await it.idle()
  expect(linesOf(requestsOf(agent)[0])).toEqual(['user: one'])
  expect(await it.threads.unsend(id, 'm1')).toBe(false)
})

test('SA-81 a message that was taken is not queued again when it is sent again', async () => {
  const agent = solo('once', { script: () => says('Ok.') })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const sent = await it.threads.send(id, { text: 'one', messageId: 'm1' })
  await it.idle()
  expect(await it.threads.send(id, { text: 'one', messageId: 'm1' })).toEqual(sent)
  const again = await it.restart()
  expect(await again.threads.send(id, { text: 'one', messageId: 'm1' })).toEqual(sent)
  await again.idle()
  expect(await again.events(id, 'message_queued')).toHaveLength(1)
  expect(requestsOf(agent)).toHaveLength(1)
})

test('SA-81 what is taken back leaves the others in their order', async () => {
  const agent = solo('once', { script: () => says('Ok.') })
  const it = await simulate({ agents: [agent], starts: false })
  const id = await it.create()
  const ids: string[] = []
  for (const text of ['one', 'two', 'three', 'four']) ids.push(await it.send(id, text))
  expect(await it.threads.unsend(id, ids[1]!)).toBe(true)
  expect(await it.threads.unsend(id, ids[1]!)).toBe(false)
  expect(await it.threads.unsend(id, 'nobody')).toBe(false)
  await it.send(id, 'five')
  const again = await it.restart({ starts: true })
  await again.idle()
  expect(linesOf(requestsOf(agent)[0])).toEqual(
    ['one', 'three', 'four', 'five'].map((text) => `user: ${text}`),
  )
})

test('SA-81 a message that two writers queued under one id is taken once', async () => {
  const agent = solo('once', { script: () => says('Ok.') })
  const it = await simulate({ agents: [agent], starts: false })
  const id = await it.create()
  await it.send(id, { text: 'one', messageId: 'm1' })
  const append = await it.events(id, 'message_queued')
  await it.store.commit({ point: 'send_message', threads: [{ id, append }] })
  await it.send(id, 'two')
  await it.runtime.start()
  await it.idle()
  expect(requestsOf(agent).map(linesOf)).toEqual([['user: one', 'user: two']])
})

test('SA-81 a report keeps its place among the messages of people', async () => {
  const agent = solo('once', { script: () => says('Ok.') })
  const it = await simulate({ agents: [agent], starts: false })
  const id = await it.create()
  for (const [text, isSilent] of [
    ['one', false],
    ['a report', true],
    ['two', false],
  ] as const)
    await it.send(id, { text, isSilent })
  await it.runtime.start()
  await it.idle()
  expect(linesOf(requestsOf(agent)[0])).toEqual(['user: one', 'user: a report', 'user: two'])
})

test('SA-83 a message that an endpoint queues forces the next turn', async () => {
  const agent = solo('idle', { script: () => says('Yes.') })
  const it = await simulate({ agents: [agent] })
  const { id } = await it.ask('one')
  await it.idle()
  await it.runtime.withState(id, (state) => void state.queueMessage({ content: 'two' }))
  await it.idle()
  expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe('user: two')
})

describe('the side that answers', () => {
  const done = tool('done')
  const both = () =>
    pair('both', {
      a: { script: () => calls('done'), tools: [done], sessionStop: 'done' },
      b: { script: () => calls('done'), tools: [done], sessionStop: 'done' },
    })

  test.each([
    [['user'], 'a'],
    [['assistant'], 'b'],
    [['assistant', 'user'], 'a'],
    [['user', 'assistant'], 'b'],
  ] as const)('SA-83 the last queued message decides: %s', async (roles, side) => {
    const agent = both()
    const it = await simulate({ agents: [agent], starts: false })
    const id = await it.create()
    for (const role of roles) await it.send(id, { text: `as ${role}`, role })
    await it.runtime.start()
    await it.idle()
    const other = side === 'a' ? 'b' : 'a'
    expect(requestsOf(agent, side)).toHaveLength(1)
    expect(requestsOf(agent, other)).toHaveLength(0)
    // What is said in side A's name is side A's own speech.
    const seen = (role: string) => (role === 'assistant' && side === 'a' ? 'assistant' : 'user')
    const lines = roles.map((role) => `${seen(role)}: as ${role}`)
    // Vendors want a user's line first.
    const opening = lines[0]!.startsWith('assistant') ? ['user: Begin.'] : []
    expect(linesOf(requestsOf(agent, side)[0])).toEqual([...opening, ...lines])
  })
})

test.each(['user', 'assistant'] as const)(
  'SA-83 a message that an endpoint queues as %s asks the side that it is for',
  async (role) => {
    const done = tool('done')
    const side = () => ({ script: () => calls('done'), tools: [done], sessionStop: 'done' })
    const it = await simulate({ agents: [pair('both', { a: side(), b: side() })] })
    const id = await it.create()
    await it.runtime.withState(id, (state) => void state.queueMessage({ content: 'hi', role }))
    await it.idle()
    expect((await it.events(id, 'turn_start')).map((turn) => turn.side)).toEqual([
      role === 'user' ? 'a' : 'b',
    ])
  },
)

test('SA-83 where side B is a person, side A answers whatever was queued', async () => {
  const agent = solo('one', { script: () => says('Yes.') })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  expect((await it.run(id, { text: 'in your name', role: 'assistant' })).text).toBe('Yes.')
  expect(await it.events(id, 'turn_start')).toMatchObject([{ side: 'a', agentId: 'one/a' }])
  expect((await it.threads.messages(id)).map(({ side }) => side)).toEqual(['a', 'a'])
})

test('SA-81 a message is taken with everything it was sent with', async () => {
  const agent = solo('one', { script: () => says('Yes.') })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  await it.threads.files.write(id, '/a.txt', new TextEncoder().encode('x'))
  const sent = { userId: 'ann', metadata: { page: 7 }, attachments: ['/a.txt'], isSilent: true }
  await it.run(id, { text: 'hi', messageId: 'm1', ...sent })
  const [added] = await it.events(id, 'message_added')
  expect(added).toMatchObject({ queueId: 'm1', side: 'b', ...sent })
  expect(await it.threads.messages(id, { includeSilent: true })).toMatchObject([
    { id: 'm1', side: 'b', isSilent: true, metadata: { page: 7 }, attachments: ['/a.txt'] },
    { side: 'a', isSilent: false },
  ])
})

test('SA-82 SA-83 queued and first messages pass the create hooks, and keep their id', async () => {
  const stored: string[] = []
  const hooks = [
    defineHook({
      id: 'shout',
      hook: 'before_create_message',
      execute: (_, { message }) =>
        message.type === 'user'
          ? { message: new UserMessage(message.text.toUpperCase()) }
          : undefined,
    }),
    defineHook({
      id: 'note',
      hook: 'after_create_message',
      execute: (_, { message, side }) => {
        stored.push(`${side}: ${message.type === 'tool_result' ? '' : message.text}`)
      },
    }),
  ]
  const { held, started, go } = heldTool('slow')
  const agent = solo('hooked', {
    script: [calls('slow'), says('Ok.')],
    tools: [held],
    prompt: { hooks },
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create({ message: { text: 'first', messageId: 'm1' } })
  await started
  await it.send(id, { text: 'second', messageId: 'm2' })
  go.open()
  await it.idle()
  expect(linesOf(requestsOf(agent)[1])).toEqual([
    'user: FIRST',
    'assistant:  [slow({})]',
    'tool_result: slow = "ok"',
    'user: SECOND',
  ])
  expect(stored).toEqual(['b: FIRST', 'a: ', 'b: SECOND', 'a: Ok.'])
  const ids = (await it.threads.messages(id)).map((one) => one.id)
  expect(ids).toEqual(expect.arrayContaining(['m1', 'm2']))
})

describe('the stop button', () => {
  test('what was said stays, and the next message continues', async () => {
    const spoke = latch()
    const model = scripted([
      async () => {
        spoke.open()
        return [says('It was a dark and'), waits(Infinity)]
      },
      says('Fine.'),
    ])
    const agent = solo('teller', { script: model })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const live = latch()
    void (async () => {
      for await (const { event } of it.runtime.subscribe(id))
        if (event.type === 'text_delta' && event.text.includes('and')) live.open()
    })()
    const run = it.run(id, 'tell')
    await live.reached
    await it.threads.stop(id, { by: 'ann' })
    expect(await run).toMatchObject({ outcome: 'stopped', text: 'It was a dark and' })
    await it.idle()
    expect((await it.threads.get(id)).lifecycle).toBe('stopped')
    expect((await it.run(id, 'shorter')).text).toBe('Fine.')
    expect(linesOf(requestsOf(agent)[1])).toEqual([
      'user: tell',
      'assistant: It was a dark and',
      'user: shorter',
    ])
  })

  test('calls without a result get an error, so that the history stays valid', async () => {
    const { held, started } = heldTool('slow')
    const agent = solo('busy', {
      script: [[calls('quick'), calls('slow'), calls('quick')], says('Ok.')],
      tools: [held, tool('quick')],
    })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const run = it.run(id, 'go')
    const signal = await started
    await it.threads.stop(id)
    expect((await run).outcome).toBe('stopped')
    expect(signal.aborted).toBe(true)
    await it.run(id, 'and now?')
    expect(linesOf(requestsOf(agent)[1]).slice(2)).toEqual([
      'tool_result: quick = "ok", slow ! The user stopped the run. This call has no result., quick ! The user stopped the run. This call was not run.',
      'user: and now?',
    ])
  })

  test('after the running step, when asked to wait for it', async () => {
    const { held, started, go } = heldTool('slow')
    const agent = solo('busy', { script: [calls('slow'), says('Ok.')], tools: [held] })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const run = it.run(id, 'go')
    const signal = await started
    await it.threads.stop(id, { afterStep: true })
    expect(signal.aborted).toBe(false)
    go.open()
    expect((await run).outcome).toBe('stopped')
    expect(requestsOf(agent)).toHaveLength(1)
    await it.threads.resume(id)
    await it.idle()
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe('tool_result: slow = "ok"')
  })

  test('what a tool or a child queued waits for the next message of a person, in order', async () => {
    const { held, started } = heldTool('slow')
    const agent = solo('busy', { script: [calls('slow'), says('Ok.')], tools: [held] })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const run = it.run(id, 'go')
    await started
    await it.threads.stop(id)
    await run
    await it.runtime.withState(id, (state) => void state.queueMessage({ content: 'a report' }))
    await it.idle()
    expect(requestsOf(agent)).toHaveLength(1)
    await it.run(id, 'continue')
    expect(linesOf(requestsOf(agent)[1]).slice(-2)).toEqual(['user: a report', 'user: continue'])
  })

  test('resume continues without a message; on a thread at work it does nothing', async () => {
    const { held, started } = heldTool('slow')
    const agent = solo('busy', { script: [calls('slow'), says('Ok.')], tools: [held] })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const run = it.run(id, 'go')
    await started
    await it.threads.resume(id)
    expect(await it.events(id, 'resume_requested')).toHaveLength(0)
    await it.threads.stop(id)
    await run
    await it.threads.resume(id, { by: 'ann' })
    await it.idle()
    expect((await it.threads.settled(id)).text).toBe('Ok.')
    expect(requestsOf(agent)).toHaveLength(2)
  })

  test('what people sent before the stop waits with the rest; what they send after it continues', async () => {
    const { held, started } = heldTool('slow')
    const agent = solo('busy', { script: [calls('slow'), says('Ok.')], tools: [held] })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const run = it.run(id, 'go')
    await started
    await it.send(id, 'before')
    await it.threads.stop(id)
    await run
    await it.idle()
    expect(requestsOf(agent)).toHaveLength(1)
    await it.run(id, 'after')
    expect(linesOf(requestsOf(agent)[1]).slice(-2)).toEqual(['user: before', 'user: after'])
  })

  test('SA-83 resume begins with the side that it names', async () => {
    const done = tool('done')
    const both = pair('both', {
      a: { script: () => calls('done'), tools: [done], sessionStop: 'done' },
      b: { script: () => calls('done'), tools: [done], sessionStop: 'done' },
    })
    const it = await simulate({ agents: [both] })
    const asked = () => [requestsOf(both, 'a').length, requestsOf(both, 'b').length]
    const id = await it.create()
    await it.run(id, 'go')
    expect(asked()).toEqual([1, 0])
    await it.threads.resume(id, { side: 'b' })
    await it.idle()
    expect(asked()).toEqual([1, 1])
    // The side that was next is not asked, if the other one is named.
    await it.threads.resume(id, { side: 'b' })
    await it.idle()
    expect(asked()).toEqual([1, 2])
    await it.threads.resume(id, { side: 'a' })
    await it.idle()
    expect(asked()).toEqual([2, 2])
    await it.threads.resume(id, { side: 'a' })
    await it.idle()
    expect(asked()).toEqual([3, 2])
  })

  test.each([
    ['a', 'assistant', ['a', 'b']],
    ['b', 'user', ['a', 'b', 'a']],
  ] as const)(
    'SA-83 resume after a stop in the turn of side %s begins with the side that a waiting message for %s asks',
    async (cut, role, turns) => {
      const { held, started } = heldTool('slow')
      const done = tool('done')
      const side = (name: 'a' | 'b') => ({
        script: (_: unknown, index: number) => {
          if (index > 0 || (cut === 'a' && name === 'b')) return calls('done')
          return name === cut ? calls('slow') : says('draft')
        },
        tools: [held, done],
        sessionStop: 'done',
      })
      const agent = pair('both', { a: side('a'), b: side('b') })
      const it = await simulate({ agents: [agent] })
      const id = await it.create()
      const run = it.run(id, 'go')
      await started
      await it.send(id, { text: 'one', role: role === 'user' ? 'assistant' : 'user' })
      await it.send(id, { text: 'two', role })
      await it.threads.stop(id)
      await run
      await it.threads.resume(id)
      await it.idle()
      expect((await it.events(id, 'turn_start')).map((turn) => turn.side)).toEqual(turns)
      expect(linesOf(requestsOf(agent, turns.at(-1)!).at(-1)).at(-1)).toBe('user: two')
    },
  )

  test.each(['a', 'b'] as const)(
    'SA-83 resume begins with side %s that it names, whatever waits',
    async (named) => {
      const done = tool('done')
      const side = () => ({ script: () => calls('done'), tools: [done], sessionStop: 'done' })
      const both = pair('both', { a: side(), b: side() })
      const before = await simulate({ agents: [both], starts: false })
      const id = await before.create()
      await before.send(id, { text: 'hi', role: named === 'a' ? 'assistant' : 'user' })
      await before.threads.stop(id)
      await before.threads.resume(id, { side: named })
      await before.runtime.start()
      await before.idle()
      expect((await before.events(id, 'turn_start')).map((turn) => turn.side)).toEqual([named])
    },
  )

  test('SA-06 SA-83 resume after the cap continues with the other side, whose turn it is', async () => {
    const agent = pair(
      'both',
      { a: { script: () => says('draft') }, b: { script: () => says('no') } },
      { maxSessionTurns: 1 },
    )
    const it = await simulate({ agents: [agent] })
    const asked = () => [requestsOf(agent, 'a').length, requestsOf(agent, 'b').length]
    const { id, reason } = await it.ask('go')
    expect(reason).toBe('max_session_turns')
    expect(asked()).toEqual([1, 0])
    await it.threads.resume(id)
    await it.idle()
    expect(asked()).toEqual([1, 1])
  })

  test('resume after a stop lets the side continue whose turn was cut', async () => {
    const { held, started } = heldTool('slow')
    const done = tool('done')
    const agent = pair('both', {
      a: { script: () => says('draft') },
      b: { script: [calls('slow'), calls('done')], tools: [held, done], sessionStop: 'done' },
    })
    const it = await simulate({ agents: [agent] })
    const id = await it.create()
    const run = it.run(id, 'go')
    await started
    await it.threads.stop(id)
    await run
    await it.threads.resume(id)
    await it.idle()
    expect(requestsOf(agent, 'a')).toHaveLength(1)
    expect(requestsOf(agent, 'b')).toHaveLength(2)
  })
})

describe('changed messages', () => {
  test('an edited message is what the next request has, a deleted one is not in it', async () => {
    const agent = solo('edited', {
      script: [[says('I look.'), calls('look')], says('Blue.'), says('Green.')],
      tools: [tool('look')],
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('colour of the sky?')
    const [question, looked, , answer] = await it.threads.messages(id)
    await it.threads.updateMessage(id, question!.id, 'colour of the grass?')
    await it.threads.updateMessage(id, looked!.id, 'Let me see.')
    await it.threads.deleteMessage(id, answer!.id)
    await it.run(id, 'well?')
    expect(linesOf(requestsOf(agent)[2])).toEqual([
      'user: colour of the grass?',
      'assistant: Let me see. [look({})]',
      'tool_result: look = "ok"',
      'user: well?',
    ])
    await it.threads.deleteMessage(id, looked!.id)
    const texts = (await it.threads.messages(id)).map(({ message }) => message.type)
    expect(texts).not.toContain('tool_result')
  })
})
