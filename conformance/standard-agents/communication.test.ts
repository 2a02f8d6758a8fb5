import { describe, expect, test } from 'vitest'
import { calls, fails, says } from '@skein/ai/testing'
import { defineHook, type AgentDefinition, type SubagentToolConfig } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const finish = tool('finish', () => 'finished')
const giveUp = tool('give_up', () => 'given up')

/** A child whose side A may end well or badly. */
function child(
  side: Partial<SideSetup> = {},
  agent: Partial<AgentDefinition> = {},
): AgentDefinition {
  const { tools = [], ...rest } = side
  return pair(
    'helper',
    {
      a: {
        script: () => calls('finish', { summary: 'three ships' }),
        sessionStop: { name: finish, messageProperty: 'summary' },
        sessionFail: { name: giveUp, messageProperty: 'why' },
        ...rest,
        tools: [finish, giveUp, ...tools],
      },
      b: { script: () => says('Continue.') },
    },
    agent,
  )
}

/** Starts the child, and then says `I see.` to whatever comes. */
function boss(helper: AgentDefinition, config: Partial<SubagentToolConfig> = {}): AgentDefinition {
  const start =
    (config.resumable ?? false) === false
      ? calls('helper', { message: 'go' })
      : calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
  return solo('boss', {
    script: (_, index) => (index === 0 ? start : says('I see.')),
    tools: [{ name: helper, blocking: false, ...config }],
  })
}

async function childOf(it: Simulation, id: string): Promise<string> {
  return (await it.events(id, 'subagent_created'))[0]!.reference
}

const textOf = (message: { readonly content?: unknown }) =>
  ((message.content ?? []) as readonly { text: string }[]).map(({ text }) => text).join('')

/** What children have queued for a thread. */
async function reports(it: Simulation, id: string) {
  return (await it.events(id, 'message_queued'))
    .filter(({ subagentId }) => subagentId !== undefined)
    .map(({ message, isSilent, subagentId }) => ({
      text: textOf(message as { content?: unknown }),
      isSilent,
      subagentId,
    }))
}

describe.each([
  ['disposable', {}],
  ['resumable', { resumable: {} }],
] as const)('a %s child', (_, config) => {
  test('SA-69 SA-48 its result is queued silently, in exactly these words', async () => {
    const helper = child()
    const top = boss(helper, config)
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    const reference = await childOf(it, id)
    const text = `Subagent (reference: ${reference}) has returned the following result:\n\nthree ships`
    expect(await reports(it, id)).toEqual([{ text, isSilent: true, subagentId: reference }])
    expect(linesOf(requestsOf(top)[2])).toContain(`user: ${text}`)
    const stored = await it.threads.messages(id, { includeSilent: true })
    expect(stored.filter(({ subagentId }) => subagentId === reference)).toHaveLength(1)
    const shown = await it.threads.messages(id)
    expect(shown.filter(({ subagentId }) => subagentId === reference)).toEqual([])
  })

  test('SA-71 its failure is queued silently, in exactly these words', async () => {
    const helper = child({ script: [calls('give_up', { why: 'fog,\nthick' })] })
    const top = boss(helper, config)
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    const reference = await childOf(it, id)
    const text = `Subagent (reference: ${reference}) has reported a failure:\n\nfog,\nthick`
    expect(await reports(it, id)).toEqual([{ text, isSilent: true, subagentId: reference }])
    expect(linesOf(requestsOf(top)[2])).toContain(`user: ${text}`)
  })
})

describe('ends that no one speaks of', () => {
  const ends: readonly [string, () => AgentDefinition, string][] = [
    [
      'a cap',
      () => child({ script: () => says('Hm.') }, { maxSessionTurns: 2 }),
      'max_session_turns',
    ],
    [
      'a limit of steps',
      () => child({ script: () => calls('look'), tools: [tool('look')], maxSteps: 2 }),
      'max_side_steps',
    ],
    [
      'a model that fails',
      () => child({ script: () => fails({ code: 'INVALID_REQUEST' }) }),
      'model_error',
    ],
  ]

  test.each(ends)(
    'SA-71 %s is reported as a failure with its reason',
    async (_, helper, reason) => {
      const top = boss(helper())
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      await it.idle()
      const [report] = await reports(it, id)
      expect(report!.text).toMatch(
        new RegExp(
          `^Subagent \\(reference: .{36}\\) has reported a failure:\\n\\n.+ \\(reason: ${reason}\\)$`,
        ),
      )
    },
  )

  const explicit = { resumable: { parentCommunication: 'explicit' } } as const
  const all: readonly [string, () => AgentDefinition][] = [
    ['sessionStop', () => child()],
    ['sessionFail', () => child({ script: [calls('give_up', { why: 'fog' })] })],
    ...ends.map(([name, helper]) => [name, helper] as const),
    [
      'terminate',
      () => child({ script: [calls('end')], tools: [tool('end', (state) => state.terminate())] }),
    ],
  ].map(([name, helper]) => [name as string, helper as () => AgentDefinition])

  test.each(all)('SA-69 SA-74 explicit: %s queues nothing for the parent', async (_, helper) => {
    const top = boss(helper(), explicit)
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect(await it.events(await childOf(it, id), 'session_end')).toHaveLength(1)
    expect(await it.events(id, 'message_queued')).toHaveLength(1)
    expect(requestsOf(top)).toHaveLength(2)
    expect(await it.threads.children(id)).toMatchObject([{ parentCommunication: 'explicit' }])
  })

  test('SA-69 SA-71 a child that is terminated returns no result and reports no failure', async () => {
    const [, terminates] = all.at(-1)!
    for (const config of [{}, { resumable: {} }]) {
      const top = boss(terminates(), config)
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      await it.idle()
      expect(await reports(it, id)).toEqual([])
      const ends = (await it.events(id, 'subagent_ended')).map(({ outcome }) => outcome)
      expect([...new Set(ends)]).toEqual(['terminated'])
    }
  })

  test.each([false, true])(
    'SA-69 SA-71 a tool that ends the session of the child itself is reported in the same words (failed: %j)',
    async (failed) => {
      const stop = tool('stop', (state) => state.stopSession({ result: 'three ships', failed }))
      const helper = child({ script: [calls('stop')], tools: [stop] })
      const it = await simulate({ agents: [boss(helper)] })
      const { id } = await it.ask('hi')
      await it.idle()
      const words = failed ? 'has reported a failure' : 'has returned the following result'
      expect((await reports(it, id)).map(({ text }) => text)).toEqual([
        `Subagent (reference: ${await childOf(it, id)}) ${words}:\n\nthree ships`,
      ])
      expect(await it.events(id, 'subagent_ended')).toMatchObject([
        { outcome: failed ? 'failed' : 'completed', result: 'three ships' },
      ])
    },
  )

  test('SA-74 explicit: no file is copied to the parent either', async () => {
    const write = tool('write', async (state) => void (await state.writeFile('/out.txt', 'x')))
    const helper = child({
      script: [calls('write'), calls('finish', { summary: 'done', files: ['/out.txt'] })],
      tools: [write],
      sessionStop: { name: finish, messageProperty: 'summary', attachmentsProperty: 'files' },
    })
    const it = await simulate({ agents: [boss(helper, explicit)] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect(await it.events(await childOf(it, id), 'session_end')).toMatchObject([
      { attachments: ['/out.txt'] },
    ])
    expect(await it.threads.files.list(id)).toEqual([])
  })

  test('SA-74 explicit: a crash in the middle queues nothing either, and the child ends once', async () => {
    const started = latch()
    const helper = child({
      script: async (_, index) => {
        if (index > 0) return calls('finish', { summary: 'after all' })
        started.open()
        return new Promise(() => {})
      },
    })
    const top = boss(helper, explicit)
    const before = await simulate({ agents: [top] })
    const { id } = await before.ask('hi')
    await started.reached
    const it = await before.restart()
    await it.idle()
    expect(await it.events(await childOf(it, id), 'session_end')).toMatchObject([
      { outcome: 'completed', message: 'after all' },
    ])
    expect(await it.events(id, 'message_queued')).toHaveLength(1)
  })

  test('SA-74 explicit and blocking: the call is still answered, and nothing is queued', async () => {
    const helper = child()
    const top = boss(helper, { ...explicit, blocking: true })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const reference = await childOf(it, id)
    const text = `Subagent (reference: ${reference}) has returned the following result:\n\nthree ships`
    expect(linesOf(requestsOf(top)[1])).toContain(
      `tool_result: subagent_create = ${JSON.stringify(text)}`,
    )
    expect(await it.events(id, 'message_queued')).toHaveLength(1)
  })
})

describe('SA-65 session bindings on each side of the child', () => {
  const forms = [
    ['a name', 'finish', 'finished'],
    ['an object', { name: 'finish', messageProperty: 'summary' }, 'three ships'],
  ] as const

  test.each(forms)(
    'SA-65 side A ends the session; the binding is %s',
    async (_, sessionStop, text) => {
      const helper = pair('helper', {
        a: { script: [calls('finish', { summary: 'three ships' })], tools: [finish], sessionStop },
        b: { script: [] },
      })
      const top = boss(helper, { blocking: true })
      const it = await simulate({ agents: [top] })
      await it.ask('hi')
      expect(linesOf(requestsOf(top)[1]).at(-1)).toBe(`tool_result: helper = "${text}"`)
    },
  )

  test.each(forms)(
    'SA-65 side B ends the session; the binding is %s',
    async (_, sessionStop, text) => {
      const helper = pair('helper', {
        a: { script: [says('I see three.')] },
        b: { script: [calls('finish', { summary: 'three ships' })], tools: [finish], sessionStop },
      })
      const top = boss(helper, { blocking: true })
      const it = await simulate({ agents: [top] })
      await it.ask('hi')
      expect(linesOf(requestsOf(top)[1]).at(-1)).toBe(`tool_result: helper = "${text}"`)
    },
  )

  test.each([
    ['a name', 'give_up', 'given up'],
    ['an object', { name: 'give_up', messageProperty: 'why' }, 'fog'],
  ] as const)(
    'SA-65 side B ends the session with a failure; the binding is %s',
    async (_, sessionFail, text) => {
      const helper = pair('helper', {
        a: { script: [says('I see nothing.')] },
        b: { script: [calls('give_up', { why: 'fog' })], tools: [giveUp], sessionFail },
      })
      const top = boss(helper, { blocking: true })
      const it = await simulate({ agents: [top] })
      await it.ask('hi')
      expect(linesOf(requestsOf(top)[1]).at(-1)).toBe(`tool_result: helper ! ${text}`)
    },
  )

  test('SA-65 a binding of one side is an ordinary tool to the other', async () => {
    const helper = pair('helper', {
      a: {
        script: [calls('finish', { summary: 'not yet' }), says('I see three.')],
        tools: [finish],
      },
      b: {
        script: [calls('finish', { summary: 'now' })],
        tools: [finish],
        sessionStop: { name: finish, messageProperty: 'summary' },
      },
    })
    const top = boss(helper, { blocking: true })
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toBe('tool_result: helper = "now"')
  })
})

describe('status', () => {
  const status = tool('status')

  test.each([
    ['a name', 'status', 'ok'],
    ['an object', { name: 'status', messageProperty: 'text' }, 'counting'],
  ] as const)(
    'SA-73 sessionStatus (%s) changes the text in the registry, and the child continues',
    async (_, sessionStatus, text) => {
      const told = latch()
      const go = latch()
      const helper = child({
        script: [
          calls('status', { text: 'counting' }),
          async () => {
            told.open()
            await go.reached
            return calls('finish', { summary: 'three ships' })
          },
        ],
        tools: [status],
        sessionStatus,
      })
      const top = boss(helper, { resumable: {} })
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      await told.reached
      expect(await it.threads.children(id)).toMatchObject([{ status: text }])
      expect(await reports(it, id)).toEqual([])
      go.open()
      await it.idle()
      expect((await reports(it, id))[0]!.text).toContain('three ships')
      expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
    },
  )

  test('SA-73 a status tool ends nothing on a side without sessionStop, and its text is gone with the session', async () => {
    const [told, again] = [latch(), latch()]
    const go = [latch(), latch()]
    const helper = pair('helper', {
      a: {
        script: async ({ messages }, index) => {
          if (index === 0) return calls('status', { text: 'line one\nline two' })
          if (messages.at(-1)!.type === 'tool_result') {
            told.open()
            await go[0]!.reached
            return says('Counted.')
          }
          again.open()
          await go[1]!.reached
          return says('Counted again.')
        },
        tools: [status],
        sessionStatus: { name: 'status', messageProperty: 'text' },
      },
      b: {
        script: () => calls('finish', { summary: 'three ships' }),
        tools: [finish],
        sessionStop: { name: finish, messageProperty: 'summary' },
      },
    })
    const it = await simulate({ agents: [boss(helper, { resumable: {} })] })
    const { id } = await it.ask('hi')
    await told.reached
    const reference = await childOf(it, id)
    const shown = async () => (await it.threads.children(id)).map((one) => one.status)
    expect(await shown()).toEqual(['line one\nline two'])
    go[0]!.open()
    await it.idle()
    expect(await shown()).toEqual(['idle'])
    await it.send(reference, 'once more')
    await again.reached
    expect(await shown()).toEqual(['running'])
    go[1]!.open()
    await it.idle()
    expect(await it.events(reference, 'session_end')).toMatchObject([
      { reason: 'session_stop', message: 'three ships' },
      { reason: 'session_stop', message: 'three ships' },
    ])
  })

  test('SA-75 setStatus keeps every line, and the first thousand characters', async () => {
    const text = `one\ntwo\n${'x'.repeat(2000)}`
    const tell = tool('tell', (state) => state.setStatus(text))
    const helper = child({
      script: [calls('tell'), calls('finish', { summary: 'done' })],
      tools: [tell],
    })
    const it = await simulate({ agents: [boss(helper)] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect(
      (await it.events(id, 'subagent_updated')).flatMap(({ statusText }) => statusText ?? []),
    ).toEqual([text.slice(0, 1000)])
  })

  test('SA-73 a status that says "terminated" does not end anything', async () => {
    const helper = child({
      script: [calls('status', { text: 'terminated' }), calls('finish', { summary: 'alive' })],
      tools: [status],
      sessionStatus: { name: 'status', messageProperty: 'text' },
    })
    const top = boss(helper, { resumable: { maxInstances: 1 } })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect((await reports(it, id))[0]!.text).toContain('alive')
    expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
  })

  test('SA-75 notifyParent queues its raw text silently; setStatus sets the text', async () => {
    const seen = latch()
    const go = latch()
    const tell = tool('tell', async (state) => {
      state.notifyParent('  raw\ntext ')
      await state.setStatus('half way')
    })
    const helper = child({
      script: [
        calls('tell'),
        async () => {
          seen.open()
          await go.reached
          return calls('finish', { summary: 'three ships' })
        },
      ],
      tools: [tell],
    })
    const top = boss(helper, { resumable: { parentCommunication: 'explicit' } })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await seen.reached
    const reference = await childOf(it, id)
    expect(await reports(it, id)).toEqual([
      { text: '  raw\ntext ', isSilent: true, subagentId: reference },
    ])
    expect(await it.threads.children(id)).toMatchObject([{ status: 'half way' }])
    go.open()
    await it.idle()
    expect(requestsOf(top).flatMap(linesOf)).toContain('user:   raw\ntext ')
    expect(await reports(it, id)).toHaveLength(1)
  })

  test('SA-75 several notices of one call all come, in order', async () => {
    const tell = tool('tell', (state) => {
      for (const text of ['one', 'two', 'three']) state.notifyParent(text)
    })
    const helper = child({
      script: [calls('tell'), calls('finish', { summary: 'done' })],
      tools: [tell],
    })
    const top = boss(helper, { resumable: { parentCommunication: 'explicit' } })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect((await reports(it, id)).map(({ text }) => text)).toEqual(['one', 'two', 'three'])
    // Nothing else is queued, so it is the notices that woke the parent.
    expect(
      linesOf(requestsOf(top).at(-1)).filter((line) => /^user: (one|two|three)$/.test(line)),
    ).toEqual(['user: one', 'user: two', 'user: three'])
  })

  test('SA-75 SA-83 a notice wakes a parent that does nothing, while the child works on', async () => {
    const heard = latch()
    const told = latch()
    const helper = child({
      script: [
        calls('tell'),
        async () => {
          await heard.reached
          return calls('finish', { summary: 'done' })
        },
      ],
      tools: [
        tool('tell', async (state) => {
          await told.reached
          state.notifyParent('half way')
        }),
      ],
    })
    const start = calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
    const top = solo('boss', {
      script: ({ messages }, index) => {
        // The child continues only when the parent has received it.
        if (JSON.stringify(messages).includes('half way')) heard.open()
        return index === 0 ? start : says('I see.')
      },
      tools: [{ name: helper, blocking: false, resumable: { parentCommunication: 'explicit' } }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    told.open()
    await heard.reached
    await it.idle()
    expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
    expect(requestsOf(top)).toHaveLength(3)
  })

  test('SA-75 hooks of the child can escalate as well', async () => {
    const escalate = defineHook({
      id: 'escalate',
      hook: 'after_tool_call_failure',
      execute: async (state, call) => {
        state.notifyParent(`${call.toolName} broke`)
        await state.setStatus('in trouble')
      },
    })
    const broken = tool('broken', () => {
      throw new Error('no')
    })
    const helper = child({
      script: [calls('broken'), calls('finish', { summary: 'anyway' })],
      tools: [broken],
      prompt: { hooks: [escalate] },
    })
    const top = boss(helper, { resumable: { parentCommunication: 'explicit' } })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect((await reports(it, id)).map(({ text }) => text)).toEqual(['broken broke'])
    expect(await it.events(id, 'subagent_updated')).toContainEqual(
      expect.objectContaining({ statusText: 'in trouble' }),
    )
  })

  test('SA-75 the same tools do no harm in a thread without a parent', async () => {
    const tell = tool('tell', async (state) => {
      state.notifyParent('anybody?')
      await state.setStatus('alone')
    })
    const top = solo('boss', { script: [calls('tell'), says('Fine.')], tools: [tell] })
    const it = await simulate({ agents: [top] })
    expect((await it.ask('hi')).text).toBe('Fine.')
  })
})

describe('the queue', () => {
  test('SA-81 what was queued before a restart is taken after it, once and in order', async () => {
    const helper = child({
      script: ({ messages }) => {
        const heard = messages.flatMap((message) => (message.type === 'user' ? [message.text] : []))
        return calls('finish', { summary: heard.join(' ') })
      },
    })
    const top = boss(helper)
    const before = await simulate({ agents: [top, helper] })
    const id = await before.create({ agent: 'helper' })
    const stopped = await before.restart({ starts: false })
    const texts = Array.from({ length: 20 }, (_, index) => `m${index}`)
    for (const text of texts) await stopped.send(id, text)
    // Twice over, and the second time in the middle of the session.
    const it = await (await stopped.restart({ starts: false })).restart({ starts: true })
    await it.idle()
    expect(await it.events(id, 'session_end')).toMatchObject([{ message: texts.join(' ') }])
    expect(await it.events(id, 'message_queued')).toHaveLength(20)
  })

  test('SA-81 a report that is in the queue when the runtime stops is not lost, nor taken twice', async () => {
    const helper = child()
    const top = boss(helper)
    const before = await simulate({ agents: [top] })
    const id = await before.create()
    const commit = before.store.commit.bind(before.store)
    const reported = latch()
    before.store.commit = async (change) => {
      const result = await commit(change)
      if (change.point.split('+').includes('session_end') && change.threads[0]?.id !== id) {
        // As if the process had died here: no one learns of it any more.
        before.store.commit = async () => Promise.reject(new Error('the process is dead'))
        reported.open()
      }
      return result
    }
    await before.send(id, 'hi')
    await reported.reached
    const stopping = before.restart()
    const after = await stopping
    after.store.commit = commit
    const it = await after.restart()
    await it.idle()
    const reference = await childOf(it, id)
    const taken = await it.events(id, 'message_added')
    expect(taken.filter(({ subagentId }) => subagentId === reference)).toHaveLength(1)
    expect((await it.events(reference, 'session_end')).length).toBe(1)
  })

  test('SA-81 reports of several children come in the order in which they ended', async () => {
    const turns = [latch(), latch(), latch()]
    const helper = child({
      script: async ({ messages }) => {
        const name = messages[0]!.type === 'user' ? messages[0]!.text : ''
        await turns[Number(name)]!.reached
        return calls('finish', { summary: name })
      },
    })
    const top = solo('boss', {
      script: (_, index) =>
        index === 0
          ? ['0', '1', '2'].map((message) => calls('helper', { message }))
          : says('I see.'),
      tools: [{ name: helper, blocking: false }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const commit = it.store.commit.bind(it.store)
    let written = latch()
    it.store.commit = async (change) => {
      const result = await commit(change)
      if (change.point.split('+').includes('session_end') && change.threads[0]?.id !== id)
        written.open()
      return result
    }
    for (const index of [2, 0, 1]) {
      written = latch()
      turns[index]!.open()
      await written.reached
    }
    await it.idle()
    const results = (await reports(it, id)).map(({ text }) => text.split('\n\n')[1])
    expect(results).toEqual(['2', '0', '1'])
  })
})
