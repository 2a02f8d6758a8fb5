// Whose turn it is, what each side then sees, and what counts as a turn.
import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { defineHook } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const look = tool('look')
const done = tool('done')

/** A tool that runs until it is asked to stop. */
function heldTool() {
  const started = latch()
  const held = tool('slow', (_state, _args, signal) => {
    started.open()
    return new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
    )
  })
  return { held, started: started.reached }
}

test('SA-06 a turn that a message cut short does not count against the cap', async () => {
  const { held, started } = heldTool()
  const agent = pair(
    'both',
    {
      a: { script: [calls('slow'), says('one'), says('three')], tools: [held] },
      b: { script: [says('two')] },
    },
    { maxSessionTurns: 3 },
  )
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const run = it.run(id, 'go')
  await started
  await it.send(id, { text: 'Faster.', ifBusy: 'cut' })
  expect(await run).toMatchObject({ outcome: 'failed', reason: 'max_session_turns' })
  expect((await it.events(id, 'turn_end')).map(({ outcome }) => outcome)).toEqual([
    'interrupted',
    'completed',
    'completed',
    'completed',
  ])
  expect(linesOf(requestsOf(agent, 'b')[0])).toEqual(['user: go', 'user: Faster.', 'user: one'])
})

test.each([
  ['user', 'a'],
  ['assistant', 'b'],
] as const)(
  'SA-15 a message for %s that cuts a turn is answered by side %s',
  async (role, next) => {
    for (const cut of ['a', 'b'] as const) {
      const { held, started } = heldTool()
      const ends = { tools: [held, done], sessionStop: 'done' }
      const agent = pair('both', {
        a: {
          ...ends,
          script: cut === 'a' ? [calls('slow'), calls('done')] : [says('x'), calls('done')],
        },
        b: { ...ends, script: cut === 'b' ? [calls('slow'), calls('done')] : [calls('done')] },
      })
      const it = await simulate({ agents: [agent] })
      const id = await it.create()
      const run = it.run(id, 'go')
      await started
      const before = (await it.events(id, 'turn_start')).length
      await it.send(id, { text: 'Now.', role, ifBusy: 'cut' })
      expect((await run).outcome).toBe('completed')
      const turns = (await it.events(id, 'turn_start')).slice(before)
      expect(turns.map(({ side }) => side)).toEqual([next])
    }
  },
)

describe('where side B is a person', () => {
  test('SA-14 every turn is side A’s, also after a resume and for a message to the person', async () => {
    const agent = solo('one', { script: () => says('Hello.') })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('hi')
    await it.threads.resume(id)
    await it.idle()
    await it.threads.resume(id, { side: 'b' })
    await it.idle()
    await it.run(id, { text: 'I said so.', role: 'assistant' })
    await it.idle()
    const turns = await it.events(id, 'turn_start')
    expect(turns.map(({ agentId, side }) => [agentId, side])).toEqual(
      [1, 2, 3, 4].map(() => ['one/a', 'a']),
    )
    const said = (await it.threads.messages(id)).filter(({ message }) => message.text === 'Hello.')
    expect(said.map(({ side }) => side)).toEqual(['a', 'a', 'a', 'a'])
    expect(linesOf(requestsOf(agent)[1]).slice(-2)).toEqual(['assistant: Hello.', 'user: Go on.'])
    expect(linesOf(requestsOf(agent)[3]).slice(-2)).toEqual([
      'assistant: I said so.',
      'user: Go on.',
    ])
    expect((await it.threads.get(id)).lifecycle).toBe('idle')
  })
})

describe('where both sides are models', () => {
  test.each([
    ['user', 'a'],
    ['assistant', 'b'],
  ] as const)(
    'SA-15 resume with a queued message for %s begins with side %s, whichever was cut',
    async (role, expected) => {
      for (const cut of ['a', 'b'] as const) {
        const { held, started } = heldTool()
        const ends = { tools: [held, done], sessionStop: 'done' }
        const agent = pair('both', {
          a: {
            ...ends,
            script: cut === 'a' ? [calls('slow'), calls('done')] : [says('x'), calls('done')],
          },
          b: { ...ends, script: cut === 'b' ? [calls('slow'), calls('done')] : [calls('done')] },
        })
        const it = await simulate({ agents: [agent] })
        const id = await it.create()
        const run = it.run(id, 'go')
        await started
        await it.threads.stop(id)
        await run
        // What code queues does not start a stopped thread.
        await it.runtime.withState(
          id,
          (state) => void state.queueMessage({ content: 'note', role }),
        )
        await it.idle()
        const before = (await it.events(id, 'turn_start')).length
        await it.threads.resume(id)
        await it.idle()
        const turns = (await it.events(id, 'turn_start')).slice(before)
        expect(turns.map(({ side }) => side)).toEqual([expected])
      }
    },
  )

  test('SA-15 the model that a message chose answers for side A alone', async () => {
    const spare = solo('spare', { script: () => says('by the spare model') })
    const agent = pair('both', {
      a: { script: [] },
      b: { script: [calls('done')], tools: [done], sessionStop: 'done' },
    })
    const it = await simulate({ agents: [agent, spare] })
    const id = await it.create()
    const { outcome } = await it.run(id, { text: 'go', model: 'spare_a' })
    expect(outcome).toBe('completed')
    expect(requestsOf(spare)).toHaveLength(1)
    expect(requestsOf(agent, 'a')).toHaveLength(0)
    expect(linesOf(requestsOf(agent, 'b')[0])).toEqual(['user: go', 'user: by the spare model'])
  })

  test('SA-16 what code says for a side is that side’s own speech', async () => {
    const inject = tool('inject', (state) => {
      state.injectMessage({ content: 'I said so.', role: 'assistant' })
      state.injectMessage({ content: 'They said so.' })
      state.injectMessage({ content: 'They say it again.', role: 'user' })
    })
    const agent = pair('both', {
      a: { script: [calls('inject'), says('one')], tools: [inject] },
      b: { script: [calls('done')], tools: [done], sessionStop: 'done' },
    })
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(linesOf(requestsOf(agent, 'a')[1])).toEqual([
      'user: go',
      'assistant:  [inject({})]',
      'tool_result: inject = null',
      'assistant: I said so.',
      'user: They said so.',
      'user: They say it again.',
    ])
    expect(linesOf(requestsOf(agent, 'b')[0])).toEqual([
      'user: go',
      'user: I said so.',
      'user: They said so.',
      'user: They say it again.',
      'user: one',
    ])
  })

  test('SA-16 a summary for one side is not shown to the other', async () => {
    const long = 'word '.repeat(200)
    const agent = pair(
      'both',
      {
        a: {
          script: ({ system }) => says(system === undefined ? 'They spoke of words.' : long),
          prompt: { compaction: { maxTokens: 400, keepMessages: 1 } },
        },
        b: { script: () => says('no') },
      },
      { maxSessionTurns: 6 },
    )
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    const summaries = (side: 'a' | 'b') =>
      requestsOf(agent, side)
        .filter(({ system }) => system !== undefined)
        .map((request) => linesOf(request).filter((line) => line.includes('[Summary')).length)
    expect(summaries('a').at(-1)).toBe(1)
    expect(summaries('b')).toEqual([0, 0, 0])
    expect(linesOf(requestsOf(agent, 'b').at(-1))[0]).toBe('user: go')
  })

  test('SA-16 a message with files to side B is, for side A, its own speech', async () => {
    const helper = pair('helper', {
      a: { script: [calls('done')], tools: [done], sessionStop: 'done' },
      b: { script: [says('reply')] },
    })
    const write = tool('write', async (state) => void (await state.writeFile('/plan.txt', 'x')))
    const boss = solo('boss', {
      script: [
        calls('write'),
        calls('subagent_create', { name: 'Ada', message: 'one', attachments: ['/plan.txt'] }),
        says('Thanks.'),
      ],
      tools: [write, { name: helper, resumable: { receives_messages: 'side_b' } }],
    })
    const it = await simulate({ agents: [boss] })
    await it.ask('go')
    expect(linesOf(requestsOf(helper, 'b')[0])).toEqual([
      expect.stringMatching(/^user: one\n*Attached files:\n\/attachments\/plan-\w+\.txt/),
    ])
    expect(linesOf(requestsOf(helper, 'a')[0])).toEqual([
      'user: Begin.',
      'assistant: one',
      'user: reply',
    ])
  })
})

describe('the end of a turn', () => {
  const broken = tool('broken', () => {
    throw new Error('out of paper')
  })
  const hide = defineHook({ id: 'hide', hook: 'after_tool_call_success', execute: () => null })

  test.each([
    ['succeeds', 'look', []],
    ['fails', 'broken', []],
    ['is hidden from the model', 'look', [hide]],
  ] as const)('SA-21 text next to a call that %s ends no turn', async (_, name, hooks) => {
    const agent = solo('one', {
      script: [[says('I try.'), calls(name)], says('Over.\n\nReally over.\n')],
      tools: [look, broken],
      prompt: { hooks },
    })
    const it = await simulate({ agents: [agent] })
    const { id, text } = await it.ask('go')
    expect(text).toBe('Over.\n\nReally over.\n')
    expect(requestsOf(agent)).toHaveLength(2)
    expect(await it.events(id, 'turn_end')).toMatchObject([{ reason: 'response' }])
  })

  test('SA-22 a stop tool whose call is refused ends the turn as one that ran', async () => {
    const rollback = () => ({ type: 'tool_call', target: 'nobody', payload: {} })
    const pay = tool('pay', undefined, { risk: 'write_high_risk', rollback })
    const agent = solo('one', {
      script: [[says('I pay.'), calls('pay')]],
      tools: [pay],
      stopTool: 'pay',
    })
    const it = await simulate({ agents: [agent] })
    const { id, outcome, reason, text } = await it.ask('go')
    expect({ outcome, reason, text }).toEqual({
      outcome: 'completed',
      reason: 'stop_tool',
      text: 'I pay.',
    })
    expect(await it.events(id, 'tool_execution_end')).toMatchObject([{ outcome: 'denied' }])
  })
})
