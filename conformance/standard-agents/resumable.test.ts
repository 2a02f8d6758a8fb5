import { describe, expect, test } from 'vitest'
import { calls, says, waits } from '@skein/ai/testing'
import type { LLMRequest } from '@skein/ai'
import type { AgentDefinition, SubagentToolConfig } from '@skein/runtime'
import { z } from 'zod'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const finish = tool('finish')

function child(side: Partial<SideSetup> = {}, name = 'helper'): AgentDefinition {
  const { tools = [], ...rest } = side
  return pair(name, {
    a: {
      script: () => calls('finish', { summary: `${name} is done` }),
      sessionStop: { name: finish, messageProperty: 'summary' },
      ...rest,
      tools: [finish, ...tools],
    },
    b: { script: [] },
  })
}

function boss(
  script: SideSetup['script'],
  helper: AgentDefinition,
  config: Partial<SubagentToolConfig> = {},
  prompt: SideSetup['prompt'] = {},
): AgentDefinition {
  return solo('boss', { script, prompt, tools: [{ name: helper, resumable: {}, ...config }] })
}

const create = (args: Record<string, unknown> = {}) =>
  calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go', ...args } as never)

/** The reference that a result or a note named last. */
function referenceIn({ messages }: LLMRequest): string {
  return [...JSON.stringify(messages).matchAll(/reference: ([0-9a-f-]{36})/g)].at(-1)![1]!
}

test('SA-57 SA-59 resumable children have lifecycle tools, disposable ones a tool of their own name', async () => {
  const offered = async (config: Partial<SubagentToolConfig>) => {
    const top = boss([says('Hi.')], child(), config)
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    return requestsOf(top)[0]!.tools
  }
  const resumable = await offered({})
  expect(resumable.map(({ name }) => name)).toEqual(['subagent_create', 'subagent_message'])
  expect(resumable[0]!.parameters).toMatchObject({
    properties: { agent: { enum: ['helper'] } },
    required: expect.arrayContaining(['name']),
  })
  expect(resumable[1]!.parameters).toMatchObject({ required: ['reference', 'message'] })
  const disposable = await offered({ resumable: false })
  expect(disposable.map(({ name }) => name)).toEqual(['helper'])
})

test('SA-10 SA-57 subagent_create says what each agent is for, and asks which one where there are several', async () => {
  const [ada, bob] = [child({}, 'ada'), child({}, 'bob')]
  const top = solo('boss', {
    script: [calls('subagent_create', { name: 'X', message: 'go' }), says('Oh.')],
    tools: [
      { name: ada, resumable: {} },
      { name: bob, resumable: {} },
    ],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const create = requestsOf(top)[0]!.tools.find(({ name }) => name === 'subagent_create')!
  expect(create.description).toContain('ada: Two who do ada.')
  expect(create.description).toContain('bob: Two who do bob.')
  expect(create.parameters).toMatchObject({ properties: { agent: { enum: ['ada', 'bob'] } } })
  expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: subagent_create ! .*ada, bob/)
  expect(await it.events(id, 'subagent_created')).toEqual([])
})

test('SA-57 where there is one kind of resumable child, subagent_create need not name it', async () => {
  const top = boss([calls('subagent_create', { name: 'Ada', message: 'go' }), says('Hi.')], child())
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  expect(await it.threads.children(id)).toMatchObject([{ name: 'helper', threadName: 'Ada' }])
})

test.each([
  ['empty', { name: '' }],
  ['blank', { name: '  ' }],
  ['of tabs and line ends', { name: '\t\r\n\u00a0' }],
  ['missing', {}],
  ['a number', { name: 7 }],
  ['null', { name: null }],
])(
  'SA-58 subagent_create with a name that is %s is a tool error, and nothing is created',
  async (_, name) => {
    const helper = child()
    const top = boss(
      [calls('subagent_create', { agent: 'helper', message: 'go', ...name } as never), says('Oh.')],
      helper,
    )
    const it = await simulate({ agents: [top] })
    const { id, text } = await it.ask('hi')
    expect(text).toBe('Oh.')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: subagent_create ! .*"name"/)
    expect(await it.events(id, 'subagent_created')).toEqual([])
    expect(await it.threads.list({ rootId: id })).toHaveLength(1)
    expect(requestsOf(helper)).toEqual([])
  },
)

test('SA-58 an instance has the name it was created with', async () => {
  const top = boss([create({ name: ' Ada ' }), says('Hi.')], child())
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const [entry] = await it.threads.children(id)
  expect(entry).toMatchObject({ name: 'helper', threadName: 'Ada' })
  expect(await it.threads.get(entry!.reference)).toMatchObject({ title: 'Ada', tags: ['name:Ada'] })
})

describe('the cap', () => {
  test('SA-60 a create beyond the cap is an error that names the cap, the live ones and the way out', async () => {
    const top = boss([create(), create({ name: 'Bob' }), says('Oh.')], child(), {
      resumable: { maxInstances: 1 },
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [made, ...more] = await it.events(id, 'subagent_created')
    expect(more).toEqual([])
    const told = linesOf(requestsOf(top)[2]).at(-1)!
    expect(told).toMatch(/^tool_result: subagent_create ! There may be 1 instance/)
    expect(told).toContain('subagent_message')
    expect(told).toContain(made!.reference)
  })

  test.each([
    ['one after the other', false],
    ['immediately', true],
  ])('SA-60 two creates in one message, run %s, make one child', async (_, parallelToolCalls) => {
    const helper = child()
    const top = boss(
      [[create(), create({ name: 'Bob' })], says('Oh.'), says('I see.')],
      helper,
      { blocking: false, resumable: { maxInstances: 1 } },
      { parallelToolCalls },
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    expect(await it.events(id, 'subagent_created')).toHaveLength(1)
    expect(await it.threads.list({ parentId: id })).toHaveLength(1)
    const { results } = requestsOf(top)[1]!.messages.find(({ type }) => type === 'tool_result') as {
      results: readonly { isError?: boolean }[]
    } & LLMRequest['messages'][number]
    expect(results.map(({ isError = false }) => isError)).toEqual([false, true])
  })

  test('SA-60 each kind of child has its own cap, and the children of the other do not count', async () => {
    const [ada, bob] = [child({}, 'ada'), child({}, 'bob')]
    const make = (agent: string, name: string) =>
      calls('subagent_create', { agent, name, message: 'go' })
    const top = solo('boss', {
      script: [
        make('ada', '1'),
        make('bob', '1'),
        make('bob', '2'),
        make('bob', '3'),
        make('ada', '2'),
        says('Oh.'),
      ],
      tools: [
        { name: ada, resumable: { maxInstances: 1 } },
        { name: bob, resumable: { maxInstances: 2 } },
      ],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const made = await it.events(id, 'subagent_created')
    expect(made.map(({ name, threadName }) => `${name} ${threadName}`)).toEqual([
      'ada 1',
      'bob 1',
      'bob 2',
    ])
    const [ofAda, ...ofBob] = made.map(({ reference }) => reference)
    const refused = linesOf(requestsOf(top)[5]).filter((line) => line.includes(' ! There may be'))
    expect(refused).toEqual([expect.stringContaining('2 instances'), expect.stringContaining('1')])
    expect(refused[0]).toContain(ofBob.join(', '))
    expect(refused[0]).not.toContain(ofAda)
    expect(refused[1]).toContain(ofAda)
  })

  test('SA-60 a child that waited for variables is not created beyond the cap either', async () => {
    const helper = child({
      prompt: { variables: [{ name: 'CODE', type: 'secret', required: true, scoped: true }] },
    })
    const top = boss([create(), create({ name: 'Bob' }), says('Wait.')], helper, {
      blocking: false,
      resumable: { maxInstances: 1 },
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const asked = await it.events(id, 'variables_requested')
    expect(asked).toHaveLength(2)
    const [first, second] = asked.map(({ requestId }) => requestId)
    const { reference } = await it.threads.variables.provide(id, first!, { CODE: '1' })
    await it.idle()
    await expect(it.threads.variables.provide(id, second!, { CODE: '2' })).rejects.toThrow(
      /There may be 1 instances? of "helper".*subagent_message.*/,
    )
    await it.idle()
    expect((await it.threads.children(id)).map((one) => one.reference)).toEqual([reference])
  })

  test('SA-60 an instance that was terminated gives its place free', async () => {
    const top = boss([create(), says('One.'), create({ name: 'Bob' }), says('Two.')], child(), {
      resumable: { maxInstances: 1 },
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [first] = await it.threads.children(id)
    await it.threads.terminate(first!.reference)
    expect((await it.run(id, 'again')).text).toBe('Two.')
    expect((await it.threads.children(id)).map(({ status }) => status)).toEqual([
      'terminated',
      'idle',
    ])
  })
})

test('SA-67 subagent_message reaches the child it names, and no other', async () => {
  const helper = child({
    script: ({ messages }) => {
      const last = messages.at(-1)!
      return calls('finish', { summary: last.type === 'user' ? `heard ${last.text}` : '' })
    },
  })
  let ada = ''
  const top = boss(
    [
      create(),
      (request) => {
        ada = referenceIn(request)
        return create({ name: 'Bob' })
      },
      () => calls('subagent_message', { reference: ada, message: 'you' }),
      says('Good.'),
    ],
    helper,
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const heard = async (reference: string) =>
    (await it.threads.messages(reference)).flatMap(({ message, side }) =>
      side === 'b' && message.type === 'user' ? [message.text] : [],
    )
  const [first, second] = await it.threads.children(id)
  expect(first!.reference).toBe(ada)
  expect(await heard(first!.reference)).toEqual(['go', 'you'])
  expect(await heard(second!.reference)).toEqual(['go'])
  expect(linesOf(requestsOf(top)[3]).join('\n')).toContain('heard you')
})

test.each([{}, { message: '' }, { message: ' \n' }, { message: null }])(
  'SA-67 a message without words (%j) is a tool error, and nothing is sent',
  async (said) => {
    const helper = child()
    let reference = ''
    const top = boss(
      [
        create(),
        (request) => {
          reference = referenceIn(request)
          return calls('subagent_message', { reference, ...said } as never)
        },
        says('Oh.'),
      ],
      helper,
    )
    const it = await simulate({ agents: [top] })
    expect((await it.ask('hi')).text).toBe('Oh.')
    const told = linesOf(requestsOf(top)[2]).findLast((line) => line.startsWith('tool_result'))
    expect(told).toMatch(/^tool_result: subagent_message ! .*"message"/)
    expect(await it.events(reference, 'message_queued')).toHaveLength(1)
    expect(requestsOf(helper)).toHaveLength(1)
  },
)

test.each(['', ' \n'])(
  'SA-66 subagent_create with the message %j begins with its arguments instead',
  async (message) => {
    const helper = child()
    const top = boss(
      [
        create({ message }),
        create({ message, name: 'Bob', arguments: { ships: 3 } }),
        create({ message, name: 'Cy', arguments: { task: 'count', ships: 3 } }),
        says('Hi.'),
      ],
      helper,
      { initUserMessageProperty: 'task' },
    )
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    expect(requestsOf(helper).map((request) => linesOf(request)[0])).toEqual([
      'user: Begin.',
      'user: {"ships":3}',
      'user: count',
    ])
  },
)

test.each(['nobody', '', undefined, 7])(
  'SA-67 the reference %j reaches no one, while a child lives',
  async (reference) => {
    const helper = child()
    const said = { message: 'hello?', ...(reference !== undefined && { reference }) }
    const top = boss([create(), calls('subagent_message', said as never), says('Oh.')], helper)
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [entry] = await it.threads.children(id)
    const told = linesOf(requestsOf(top)[2]).findLast((line) => line.startsWith('tool_result'))
    expect(told).toMatch(/^tool_result: subagent_message ! There is no subagent with the reference/)
    expect(told).toContain(entry!.reference)
    expect(await it.events(entry!.reference, 'message_queued')).toHaveLength(1)
    expect(requestsOf(helper)).toHaveLength(1)
  },
)

test('SA-67 messages to unrelated threads and to terminated children are tool errors', async () => {
  let reference = ''
  const top = boss(
    [
      create(),
      says('Made.'),
      () => [
        calls('subagent_message', { reference, message: 'still there?' }),
        calls('subagent_message', { reference: 'nobody', message: 'hello?' }),
      ],
      says('Oh.'),
    ],
    child(),
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  reference = (await it.threads.children(id))[0]!.reference
  await it.threads.terminate(reference)
  const before = (await it.threads.events(reference)).length
  expect((await it.run(id, 'continue')).text).toBe('Oh.')
  const told = linesOf(requestsOf(top)[3]).at(-1)!
  expect(told).toMatch(
    /^tool_result: subagent_message ! .*terminated.*, subagent_message ! .*nobody/,
  )
  expect((await it.threads.events(reference)).length).toBe(before)
})

test.each([true, false])(
  'SA-67 a child that is terminated while it is spoken to (blocking: %j) takes nothing, and the call says so',
  async (blocking) => {
    let reference = ''
    const top = boss(
      [
        create(),
        (request) => {
          reference = referenceIn(request)
          return calls('subagent_message', { reference, message: 'more' })
        },
        ({ messages }) => says(JSON.stringify(messages.at(-1))),
        says('I see.'),
        says('I see.'),
      ],
      child(),
      { blocking },
    )
    const it = await simulate({ agents: [top] })
    const id = await it.create()
    const commit = it.store.commit.bind(it.store)
    const ended = latch()
    let isDone = false
    it.store.commit = async (change) => {
      const touches =
        reference !== '' && change.threads.slice(1).some((one) => one.id === reference)
      const isMessage = change.threads.some(
        ({ mustBeLive, id: one }) => mustBeLive && one === reference,
      )
      if (touches && isMessage && !isDone) {
        isDone = true
        void it.threads.terminate(reference)
        await ended.reached
      }
      const result = await commit(change)
      if (change.point === 'terminate_thread') ended.open()
      return result
    }
    await it.run(id, 'hi')
    await it.idle()
    it.store.commit = commit
    expect(isDone).toBe(true)
    expect(linesOf(requestsOf(top)[2]).join('\n')).toMatch(
      /tool_result: subagent_message ! .*terminated/,
    )
    const queued = await it.events(reference, 'message_queued')
    expect(queued).toHaveLength(1)
  },
)

test.each([true, false])(
  'SA-45 SA-67 a message of the parent starts a child again that a person stopped (blocking: %j)',
  async (blocking) => {
    const working = latch()
    const helper = child({
      script: (_, index) => {
        if (index > 0) return calls('finish', { summary: 'after all' })
        working.open()
        return [waits(Infinity)]
      },
    })
    let reference = ''
    const top = boss(
      ({ messages }) => {
        const said = JSON.stringify(messages)
        if (!said.includes('subagent_create')) return create()
        const isSent = said.includes('"subagent_message"')
        if (!said.includes('once more') || isSent) return says('Ok.')
        return calls('subagent_message', { reference, message: 'again' })
      },
      helper,
      { blocking },
    )
    const it = await simulate({ agents: [top] })
    const id = await it.create()
    await it.send(id, 'go')
    await working.reached
    reference = (await it.threads.children(id))[0]!.reference
    await it.threads.stop(reference)
    await it.idle()
    expect((await it.threads.get(reference)).lifecycle).toBe('stopped')
    await it.run(id, 'once more')
    await it.idle()
    expect(await it.events(reference, 'session_end')).toMatchObject([
      { outcome: 'stopped' },
      { outcome: 'completed', message: 'after all' },
    ])
  },
)

test('SA-66 SA-67 receives_messages: side_b receives what the parent says; to side A it is its own speech', async () => {
  const reviewed = pair('helper', {
    a: { script: [says('Better now.')] },
    b: {
      script: [
        says('Try again.'),
        calls('finish', { summary: 'good' }),
        calls('finish', { summary: 'still good' }),
      ],
      tools: [finish],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
  })
  const top = boss(
    [
      create({ message: 'my draft' }),
      (request) =>
        calls('subagent_message', { reference: referenceIn(request), message: 'another draft' }),
      says('Thanks.'),
    ],
    reviewed,
    { resumable: { receives_messages: 'side_b' } },
  )
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  expect(requestsOf(reviewed, 'b').map(linesOf).slice(0, 2)).toEqual([
    ['user: my draft'],
    ['user: my draft', 'assistant: Try again.', 'user: Better now.'],
  ])
  expect(linesOf(requestsOf(reviewed, 'b')[2]).at(-1)).toBe('user: another draft')
  expect(linesOf(requestsOf(reviewed, 'a')[0])).toEqual([
    'user: Begin.', // vendors want a conversation to begin with the other side
    'assistant: my draft',
    'user: Try again.',
  ])
  const [entry] = await it.threads.children(id)
  const [first] = await it.threads.messages(entry!.reference)
  expect(first).toMatchObject({ side: 'a', metadata: { from: 'parent' } })
})

describe('the initial mapping', () => {
  const asked = (helper: AgentDefinition) => linesOf(requestsOf(helper)[0])[0]

  test.each([
    ['a mapped text', { task: 'count', depth: 2 }, 'user: count'],
    ['a mapped object', { task: { count: 'ships' } }, 'user: {"count":"ships"}'],
  ])(
    'SA-66 %s is the first message; all arguments are readable in the child',
    async (_, args, said) => {
      const seen: unknown[] = []
      const read = tool('read', (state) => void seen.push(state.arguments))
      const helper = child({
        script: [calls('read'), calls('finish', { summary: '' })],
        tools: [read],
      })
      const top = boss([calls('helper', args), says('Hi.')], helper, {
        resumable: false,
        initUserMessageProperty: 'task',
        initAgentNameProperty: 'label',
      })
      const it = await simulate({ agents: [top] })
      await it.ask('hi')
      expect(asked(helper)).toBe(said)
      expect(seen).toEqual([args])
    },
  )

  test('SA-66 without a mapping the arguments are the message as JSON', async () => {
    const helper = child()
    const top = boss([calls('helper', { ships: 3, port: 'Ayr' }), says('Hi.')], helper, {
      resumable: false,
    })
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    expect(asked(helper)).toBe('user: {"ships":3,"port":"Ayr"}')
  })

  test('SA-66 a message next to other arguments is one of them; alone it is sent as it is', async () => {
    const helper = child()
    const top = boss(
      [
        calls('helper', { message: 'go', ships: 3 }),
        calls('helper', { message: 'go' }),
        calls('helper', {}),
        says('Hi.'),
      ],
      helper,
      { resumable: false },
    )
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    expect(requestsOf(helper).map((request) => linesOf(request)[0])).toEqual([
      'user: {"message":"go","ships":3}',
      'user: go',
      'user: Begin.',
    ])
  })

  test('SA-66 a tool of a disposable child asks for what is mapped', async () => {
    const parametersOf = async (config: Partial<SubagentToolConfig>) => {
      const top = boss([says('Hi.')], child(), { resumable: false, ...config })
      const it = await simulate({ agents: [top] })
      await it.ask('hi')
      return requestsOf(top)[0]!.tools[0]!.parameters
    }
    expect(await parametersOf({})).toMatchObject({
      type: 'object',
      properties: { message: { type: 'string' } },
      required: ['message'],
    })
    const mapped = await parametersOf({
      initUserMessageProperty: 'task',
      initAttachmentsProperty: 'files',
      initAgentNameProperty: 'label',
    })
    expect(mapped).toMatchObject({
      properties: {
        task: { type: 'string' },
        files: { type: 'array', items: { type: 'string' } },
        label: { type: 'string' },
      },
      required: ['task'],
    })
  })

  test('SA-66 subagent_create: the arguments are checked, defaults are filled in, null is no message', async () => {
    const requiredSchema = z.object({ ships: z.number(), port: z.string().default('Ayr') })
    const seen: unknown[] = []
    const read = tool('read', (state) => void seen.push(state.arguments))
    const helper = child({
      script: [calls('read'), calls('finish', { summary: 'ok' })],
      tools: [read],
      prompt: { requiredSchema },
    })
    const top = boss(
      [
        create({ arguments: { ships: 'many' } }),
        create({ arguments: [3] }),
        create({ message: null, arguments: { ships: 3 } }),
        says('Hi.'),
      ],
      helper,
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: subagent_create ! .*ships/)
    expect(linesOf(requestsOf(top)[2]).at(-1)).toMatch(
      /^tool_result: subagent_create ! .*"arguments"/,
    )
    expect(await it.events(id, 'subagent_created')).toHaveLength(1)
    expect(seen).toEqual([{ ships: 3, port: 'Ayr' }])
    expect(asked(helper)).toBe('user: {"ships":3,"port":"Ayr"}')
  })

  test.each([false, true])(
    'SA-66 what is mapped is read from the checked arguments (resumable: %j)',
    async (isResumable) => {
      const requiredSchema = z.object({
        task: z.string().default('count'),
        files: z.string().transform((name) => `/${name}.txt`),
        label: z
          .string()
          .transform((name) => name.toUpperCase())
          .default('ada'),
      })
      const helper = child({ prompt: { requiredSchema } })
      const args = { files: 'list' }
      const write = tool('write', async (state) => void (await state.writeFile('/list.txt', 'x')))
      const call = isResumable
        ? calls('subagent_create', { agent: 'helper', name: 'Ada', arguments: args })
        : calls('helper', args)
      const top = solo('boss', {
        script: [calls('write'), call, says('Hi.')],
        tools: [
          write,
          {
            name: helper,
            ...(isResumable && { resumable: {} }),
            initUserMessageProperty: 'task',
            initAttachmentsProperty: 'files',
            initAgentNameProperty: 'label',
          },
        ],
      })
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      const [made] = await it.events(id, 'subagent_created')
      expect(made).toMatchObject({ threadName: isResumable ? 'Ada' : 'ada' })
      const [file] = await it.threads.files.list(made!.reference)
      expect(linesOf(requestsOf(helper)[0])).toEqual([
        `user: countAttached files:\n${file!.path} (text/plain, 1 bytes)`,
      ])
      expect(await it.events(made!.reference, 'thread_created')).toMatchObject([
        { arguments: { task: 'count', files: file!.path, label: 'ada' } },
      ])
    },
  )

  test.each(['', '  ', null])('SA-66 a mapped message of %j is none', async (task) => {
    const top = boss([calls('helper', { task }), says('Oh.')], child(), {
      resumable: false,
      initUserMessageProperty: 'task',
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: helper ! .*"task"/)
    expect(await it.events(id, 'subagent_created')).toEqual([])
  })

  test('SA-66 a call without its mapped message is a tool error, not a child that never begins', async () => {
    const helper = child()
    const top = boss([calls('helper', { other: 'x' }), says('Oh.')], helper, {
      resumable: false,
      initUserMessageProperty: 'task',
    })
    const it = await simulate({ agents: [top] })
    const { id, text } = await it.ask('hi')
    expect(text).toBe('Oh.')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: helper ! .*"task"/)
    expect(await it.events(id, 'subagent_created')).toEqual([])
  })

  test('SA-66 subagent_create: its own fields win, the mapping fills what they leave out', async () => {
    const helper = child()
    const top = boss(
      [
        create({ message: 'own', arguments: { task: 'mapped' } }),
        create({ message: undefined, name: 'Bob', arguments: { task: 'mapped' } }),
        says('Hi.'),
      ],
      helper,
      { initUserMessageProperty: 'task' },
    )
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    expect(requestsOf(helper).map((request) => linesOf(request)[0])).toEqual([
      'user: own',
      'user: mapped',
    ])
  })

  test('SA-66 initAgentNameProperty names the instance', async () => {
    const helper = child()
    const top = boss([calls('helper', { task: 'go', label: 'Ada' }), says('Hi.')], helper, {
      resumable: false,
      initUserMessageProperty: 'task',
      initAgentNameProperty: 'label',
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [made] = await it.events(id, 'subagent_created')
    expect(made).toMatchObject({ threadName: 'Ada' })
    expect(await it.threads.get(made!.reference)).toMatchObject({ tags: ['name:Ada'] })
  })

  test('SA-66 arguments are checked against what the first prompt of the child requires', async () => {
    const requiredSchema = z.object({ ships: z.number(), port: z.string().default('Ayr') })
    const seen: unknown[] = []
    const read = tool('read', (state) => void seen.push(state.arguments))
    const helper = child({
      script: [calls('read'), calls('finish', { summary: 'ok' })],
      tools: [read],
      prompt: { requiredSchema },
    })
    const top = boss(
      [calls('helper', { ships: 'many' }), calls('helper', { ships: 3 }), says('Hi.')],
      helper,
      {
        resumable: false,
      },
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(requestsOf(top)[0]!.tools[0]!.parameters).toMatchObject({
      properties: { ships: { type: 'number' } },
    })
    expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(/^tool_result: helper ! .*ships/)
    expect(await it.events(id, 'subagent_created')).toHaveLength(1)
    expect(seen).toEqual([{ ships: 3, port: 'Ayr' }])
  })
})

test('SA-86 terminating a child makes the registry of its parent say so, for good', async () => {
  const started = latch()
  const helper = child({
    script: () => {
      started.open()
      return [waits(Infinity)]
    },
  })
  const top = boss([create(), says('Started.'), says('I see.')], helper, { blocking: false })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await started.reached
  const [entry] = await it.threads.children(id)
  expect(entry).toMatchObject({ status: 'running' })
  await it.threads.terminate(entry!.reference)
  expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
  await it.idle()
  expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
})

test('SA-86 a child that terminates itself is terminated in the registry too', async () => {
  const end = tool('end', (state) => state.terminate())
  const helper = child({ script: [calls('end')], tools: [end] })
  const top = boss([create(), says('Oh.')], helper)
  const it = await simulate({ agents: [top] })
  const { id, text } = await it.ask('hi')
  expect(text).toBe('Oh.')
  expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
  expect(linesOf(requestsOf(top)[1]).join('\n')).toMatch(
    /tool_result: subagent_create ! .*terminated/s,
  )
})

test('SA-86 a disposable child that terminates itself is over for its parent, too', async () => {
  const end = tool('end', (state) => state.terminate())
  const helper = child({ script: [calls('end')], tools: [end] })
  const top = boss([calls('helper', { message: 'go' }), says('Started.')], helper, {
    resumable: false,
    blocking: false,
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await it.idle()
  const ends = (await it.events(id, 'subagent_ended')).map(({ outcome }) => outcome)
  expect([...new Set(ends)]).toEqual(['terminated'])
  expect(await it.threads.children(id)).toEqual([])
})

test('SA-86 terminating a parent terminates its idle children as well', async () => {
  const top = boss([create(), says('Made.')], child())
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const [entry] = await it.threads.children(id)
  expect(entry).toMatchObject({ status: 'idle' })
  await it.threads.terminate(id, { by: 'ann' })
  expect((await it.threads.get(entry!.reference)).lifecycle).toBe('terminated')
  expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
  expect(await it.events(id, 'thread_terminated')).toMatchObject([{ by: 'ann' }])
  await expect(it.threads.send(entry!.reference, 'more')).rejects.toMatchObject({
    code: 'THREAD_TERMINATED',
  })
})
