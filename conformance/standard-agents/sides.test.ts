import { describe, expect, test, vi } from 'vitest'
import { agent as uapAgent } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import type { SideConfig } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const done = tool('done')
const look = tool('look')

/** Side A speaks by script; side B ends the session as soon as it has its turn. */
const heardBy = (a: object, script: readonly ScriptStep[]) =>
  pair('heard', {
    a: { tools: [look, done], ...a, script },
    b: { script: () => calls('done'), tools: [done], sessionStop: 'done' },
  })

test('SA-15 both sides are models, and they take turns', async () => {
  const agent = pair('both', {
    a: { script: [says('one'), says('three')] },
    b: { script: [says('two'), calls('done')], tools: [done], sessionStop: 'done' },
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('Count.')
  expect(outcome).toBe('completed')
  expect(requestsOf(agent, 'a').map(({ system }) => system)).toEqual([
    'You are both_a.',
    'You are both_a.',
  ])
  expect(requestsOf(agent, 'b').map(({ system }) => system)).toEqual([
    'You are both_b.',
    'You are both_b.',
  ])
  const turns = await it.events(id, 'turn_start')
  expect(turns.map(({ agentId }) => agentId)).toEqual(['both/a', 'both/b', 'both/a', 'both/b'])
})

test('SA-16 each side sees itself as assistant and the other as user, without the other’s calls', async () => {
  const agent = pair('mirror', {
    a: { script: [calls('look', { at: 'a' }), says('draft 1'), says('draft 2')], tools: [look] },
    b: {
      script: [calls('look', { at: 'b' }), says('no'), calls('done')],
      tools: [look, done],
      sessionStop: 'done',
    },
  })
  const it = await simulate({ agents: [agent] })
  await it.ask('Write.')
  expect(linesOf(requestsOf(agent, 'a').at(-1))).toEqual([
    'user: Write.',
    'assistant:  [look({"at":"a"})]',
    'tool_result: look = "ok"',
    'assistant: draft 1',
    'user: no',
  ])
  expect(linesOf(requestsOf(agent, 'b').at(-1))).toEqual([
    'user: Write.',
    'user: draft 1',
    'assistant:  [look({"at":"b"})]',
    'tool_result: look = "ok"',
    'assistant: no',
    'user: draft 2',
  ])
})

test.each([
  [{}, {}],
  [{ includePastTools: false }, {}],
  [{}, { includePastTools: false }],
  [{ includePastTools: false }, { includePastTools: false }],
])('SA-16 so it is whichever side is not shown its past calls: %j and %j', async (a, b) => {
  const looks = (text: string) => [says(text), calls('look')]
  const agent = pair('mirror', {
    a: {
      script: [
        looks('I look.'),
        says('draft 1'),
        looks('Again.'),
        says('draft 2'),
        says('draft 3'),
      ],
      tools: [look],
      prompt: a,
    },
    b: {
      script: [looks('Well.'), says('no'), looks('Hm.'), says('no!'), calls('done')],
      tools: [look, done],
      sessionStop: 'done',
      prompt: b,
    },
  })
  const it = await simulate({ agents: [agent] })
  await it.ask('Write.')
  const looked = (text: string, { includePastTools = true }) =>
    includePastTools
      ? [`assistant: ${text} [look({})]`, 'tool_result: look = "ok"']
      : [`assistant: ${text}`]
  expect(linesOf(requestsOf(agent, 'a').at(-1))).toEqual([
    'user: Write.',
    ...looked('I look.', a),
    'assistant: draft 1',
    'user: Well.',
    'user: no',
    ...looked('Again.', a),
    'assistant: draft 2',
    'user: Hm.',
    'user: no!',
  ])
  expect(linesOf(requestsOf(agent, 'b').at(-1))).toEqual([
    'user: Write.',
    'user: I look.',
    'user: draft 1',
    ...looked('Well.', b),
    'assistant: no',
    'user: Again.',
    'user: draft 2',
    ...looked('Hm.', b),
    'assistant: no!',
    'user: draft 3',
  ])
})

test('SA-16 both sides see what a person attaches and what comes in the middle of a turn', async () => {
  const started = latch()
  const go = latch()
  const slow = tool('slow', async () => {
    started.open()
    await go.reached
    return 'ok'
  })
  const agent = pair('both', {
    a: { script: [says('draft 1'), says('draft 2')] },
    b: {
      script: [calls('slow'), says('no'), calls('done')],
      tools: [slow, done],
      sessionStop: 'done',
    },
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  await it.threads.files.write(id, '/plan.txt', new TextEncoder().encode('x'))
  const run = it.run(id, { text: 'Write.', attachments: ['/plan.txt'] })
  await started.reached
  await it.send(id, 'Hurry.')
  go.open()
  await run
  const asked = expect.stringMatching(
    /^user: Write\.\n*Attached files:\n\/plan\.txt \(text\/plain, 1 bytes\)$/,
  )
  expect(linesOf(requestsOf(agent, 'b')[1])).toEqual([
    asked,
    'user: draft 1',
    'assistant:  [slow({})]',
    'tool_result: slow = "ok"',
    'user: Hurry.',
  ])
  expect(linesOf(requestsOf(agent, 'a')[1])).toEqual([
    asked,
    'assistant: draft 1',
    'user: Hurry.',
    'user: no',
  ])
})

test('SA-15 SA-16 code in place of a model takes its turns, and sees what the other side says', async () => {
  const heard: string[] = []
  const handler: NonNullable<SideConfig['handler']> = (state, { message }) => {
    heard.push(message)
    if (heard.length === 2) state.stopSession({ result: 'enough' })
    return `I heard ${message}.`
  }
  const agent = pair(
    'both',
    { a: { script: [calls('look'), says('one'), says('two')], tools: [look] }, b: { script: [] } },
    { sideB: { handler } },
  )
  const it = await simulate({ agents: [agent] })
  expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'enough' })
  expect(heard).toEqual(['one', 'two'])
  expect(linesOf(requestsOf(agent, 'a')[2]).slice(-2)).toEqual([
    'assistant: one',
    'user: I heard one.',
  ])
})

test('SA-16 both sides learn what came of a child, whichever side started it', async () => {
  const helper = pair('helper', {
    a: { script: [calls('done')], tools: [done], sessionStop: 'done' },
    b: { script: [] },
  })
  const agent = pair('both', {
    a: {
      script: [
        calls('helper', { message: 'go' }),
        async () => {
          await vi.waitFor(
            async () => expect(await it.events(id, 'message_queued')).toHaveLength(2),
            { timeout: 20_000 },
          )
          return calls('look')
        },
        says('one'),
      ],
      tools: [look, { name: helper, blocking: false }],
    },
    b: { script: [calls('done')], tools: [done], sessionStop: 'done' },
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  await it.run(id, 'go')
  const [made] = await it.events(id, 'subagent_created')
  const report = `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nok`
  expect(linesOf(requestsOf(agent, 'a')[2])).toContain(report)
  expect(linesOf(requestsOf(agent, 'b')[0])).toContain(report)
})

test('SA-20 labels stand in the log and in the document of the thread', async () => {
  const agent = pair('labelled', {
    a: { label: 'Worker', script: [says('x')] },
    b: {
      label: 'Reviewer',
      script: [calls('done')],
      tools: [done],
      sessionStop: 'done',
    },
  })
  const it = await simulate({ agents: [agent] })
  const { id } = await it.ask('hi')
  const registered = (await it.events(id, 'agent_registered')).map(({ agent: one }) => one)
  expect(registered).toMatchObject([
    { agent_id: 'labelled/a', agent_name: 'Worker' },
    { agent_id: 'labelled/b', agent_name: 'Reviewer' },
  ])
  const { agents } = await it.threads.document(id)
  expect(Object.values(agents ?? {}).map((one) => [one.agent_id, one.agent_name])).toEqual([
    ['labelled/a', 'Worker'],
    ['labelled/b', 'Reviewer'],
  ])
})

test('SA-20 labels of a child, and of an agent that takes over, stand in the log of their thread', async () => {
  const helper = pair('helper', {
    a: { label: 'Worker', script: [calls('done')], tools: [done], sessionStop: 'done' },
    b: { label: 'Reviewer', script: [] },
  })
  const next = solo(
    'next',
    {
      label: 'Second desk',
      script: [calls('helper', { message: 'go' }), says('x')],
      tools: [helper],
    },
    { exposeAsTool: true, toolDescription: 'Takes over.' },
  )
  const top = solo('front', { label: 'First desk', script: [calls('next')], tools: [next] })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const labels = async (threadId: string) =>
    (await it.events(threadId, 'agent_registered')).map(({ agent: one }) => [
      one.agent_id,
      one.agent_name,
    ])
  expect(await labels(id)).toEqual([
    ['front/a', 'First desk'],
    ['next/a', 'Second desk'],
  ])
  const [made] = await it.events(id, 'subagent_created')
  expect(await labels(made!.reference)).toEqual([
    ['helper/a', 'Worker'],
    ['helper/b', 'Reviewer'],
  ])
})

describe('the end of a turn', () => {
  test('SA-21 by default text without calls ends it, and text with calls does not', async () => {
    const agent = heardBy({}, [[says('I look.'), calls('look')], says('Found.')])
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(requestsOf(agent, 'a')).toHaveLength(2)
    expect(linesOf(requestsOf(agent, 'b')[0])).toEqual([
      'user: go',
      'user: I look.',
      'user: Found.',
    ])
  })

  test('SA-21 with stopOnResponse false and a stop tool, text does not end it', async () => {
    const agent = heardBy({ stopOnResponse: false, stopTool: 'look' }, [
      says('Thinking.'),
      says('Still.'),
      calls('look'),
    ])
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(requestsOf(agent, 'a')).toHaveLength(3)
    // Asked again after its own words, it learns why.
    expect(linesOf(requestsOf(agent, 'a')[1])).toEqual([
      'user: go',
      'assistant: Thinking.',
      'user: Go on. Call look when you are done.',
    ])
    // What it receives is not for the other side.
    expect(linesOf(requestsOf(agent, 'b')[0])).toEqual([
      'user: go',
      'user: Thinking.',
      'user: Still.',
    ])
  })

  test('SA-21 a side without any stop rule hands over its words; calls, alone or next to words, keep the seat', async () => {
    const agent = heardBy({ stopOnResponse: false }, [
      calls('look'),
      [says('I look again.'), calls('look')],
      says('This is wrong.'),
    ])
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(requestsOf(agent, 'a')).toHaveLength(3)
    expect(linesOf(requestsOf(agent, 'b')[0])).toEqual([
      'user: go',
      'user: I look again.',
      'user: This is wrong.',
    ])
  })

  test('SA-22 a call of the stop tool ends it, with a person too', async () => {
    const agent = solo('asks', {
      script: [[says('Which one?'), calls('look')], says('not reached')],
      tools: [look],
      stopTool: 'look',
    })
    const it = await simulate({ agents: [agent] })
    const { outcome, reason, text } = await it.ask('go')
    expect({ outcome, reason, text }).toEqual({
      outcome: 'completed',
      reason: 'stop_tool',
      text: 'Which one?',
    })
    expect(requestsOf(agent)).toHaveLength(1)
  })

  test('SA-22 a stop tool that fails ends the turn as well', async () => {
    const broken = tool('broken', () => {
      throw new Error('out of paper')
    })
    const agent = heardBy({ tools: [broken], stopTool: 'broken' }, [
      [says('I print.'), calls('broken')],
    ])
    const it = await simulate({ agents: [agent] })
    const { id, outcome } = await it.ask('go')
    expect(outcome).toBe('completed')
    expect(requestsOf(agent, 'a')).toHaveLength(1)
    expect(requestsOf(agent, 'b')).toHaveLength(1)
    const ends = await it.events(id, 'tool_execution_end')
    expect(ends[0]).toMatchObject({ toolName: 'broken', outcome: 'failed' })
  })

  test.each([
    [
      'the arguments',
      { args: { text: 'from arguments' }, result: { text: 'from result' } },
      'from arguments',
    ],
    ['a JSON result', { args: {}, result: '{"text":"from result"}' }, 'from result'],
    ['a result that is an object', { args: {}, result: { text: 'from object' } }, 'from object'],
    ['arguments that are no text', { args: { text: { a: 1 } }, result: '' }, '{"a":1}'],
    ['an argument that is 0', { args: { text: 0 }, result: { text: 'from result' } }, '0'],
    ['a result that is false', { args: {}, result: { text: false } }, 'false'],
    [
      'the result, if null',
      { args: { text: null }, result: { text: 'from result' } },
      'from result',
    ],
    ['nowhere', { args: {}, result: 'plain words' }, 'And this.'],
    ['nowhere, if both are null', { args: { text: null }, result: '{"text":null}' }, 'And this.'],
    ['nowhere, if the result is null', { args: {}, result: null }, 'And this.'],
    [
      'nowhere, though the result has other properties',
      { args: { result: 'a', message: 'b' }, result: { result: 'c', message: 'd' } },
      'And this.',
    ],
    [
      'all of a text with paragraphs',
      { args: { text: 'One.\n\nTwo.\n' }, result: '' },
      'One.\n\nTwo.\n',
    ],
  ])('SA-23 the text of a stopped turn comes from %s', async (_, { args, result }, expected) => {
    const say = tool('say', () => result)
    const side = { tools: [say], stopTool: 'say', stopToolResponseProperty: 'text' }
    const script = [[says('And this.'), calls('say', args)]]
    const both = heardBy(side, script)
    const one = solo('one', { ...side, script })
    const it = await simulate({ agents: [both, one] })
    await it.ask('go')
    expect(linesOf(requestsOf(both, 'b')[0]).at(-1)).toBe(`user: ${expected}`)
    const id = await it.create({ agent: 'one' })
    expect((await it.run(id, 'go')).text).toBe(expected)
    const last = (await it.threads.messages(id)).findLast(
      ({ message }) => message.type === 'assistant',
    )
    expect(last?.message.type === 'assistant' && last.message.text).toBe(expected)
  })

  test('SA-16 SA-23 what the stop tool of side B says is side B’s own speech', async () => {
    const say = tool('say')
    const agent = pair('both', {
      a: { script: [says('one'), says('three')] },
      b: {
        script: [calls('say', { text: 'two' }), calls('done')],
        tools: [say, done],
        stopTool: 'say',
        stopToolResponseProperty: 'text',
        sessionStop: 'done',
      },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('go')
    expect(linesOf(requestsOf(agent, 'a')[1])).toEqual(['user: go', 'assistant: one', 'user: two'])
    expect(linesOf(requestsOf(agent, 'b')[1]).slice(-2)).toEqual(['assistant: two', 'user: three'])
    const said = (await it.events(id, 'message_added')).find(({ message }) =>
      JSON.stringify(message).includes('"two"'),
    )
    expect(said).toMatchObject({ side: 'b' })
  })

  test('SA-06 SA-23 what the stop tool says in the last turn allowed is in the history', async () => {
    const say = tool('say')
    const agent = pair(
      'short',
      {
        a: {
          script: [calls('say', { text: 'last words' })],
          tools: [say],
          stopTool: 'say',
          stopToolResponseProperty: 'text',
        },
        b: { script: [] },
      },
      { maxSessionTurns: 1 },
    )
    const it = await simulate({ agents: [agent] })
    const { id, reason } = await it.ask('go')
    expect(reason).toBe('max_session_turns')
    const texts = (await it.threads.messages(id)).map(({ message }) =>
      message.type === 'tool_result' ? '' : message.text,
    )
    expect(texts.at(-1)).toBe('last words')
  })

  test('SA-21 side B is asked to continue as side A is, and side A does not hear of it', async () => {
    const agent = pair('both', {
      a: { script: [says('one'), says('two')] },
      b: {
        script: [says('Thinking.'), calls('look'), calls('done')],
        tools: [look, done],
        stopOnResponse: false,
        stopTool: 'look',
        sessionStop: 'done',
      },
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('go')
    const all = await it.threads.messages(id, { includeSilent: true })
    const notes = all.filter(({ metadata }) => metadata?.['kind'] === 'nudge')
    expect(notes.map(({ side, metadata }) => [side, metadata?.['for']])).toEqual([['a', 'b']])
    expect(linesOf(requestsOf(agent, 'b')[1])).toEqual([
      'user: go',
      'user: one',
      'assistant: Thinking.',
      'user: Go on. Call look when you are done.',
    ])
    expect(linesOf(requestsOf(agent, 'a')[1])).toEqual([
      'user: go',
      'assistant: one',
      'user: Thinking.',
    ])
  })

  test('SA-24 steps are counted per side and per session', async () => {
    const agent = pair('capped', {
      a: { script: () => calls('look'), tools: [look], maxSteps: 3, label: 'Worker' },
      b: { script: () => says('x') },
    })
    const it = await simulate({ agents: [agent] })
    const { id, outcome, reason } = await it.ask('go')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'max_side_steps' })
    expect(requestsOf(agent, 'a')).toHaveLength(3)
    expect((await it.events(id, 'session_end'))[0]?.message).toContain('Worker')
    await it.run(id, 'again')
    expect(requestsOf(agent, 'a')).toHaveLength(6)
  })

  test('SA-24 a side that has used its steps gets no further turn, and its cap ends the session', async () => {
    const agent = pair('capped', {
      a: { script: () => says('draft'), maxSteps: 2, label: 'Worker' },
      b: { script: () => says('no') },
    })
    const it = await simulate({ agents: [agent] })
    const { outcome, reason, text } = await it.ask('go')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'max_side_steps' })
    expect(text).toContain('Worker')
    expect(requestsOf(agent, 'a')).toHaveLength(2)
    expect(requestsOf(agent, 'b')).toHaveLength(2)
  })

  test('SA-21 blank text is no response', async () => {
    const agent = heardBy({}, [says('  \n'), says('Found.')])
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(requestsOf(agent, 'a')).toHaveLength(2)
    expect(linesOf(requestsOf(agent, 'b')[0]).at(-1)).toBe('user: Found.')
  })

  test('SA-24 the cap of one side is not the other’s', async () => {
    const agent = pair('uneven', {
      a: { script: () => says('draft'), maxSteps: 2 },
      b: {
        script: [calls('look'), calls('look'), calls('look'), says('no'), calls('done')],
        tools: [look, done],
        sessionStop: 'done',
      },
    })
    const it = await simulate({ agents: [agent] })
    const { outcome, reason } = await it.ask('go')
    expect({ outcome, reason }).toEqual({ outcome: 'completed', reason: 'session_stop' })
    expect(requestsOf(agent, 'b')).toHaveLength(5)
  })

  test('SA-24 nor do the thoughts of an agent() on side B count for side A', async () => {
    const note = {
      name: 'note',
      description: 'Takes a note.',
      parameters: { type: 'object' },
      run: () => 'noted',
    }
    const thinks = scripted(({ tools }) => says(tools.length > 0 ? 'no' : 'Let me think.'))
    const duo = pair(
      'thoughtful',
      {
        a: {
          script: [says('one'), says('two'), calls('done')],
          tools: [done],
          sessionStop: 'done',
          maxSteps: 3,
        },
        b: { script: [] },
      },
      { sideB: { agent: uapAgent({ model: thinks, tools: [note], execution: react() }) } },
    )
    const it = await simulate({ agents: [duo] })
    const { outcome, reason } = await it.ask('go')
    expect({ outcome, reason }).toEqual({ outcome: 'completed', reason: 'session_stop' })
    expect(requestsOf(duo, 'a')).toHaveLength(3)
    expect(thinks.requests).toHaveLength(4)
  })
})
