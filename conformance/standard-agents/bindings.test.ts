import { describe, expect, test } from 'vitest'
import { agent as uapAgent } from '@skein/agents'
import { loop } from '@skein/agents/execution'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { defineAgent, type SessionToolBinding } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import type { SideSetup } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const end = tool('end', () => 'told by the tool')
const write = tool('write', async (state, { path }) => {
  await state.writeFile(String(path), 'content')
})

/** A pair whose side B ends the session as the binding says. */
const ended = (b: Omit<SideSetup, 'script'>, script: readonly ScriptStep[]) =>
  pair('ended', { a: { script: () => says('draft') }, b: { tools: [end, write], ...b, script } })

test('SA-25 sessionStop ends the session as completed, on either side', async () => {
  const byB = ended({ sessionStop: 'end' }, [says('not yet'), calls('end')])
  const byA = pair('by_a', {
    a: { script: [calls('end'), says('later')], tools: [end], sessionStop: 'end' },
    b: { script: () => says('never') },
  })
  const it = await simulate({ agents: [byB, byA] })
  const { id, outcome, reason } = await it.ask('go')
  expect({ outcome, reason }).toEqual({ outcome: 'completed', reason: 'session_stop' })
  expect(requestsOf(byB, 'b')).toHaveLength(2)
  expect(await it.events(id, 'session_end')).toHaveLength(1)
  const other = await it.create({ agent: 'by_a' })
  expect((await it.run(other, 'go')).reason).toBe('session_stop')
  expect(requestsOf(byA, 'a')).toHaveLength(1)
  expect(requestsOf(byA, 'b')).toHaveLength(0)
})

test('SA-26 sessionFail ends it as failed, and the thread can continue afterwards', async () => {
  const agent = ended({ sessionFail: 'end' }, [calls('end'), calls('end')])
  const it = await simulate({ agents: [agent] })
  const { id, outcome, reason, text } = await it.ask('go')
  expect({ outcome, reason, text }).toEqual({
    outcome: 'failed',
    reason: 'session_fail',
    text: 'told by the tool',
  })
  await it.idle()
  expect((await it.threads.get(id)).lifecycle).toBe('failed')
  expect((await it.run(id, 'try again')).reason).toBe('session_fail')
  expect(requestsOf(agent, 'b')).toHaveLength(2)
})

test('SA-25 SA-26 a terminal call that fails ends nothing', async () => {
  let tries = 0
  const flaky = tool('flaky', () => {
    if (++tries === 1) throw new Error('not now')
    return 'done'
  })
  const agent = ended({ tools: [flaky], sessionStop: 'flaky' }, [calls('flaky'), calls('flaky')])
  const it = await simulate({ agents: [agent] })
  expect((await it.ask('go')).outcome).toBe('completed')
  expect(linesOf(requestsOf(agent, 'b')[1]).at(-1)).toBe('tool_result: flaky ! not now')
})

test('SA-27 sessionStatus publishes its text and the run continues', async () => {
  const binding = { name: 'end', messageProperty: 'status' }
  const agent = solo('tells', {
    script: [calls('end', { status: 'half way' }), says('Done.')],
    tools: [end],
    sessionStatus: binding,
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome, text } = await it.ask('go')
  expect({ outcome, text }).toEqual({ outcome: 'completed', text: 'Done.' })
  const statuses = await it.events(id, 'status_changed')
  expect(statuses.map(({ status, text: told }) => [status, told])).toContainEqual([
    'running',
    'half way',
  ])
  expect(requestsOf(agent)).toHaveLength(2)
})

test('SA-27 SA-29 a status without a property is what its tool answered, whatever other bindings map', async () => {
  const binding = { name: 'end', messageProperty: 'status', attachmentsProperty: 'files' }
  const agent = solo('tells', {
    script: [calls('tell', { status: 'mapped elsewhere' }), calls('end', { status: 'over' })],
    tools: [end, tool('tell', () => ({ progress: 50 }))],
    sessionStop: binding,
    sessionStatus: 'tell',
  })
  const it = await simulate({ agents: [agent] })
  const { id, text } = await it.ask('go')
  expect(text).toBe('over')
  const texts = (await it.events(id, 'status_changed')).flatMap(({ text: told }) => told ?? [])
  expect(texts).toEqual(['{"progress":50}'])
})

test('SA-27 each side has its own status tool', async () => {
  const [told, other] = [tool('told'), tool('other')]
  const agent = pair('both', {
    a: {
      script: [calls('told', { status: 'A: half way' }), says('Over to you.')],
      tools: [told, other],
      sessionStatus: { name: told, messageProperty: 'status' },
    },
    b: {
      script: [
        calls('told', { status: 'no status of B' }),
        calls('other', { status: 'B: nearly' }),
        calls('end'),
      ],
      tools: [told, other, end],
      sessionStatus: { name: other, messageProperty: 'status' },
      sessionStop: 'end',
    },
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('go')
  expect(outcome).toBe('completed')
  const texts = (await it.events(id, 'status_changed')).flatMap(({ text }) => text ?? [])
  expect(texts).toEqual(['A: half way', 'B: nearly'])
})

test('SA-27 a status tool that fails publishes nothing', async () => {
  const broken = tool('broken', () => {
    throw new Error('no')
  })
  const agent = solo('tells', {
    script: [calls('broken', { status: 'half way' }), says('Done.')],
    tools: [broken],
    sessionStatus: { name: broken, messageProperty: 'status' },
  })
  const it = await simulate({ agents: [agent] })
  const { id } = await it.ask('go')
  const texts = (await it.events(id, 'status_changed')).flatMap(({ text }) => text ?? [])
  expect(texts).toEqual([])
})

test('SA-28 a binding by name, by definition and as an object do the same', async () => {
  const bindings: SessionToolBinding[] = ['end', end, { name: 'end' }, { name: end }]
  for (const kind of ['sessionStop', 'sessionFail'] as const) {
    const seen: unknown[] = []
    for (const binding of bindings) {
      const agent = ended({ [kind]: binding }, [calls('end', { any: 1 })])
      const it = await simulate({ agents: [agent] })
      const { outcome, reason, text, attachments } = await it.ask('go')
      seen.push({ outcome, reason, text, attachments })
    }
    const outcome = kind === 'sessionStop' ? 'completed' : 'failed'
    expect(seen).toEqual(
      bindings.map(() => expect.objectContaining({ outcome, text: 'told by the tool' })),
    )
    expect(new Set(seen.map((one) => JSON.stringify(one))).size).toBe(1)
  }
})

describe('messageProperty', () => {
  test.each([
    ['a text', { summary: 'All good.' }, 'All good.'],
    ['an object, as JSON', { summary: { score: 9 } }, '{"score":9}'],
    ['a number, as JSON', { summary: 7 }, '7'],
    ['false, as JSON', { summary: false }, 'false'],
    ['nothing, when it is missing', { other: 'x', message: 'y', text: 'z' }, ''],
    ['nothing, when it is null', { summary: null, message: 'y' }, ''],
    [
      'a text with paragraphs and blanks around it',
      { summary: ' One.\n\nTwo.\n' },
      ' One.\n\nTwo.\n',
    ],
  ])('SA-29 picks %s', async (_, args, expected) => {
    for (const kind of ['sessionStop', 'sessionFail']) {
      const agent = ended({ [kind]: { name: 'end', messageProperty: 'summary' } }, [
        [says('I judge.'), calls('end', args)],
      ])
      const it = await simulate({ agents: [agent] })
      const { id, text } = await it.ask('go')
      expect(text).toBe(expected)
      expect((await it.events(id, 'session_end'))[0]?.message).toBe(expected)
    }
    const tells = solo('tells', {
      script: [calls('end', args), says('Done.')],
      tools: [end],
      sessionStatus: { name: 'end', messageProperty: 'summary' },
    })
    const it = await simulate({ agents: [tells] })
    const { id } = await it.ask('go')
    const texts = (await it.events(id, 'status_changed')).flatMap(({ text: told }) => told ?? [])
    expect(texts).toEqual([expected])
  })

  test.each([
    ['a text', 'Fine.', 'Fine.'],
    ['an object, as JSON', { score: 9 }, '{"score":9}'],
    ['0, as JSON', 0, '0'],
    ['false, as JSON', false, 'false'],
    ['an empty list, as JSON', [], '[]'],
    ['nothing for null', null, ''],
    ['nothing for a tool that returns nothing', undefined, ''],
  ])('SA-28 SA-29 without it, the message is the result: %s', async (_, result, expected) => {
    const answers = tool('answers', () => result)
    for (const kind of ['sessionStop', 'sessionFail']) {
      const agent = ended({ tools: [answers], [kind]: 'answers' }, [
        calls('answers', { text: 'x' }),
      ])
      const it = await simulate({ agents: [agent] })
      const { id, text } = await it.ask('go')
      expect(text).toBe(expected)
      expect((await it.events(id, 'session_end'))[0]?.message).toBe(expected)
    }
  })
})

describe('attachmentsProperty', () => {
  const sessionStop = { name: 'end', messageProperty: 'summary', attachmentsProperty: 'files' }

  test.each([
    ['one path', '/a.txt', ['/a.txt']],
    ['many paths', ['/a.txt', '/b.txt'], ['/a.txt', '/b.txt']],
    ['one path with a comma in it', '/c,d.txt', ['/c,d.txt']],
    ['an empty list', [], []],
    ['an empty text', '', []],
    ['paths among other values', ['', '/b.txt', 7, null, '/a.txt'], ['/b.txt', '/a.txt']],
  ])('SA-30 holds %s', async (_, files, expected) => {
    const agent = ended({ sessionStop }, [
      ['/a.txt', '/b.txt', '/c,d.txt'].map((path) => calls('write', { path })),
      calls('end', { summary: 'see files', files }),
    ])
    const it = await simulate({ agents: [agent] })
    const { id, outcome, text, attachments } = await it.ask('go')
    expect({ outcome, text, attachments }).toEqual({
      outcome: 'completed',
      text: 'see files',
      attachments: expected,
    })
    expect((await it.events(id, 'session_end'))[0]?.attachments ?? []).toEqual(expected)
  })

  test.each(['sessionStop', 'sessionFail'])(
    'SA-30 a file that is not there makes the call an error, and the session continues (%s)',
    async (kind) => {
      const agent = ended({ [kind]: sessionStop }, [
        calls('end', { summary: 'see file', files: ['/missing.txt'] }),
        calls('write', { path: '/missing.txt' }),
        calls('end', { summary: 'now', files: ['/missing.txt'] }),
      ])
      const it = await simulate({ agents: [agent] })
      const { text } = await it.ask('go')
      expect(text).toBe('now')
      expect(linesOf(requestsOf(agent, 'b')[1]).at(-1)).toBe(
        'tool_result: end ! There is no file /missing.txt in this thread.',
      )
    },
  )

  test('SA-30 a file that the terminal call itself wrote is there, under any spelling of its path', async () => {
    for (const kind of ['sessionStop', 'sessionFail'])
      for (const files of ['/out/a.txt', ['/out/a.txt'], '//out//a.txt', ['//out/a.txt']]) {
        const print = tool('end', async (state) => void (await state.writeFile('/out/a.txt', 'x')))
        const agent = ended({ tools: [print], [kind]: sessionStop }, [calls('end', { files })])
        const boss = solo('boss', {
          script: [calls('ended', { message: 'go' }), says('Thanks.')],
          tools: [agent],
        })
        const it = await simulate({ agents: [boss] })
        const { id } = await it.ask('go')
        const copies = (await it.threads.files.list(id)).map(({ path }) => path)
        expect(copies).toEqual([expect.stringMatching(/^\/attachments\/a-\w+\.txt$/)])
        expect(linesOf(requestsOf(boss)[1]).at(-1)).toContain(copies[0])
      }
  })

  test('SA-30 a path that cannot be one is an error of the call too', async () => {
    const agent = ended({ sessionStop }, [
      calls('end', { summary: 'x', files: '../secret' }),
      calls('end', { summary: 'without' }),
    ])
    const it = await simulate({ agents: [agent] })
    expect((await it.ask('go')).text).toBe('without')
    expect(linesOf(requestsOf(agent, 'b')[1]).at(-1)).toMatch(/^tool_result: end ! /)
  })
})

test('SA-25 SA-26 bindings are legal where side B is a person: they end the session', async () => {
  const agent = solo('alone', {
    script: [[says('I close.'), calls('end')], calls('fail', { why: 'no paper' })],
    tools: [end, tool('fail')],
    sessionStop: 'end',
    sessionFail: { name: 'fail', messageProperty: 'why' },
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome, reason } = await it.ask('go')
  expect({ outcome, reason }).toEqual({ outcome: 'completed', reason: 'session_stop' })
  const second = await it.run(id, 'once more')
  expect(second).toMatchObject({ outcome: 'failed', reason: 'session_fail', text: 'no paper' })
})

test('SA-25 SA-26 a tool can end the session by itself, after its step', async () => {
  const agent = solo('alone', {
    script: [
      [calls('stop', { result: 'enough' }), calls('end')],
      calls('stop', { result: 'too hard', failed: true }),
      calls('stop', { failed: true }),
      calls('stop'),
    ],
    tools: [end, tool('stop', (state, args) => void state.stopSession(args))],
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome, text } = await it.ask('go')
  expect({ outcome, text }).toEqual({ outcome: 'completed', text: 'enough' })
  expect(await it.events(id, 'tool_execution_end')).toHaveLength(2)
  expect(await it.run(id, 'again')).toMatchObject({ outcome: 'failed', text: 'too hard' })
  expect(await it.run(id, 'again')).toMatchObject({ outcome: 'failed', text: '' })
  expect(await it.run(id, 'again')).toMatchObject({ outcome: 'completed', text: '' })
})

test('SA-25 SA-26 SA-30 a tool that ends the session by itself may name files', async () => {
  const stop = tool('stop', (state, { failed }) =>
    state.stopSession({
      result: 'see files',
      failed: failed === true,
      attachments: ['/a.txt', '/b.txt'],
    }),
  )
  const agent = solo('alone', {
    script: [
      [calls('write', { path: '/a.txt' }), calls('write', { path: '/b.txt' })],
      calls('stop'),
      calls('stop', { failed: true }),
    ],
    tools: [write, stop],
  })
  const it = await simulate({ agents: [agent] })
  const files = { text: 'see files', attachments: ['/a.txt', '/b.txt'] }
  const { id, ...first } = await it.ask('go')
  expect(first).toMatchObject({ outcome: 'completed', ...files })
  expect(await it.run(id, 'again')).toMatchObject({ outcome: 'failed', ...files })
})

describe('on a side that is an agent()', () => {
  const plain = (name: string) => ({
    name,
    description: `Does ${name}.`,
    parameters: { type: 'object' } as const,
    run: () => `${name} ran`,
  })
  const tools = ['end', 'fail', 'tell', 'hand'].map(plain)
  const side = {
    sessionStop: { name: 'end', messageProperty: 'text' },
    sessionFail: { name: 'fail', messageProperty: 'text' },
    sessionStatus: { name: 'tell', messageProperty: 'text' },
    stopTool: 'hand',
    stopToolResponseProperty: 'text',
  }

  test.each([
    ['end', { outcome: 'completed', reason: 'session_stop', text: 'it is end' }],
    ['fail', { outcome: 'failed', reason: 'session_fail', text: 'it is fail' }],
    ['hand', { outcome: 'completed', reason: 'stop_tool', text: 'it is hand' }],
  ])(
    'SA-22 SA-25 SA-26 a call of %s ends what it is bound to, and nothing is asked after it',
    async (name, expected) => {
      // Also where the strategy of the agent ends with the same step.
      for (const execution of [loop(), loop({ maxIterations: 1 }), loop({ maxIterations: 2 })]) {
        const model = scripted([calls(name, { text: `it is ${name}` }), says('never')])
        const alone = defineAgent({
          name: 'alone',
          sideA: { agent: uapAgent({ model, tools, execution }), ...side },
        })
        const it = await simulate({ agents: [alone] })
        const { outcome, reason, text } = await it.ask('go')
        expect({ outcome, reason, text }).toEqual(expected)
        expect(model.requests).toHaveLength(1)
      }
    },
  )

  test('SA-27 a call of the status tool publishes its text, and the agent continues', async () => {
    const model = scripted([calls('tell', { text: 'half way' }), says('Done.')])
    const alone = defineAgent({
      name: 'alone',
      sideA: { agent: uapAgent({ model, tools }), ...side },
    })
    const it = await simulate({ agents: [alone] })
    const { id, text } = await it.ask('go')
    expect(text).toBe('Done.')
    expect(await it.events(id, 'status_changed')).toContainEqual(
      expect.objectContaining({ status: 'running', text: 'half way' }),
    )
  })
})
