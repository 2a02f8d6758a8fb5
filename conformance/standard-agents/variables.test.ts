import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import {
  defineHook,
  defineTool,
  type AgentDefinition,
  type PromptDefinition,
  type SubagentToolConfig,
  type ThreadState,
} from '@skein/runtime'
import {
  child,
  finish,
  linesOf,
  pair,
  requestsOf,
  solo,
  tool,
  type SideSetup,
} from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

describe('SA-56', () => {
  const canary = 'canary/7731+blue=?sky'
  const forms = [
    canary,
    encodeURIComponent(canary),
    Buffer.from(canary).toString('base64').replace(/=+$/, ''),
    Buffer.from(canary).toString('base64url'),
    Buffer.from(canary).toString('hex'),
    JSON.stringify(canary).slice(1, -1),
  ]
  const hasCanary = (text: string) => forms.some((form) => text.includes(form))

  /** Everything that models, people and files can come to see of a tree. */
  async function everything(it: Simulation, agents: readonly AgentDefinition[]): Promise<string[]> {
    const seen: string[] = []
    for (const agent of agents)
      for (const side of ['a', 'b'] as const) {
        if (side === 'b' && !agent.sideB) continue
        for (const { messages, system, tools, params } of requestsOf(agent, side))
          seen.push(`request ${agent.name} ${JSON.stringify({ messages, system, tools, params })}`)
      }
    for (const { id } of await it.threads.list({ limit: 100 })) {
      seen.push(`events ${JSON.stringify(await it.threads.events(id))}`)
      seen.push(`export ${await it.threads.export(id)}`)
      seen.push(`document ${JSON.stringify(await it.threads.document(id))}`)
      seen.push(`env ${JSON.stringify(await it.threads.env.list(id))}`)
      for (const { logId } of await it.threads.logs(id))
        seen.push(`log ${JSON.stringify(await it.threads.log(id, logId))}`)
      const events = it.runtime.subscribe(id, { untilCaughtUp: true })
      for await (const event of events) seen.push(`live ${JSON.stringify(event)}`)
      seen.push(`audit ${JSON.stringify(await it.threads.audit(id).catch(() => null))}`)
    }
    return seen
  }

  /** Tools of the child that let the value out in every way they can. */
  const leaks = () => {
    const spell = (state: ThreadState) => {
      const value = state.env('CHILD_KEY')
      return `${value} ${encodeURIComponent(value)} ${Buffer.from(value).toString('base64')} ${Buffer.from(value).toString('hex')}`
    }
    return [
      tool('returns', (state) => spell(state)),
      tool('throws', (state) => {
        throw new Error(`failed with ${spell(state)}`)
      }),
      tool('tells', async (state) => {
        state.notifyParent(spell(state))
        await state.setStatus(spell(state))
        await state.emit('leak', { value: spell(state) })
        state.setValue('leak', spell(state))
        state.queueMessage({ content: spell(state), isSilent: true })
      }),
    ]
  }

  function tree(immediate: Exclude<SubagentToolConfig['immediate'], undefined | boolean>) {
    const tools = leaks()
    const helper = child('helper', {
      script: [
        calls('returns'),
        calls('throws'),
        calls('tells'),
        ({ messages }) => calls('finish', { summary: JSON.stringify(messages) }),
      ],
      tools,
      // The text of a prompt is shown to a model too.
      system: [
        { type: 'text', content: 'Your key is ' },
        { type: 'env', property: 'CHILD_KEY' },
      ],
    })
    const top = solo('boss', {
      script: () => says('I see.'),
      system: [
        { type: 'text', content: 'The key is ' },
        { type: 'env', property: 'CHILD_KEY' },
      ],
      tools: [{ name: helper, immediate }],
    })
    return { helper, top }
  }

  test('SA-56 a scoped value is in no request, record, event, error, export or log, in no spelling', async () => {
    const { helper, top } = tree({ scopedEnv: ['CHILD_KEY'] })
    const it = await simulate({ agents: [top] })
    // As a plain variable: that it is scoped makes it hidden.
    const id = await it.create({ env: { CHILD_KEY: canary }, message: 'hi' })
    await it.idle()
    expect(requestsOf(helper)).toHaveLength(4)
    const seen = await everything(it, [top, helper])
    expect(seen.filter(hasCanary)).toEqual([])
    expect(seen.join('\n')).toContain('[redacted]')
    // Set again later, by a person.
    await it.threads.env.set(id, 'CHILD_KEY', canary)
    expect((await everything(it, [top, helper])).filter(hasCanary)).toEqual([])
  })

  test('SA-56 what was said before the value was there is hidden from then on', async () => {
    const { helper, top } = tree({ scopedEnv: ['CHILD_KEY'] })
    const it = await simulate({ agents: [top, helper] })
    const id = await it.create({ env: { CHILD_KEY: 'another value' } })
    await it.run(id, `My key is ${canary}.`)
    await it.threads.env.set(id, 'CHILD_KEY', canary)
    const before = requestsOf(top).length
    await it.run(id, 'And?')
    const sent = requestsOf(top).slice(before)
    expect(sent).not.toEqual([])
    expect(sent.filter(({ messages }) => hasCanary(JSON.stringify(messages)))).toEqual([])
  })

  test('SA-56 the same value may be seen when it is declared as a hint', async () => {
    const { helper, top } = tree({ scopedEnv: ['CHILD_KEY'], descriptionEnv: 'CHILD_KEY' })
    const it = await simulate({ agents: [top] })
    await it.create({ env: { CHILD_KEY: canary } })
    await it.idle()
    const bootstrap = requestsOf(top)[0]!
    expect(hasCanary(JSON.stringify(bootstrap.messages))).toBe(true)
    expect(requestsOf(helper)[0]!.system).toBe(`Your key is ${canary}`)
  })

  test('SA-56 values that a person gave later are hidden as well', async () => {
    const tools = leaks()
    const helper = child('helper', {
      script: [
        calls('returns'),
        calls('throws'),
        calls('tells'),
        ({ messages }) => calls('finish', { summary: JSON.stringify(messages) }),
      ],
      tools,
      prompt: {
        variables: [{ name: 'CHILD_KEY', type: 'secret', required: true, scoped: true }],
      },
    })
    const top = solo('boss', {
      script: [
        calls('helper', { message: 'go' }),
        says('Then later.'),
        says('I see.'),
        says('I see.'),
      ],
      tools: [helper],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [{ requestId } = { requestId: '' }] = await it.events(id, 'variables_requested')
    await it.threads.variables.provide(id, requestId, { CHILD_KEY: canary })
    await it.idle()
    expect(requestsOf(helper)).toHaveLength(4)
    expect((await everything(it, [top, helper])).filter(hasCanary)).toEqual([])
  })
})

describe('missing variables', () => {
  const variables = [
    { name: 'SHIP_KEY', type: 'secret', required: true, scoped: true },
    { name: 'SHIP_PORT', type: 'text', required: true, scoped: true },
    { name: 'SHIP_NOTE', required: false, scoped: true },
  ] as const

  interface Setup {
    readonly seen: unknown[]
    readonly helper: AgentDefinition
    readonly top: AgentDefinition
  }

  function setup(config: Partial<SubagentToolConfig> = {}): Setup {
    const seen: unknown[] = []
    const look = tool('look', async (state) => {
      const files = await Promise.all(state.listFiles().map(({ path }) => state.readTextFile(path)))
      seen.push({
        env: [state.env('SHIP_KEY'), state.env('SHIP_PORT')],
        arguments: state.arguments,
        files,
      })
    })
    const below = child('below', { prompt: { variables: [variables[1]] } })
    const helper = child('helper', {
      script: [calls('look'), calls('finish', { summary: 'counted' })],
      tools: [look, below],
      prompt: { variables: [variables[0], variables[2]] },
    })
    const write = tool('write', async (state) => void (await state.writeFile('/list.txt', 'three')))
    const top = solo('boss', {
      script: [
        calls('write'),
        calls('subagent_create', {
          agent: 'helper',
          name: 'Ada',
          message: 'count the ships',
          attachments: ['/list.txt'],
          arguments: { port: 'Ayr' },
        }),
        says('It needs a key.'),
        says('Good.'),
        says('Good.'),
      ],
      tools: [write, { name: helper, resumable: {}, ...config }],
    })
    return { seen, helper, top }
  }

  const given = { SHIP_KEY: 'anchor-key', SHIP_PORT: 'Ayr' }

  async function requested(it: Simulation): Promise<{ id: string; requestId: string }> {
    const { id } = await it.ask('hi')
    const [request] = await it.events(id, 'variables_requested')
    return { id, requestId: request!.requestId }
  }

  test('SA-61 the call fails with a structured error: request, endpoint, required and missing names', async () => {
    const { helper, top } = setup()
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { SHIP_PORT: 'Ayr' } })
    await it.run(id, 'hi')
    const [request] = await it.events(id, 'variables_requested')
    const told = requestsOf(top)[2]!.messages.findLast(({ type }) => type === 'tool_result')
    const [result] = (told as { results: readonly { result: unknown; isError?: boolean }[] })
      .results
    expect(result!.isError).toBe(true)
    expect(JSON.parse(String(result!.result))).toEqual({
      error: 'subagent_env_required',
      request_id: request!.requestId,
      endpoint: `/threads/${id}/variables/${request!.requestId}`,
      required: ['SHIP_KEY', 'SHIP_PORT'],
      missing: ['SHIP_KEY'],
      message: expect.stringContaining('SHIP_KEY') as string,
    })
    expect(requestsOf(helper)).toEqual([])
    expect(await it.threads.list({ parentId: id })).toEqual([])
  })

  test('SA-64 get tells names and no values; provide boots the child with the original payload', async () => {
    const { seen, helper, top } = setup()
    const it = await simulate({ agents: [top] })
    const { id, requestId } = await requested(it)
    const request = {
      requestId,
      required: ['SHIP_KEY', 'SHIP_PORT'],
      missing: ['SHIP_KEY', 'SHIP_PORT'],
      expiresAt: '2026-01-02T00:00:00.000Z',
    }
    expect(await it.threads.variables.get(id, requestId)).toEqual({ ...request, status: 'open' })
    // What happens to the file meanwhile is not what was handed over.
    await it.threads.files.write(id, '/list.txt', new TextEncoder().encode('four'))
    const { reference } = await it.threads.variables.provide(id, requestId, given, { by: 'ann' })
    await it.idle()
    expect(await it.threads.variables.get(id, requestId)).toEqual({
      ...request,
      status: 'provided',
    })
    expect(seen).toEqual([
      { env: ['anchor-key', 'Ayr'], arguments: { port: 'Ayr' }, files: ['three'] },
    ])
    expect(linesOf(requestsOf(helper)[0])).toEqual([
      expect.stringMatching(/^user: count the ships(\n)*Attached files:\n\/attachments\//),
    ])
    expect(await it.threads.get(reference)).toMatchObject({ parentId: id, title: 'Ada' })
    // The call was answered long ago: what comes of it comes by the queue, though it is blocking.
    expect(linesOf(requestsOf(top)[3]).join('\n')).toContain(
      `user: Subagent (reference: ${reference}) has returned the following result:\n\ncounted`,
    )
    expect(await it.threads.children(id)).toMatchObject([{ reference, threadName: 'Ada' }])
  })

  test('SA-64 two at the same time boot one child; a request is good for one answer', async () => {
    const { top, seen } = setup()
    const it = await simulate({ agents: [top] })
    const { id, requestId } = await requested(it)
    const both = await Promise.allSettled([
      it.threads.variables.provide(id, requestId, given),
      it.threads.variables.provide(id, requestId, given),
    ])
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(it.threads.variables.provide(id, requestId, given)).rejects.toMatchObject({
      code: 'ALREADY_ANSWERED',
    })
    await it.idle()
    expect(await it.threads.list({ parentId: id })).toHaveLength(1)
    expect(seen).toHaveLength(1)
  })

  test('SA-64 a request expires after 24 hours; an incomplete answer stores nothing', async () => {
    const { top } = setup()
    const it = await simulate({ agents: [top] })
    const { id, requestId } = await requested(it)
    await expect(
      it.threads.variables.provide(id, requestId, { SHIP_KEY: 'anchor-key' }),
    ).rejects.toMatchObject({ code: 'VARIABLES_MISSING' })
    await expect(
      it.threads.variables.provide(id, requestId, { ...given, OTHER: 'x' }),
    ).rejects.toMatchObject({ code: 'ENV_INVALID' })
    expect(await it.events(id, 'variables_provided')).toEqual([])
    await it.advance(24 * 3_600_000 - 1)
    expect(await it.threads.variables.get(id, requestId)).toMatchObject({ status: 'open' })
    await it.advance(1)
    expect(await it.threads.variables.get(id, requestId)).toMatchObject({ status: 'expired' })
    await expect(it.threads.variables.provide(id, requestId, given)).rejects.toMatchObject({
      code: 'REQUEST_EXPIRED',
    })
    expect(await it.threads.list({ parentId: id })).toEqual([])
  })

  test('SA-64 the answer survives a restart between the answer and the child', async () => {
    const { top, seen } = setup()
    const before = await simulate({ agents: [top] })
    const { id, requestId } = await requested(before)
    await before.idle()
    const stopped = await before.restart({ starts: false })
    void stopped.threads.variables.provide(id, requestId, given)
    await expect.poll(() => stopped.events(id, 'variables_provided')).toHaveLength(1)
    const it = await stopped.restart({ starts: true })
    await it.idle()
    expect(seen).toHaveLength(1)
    expect(await it.threads.list({ parentId: id })).toHaveLength(1)
  })

  test('SA-64 an immediate child that waits for variables begins as it would have begun', async () => {
    const { top: _top, helper, seen } = setup()
    const top = solo('boss', {
      script: () => says('Good.'),
      tools: [{ name: helper, immediate: true, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create()
    await it.idle()
    const [request] = await it.events(id, 'variables_requested')
    expect(await it.events(id, 'error_raised')).toMatchObject([{ code: 'SUBAGENT_ENV_REQUIRED' }])
    await it.threads.variables.provide(id, request!.requestId, given)
    await it.idle()
    expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Begin.'])
    expect(seen).toHaveLength(1)
    expect(await it.threads.children(id)).toMatchObject([{ threadName: 'helper 1' }])
  })

  test('SA-60 SA-64 a cap that was reached meanwhile holds for the deferred child, too', async () => {
    const helper = child('helper', { prompt: { variables: variables.slice(0, 2) } })
    const make = (name: string) =>
      calls('subagent_create', { agent: 'helper', name, message: 'count the ships' })
    const top = solo('boss', {
      script: [[make('Ada'), make('Bob')], says('It needs a key.'), says('Good.')],
      tools: [{ name: helper, resumable: { maxInstances: 1 } }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [first, second] = await it.events(id, 'variables_requested')
    await it.threads.variables.provide(id, first!.requestId, given)
    await it.idle()
    await expect(it.threads.variables.provide(id, second!.requestId, given)).rejects.toThrow(
      'There may be 1 instance',
    )
    expect(await it.threads.children(id)).toMatchObject([{ threadName: 'Ada' }])
  })

  test('SA-64 the hooks of the parent hear of the deferred child, and the log of who gave the values', async () => {
    const heard: string[] = []
    const hook = defineHook({
      id: 'heard',
      hook: 'after_subagent_created',
      execute: (_, { reference, name }) => void heard.push(`${name} ${reference}`),
    })
    const { top: asks } = setup()
    const sideA = asks.sideA as { readonly prompt: PromptDefinition }
    const top = { ...asks, sideA: { ...sideA, prompt: { ...sideA.prompt, hooks: [hook] } } }
    const it = await simulate({ agents: [top] })
    const { id, requestId } = await requested(it)
    const { reference } = await it.threads.variables.provide(id, requestId, given, { by: 'ann' })
    await it.idle()
    expect(heard).toEqual([`helper ${reference}`])
    expect(await it.events(id, 'variables_provided')).toMatchObject([{ requestId, by: 'ann' }])
  })

  test('SA-55 SA-64 what the child required is not handed on to children that do not require it', async () => {
    const seen: string[] = []
    const look = tool('look', (state) => {
      const value = (name: string) => (state.hasEnv(name) ? state.env(name) : '-')
      seen.push(`${state.agentId} ${value('SHIP_KEY')} ${value('SHIP_PORT')}`)
    })
    const script = [calls('look'), calls('finish', { summary: 'done' })]
    const plain = child('plain', { script, tools: [look] })
    const needs = child('needs', { script, tools: [look], prompt: { variables: [variables[1]] } })
    const helper = child('helper', {
      script: [calls('plain', { message: 'go' }), calls('needs', { message: 'go' }), ...script],
      tools: [look, plain, needs],
      prompt: { variables: [variables[0]] },
    })
    const top = solo('boss', {
      script: [calls('helper', { message: 'go' }), says('Done.')],
      tools: [helper],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: given })
    await it.run(id, 'hi')
    expect(seen).toEqual(['plain - -', 'needs - Ayr', 'helper anchor-key Ayr'])
    // What the child declares as a secret is one there, although the thread above has it as text.
    const [made] = await it.events(id, 'subagent_created')
    expect(await it.threads.env.list(made!.reference)).toEqual([
      { name: 'SHIP_KEY', type: 'secret' },
      { name: 'SHIP_PORT', type: 'text', value: 'Ayr' },
    ])
  })

  test('SA-64 a value that was given for a variable that has one already is what the child gets', async () => {
    const { top, seen } = setup()
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { SHIP_PORT: 'Oban' } })
    await it.run(id, 'hi')
    const [request] = await it.events(id, 'variables_requested')
    await it.threads.variables.provide(id, request!.requestId, given)
    await it.idle()
    expect(seen).toMatchObject([{ env: ['anchor-key', 'Ayr'] }])
    expect(await it.threads.env.list(id)).toEqual([
      { name: 'SHIP_PORT', type: 'text', value: 'Oban' },
    ])
  })

  test('SA-64 the child boots immediately, also while its parent waits for someone; each request has its own', async () => {
    const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })
    const helper = child('helper', { prompt: { variables: variables.slice(0, 2) } })
    const make = (name: string, message: string) =>
      calls('subagent_create', { agent: 'helper', name, message })
    const top = solo('boss', {
      script: [[make('Ada', 'count ships'), make('Bob', 'count boats')], calls('ask'), says('Ok.')],
      tools: [ask, { name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const { id, outcome } = await it.ask('hi')
    expect(outcome).toBe('waiting')
    const [first, second] = await it.events(id, 'variables_requested')
    const { provide } = it.threads.variables
    const bob = await provide(id, second!.requestId, { SHIP_KEY: 'key of Bob', SHIP_PORT: 'Ayr' })
    const ada = await provide(id, first!.requestId, { SHIP_KEY: 'key of Ada', SHIP_PORT: 'Ayr' })
    expect(await it.threads.children(id)).toMatchObject([
      { reference: bob.reference, threadName: 'Bob' },
      { reference: ada.reference, threadName: 'Ada' },
    ])
    expect((await it.events(bob.reference, 'message_queued'))[0]).toMatchObject({
      message: { content: [{ text: 'count boats' }] },
    })
    expect(requestsOf(top)).toHaveLength(2)
    await it.idle()
  })

  test('SA-64 a terminated thread takes no values, and boots no child', async () => {
    const { top, helper } = setup()
    const it = await simulate({ agents: [top] })
    const { id, requestId } = await requested(it)
    await it.threads.terminate(id)
    await expect(it.threads.variables.provide(id, requestId, given)).rejects.toMatchObject({
      code: 'THREAD_TERMINATED',
    })
    await it.idle()
    expect(requestsOf(helper)).toEqual([])
    expect(await it.threads.list({ parentId: id })).toEqual([])
  })

  test('SA-64 a child whose branch was switched off meanwhile is not created', async () => {
    const { top, helper } = setup({ optional: 'WITH_HELPER' })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { WITH_HELPER: 'yes' } })
    await it.run(id, 'hi')
    const [request] = await it.events(id, 'variables_requested')
    await it.threads.env.set(id, 'WITH_HELPER', 'no')
    await expect(it.threads.variables.provide(id, request!.requestId, given)).rejects.toThrow(
      'WITH_HELPER',
    )
    expect(requestsOf(helper)).toEqual([])
  })
})

describe('what a request for variables says', () => {
  const key = { name: 'KEY', type: 'secret', required: true, scoped: true } as const
  const port = { name: 'PORT', required: true, scoped: true, description: 'Of call.' } as const
  const made = (variables: PromptDefinition['variables'] = [key, port]) =>
    child('helper', { prompt: { variables: variables! } })

  test.each([true, false])(
    'SA-61 SA-62 SA-63 the log, GET and the inbox name the call and what is missing, until it is given (resumable: %j)',
    async (isResumable) => {
      const toolName = isResumable ? 'subagent_create' : 'helper'
      const args = { ...(isResumable && { agent: 'helper', name: 'Ada' }), message: 'go' }
      const top = solo('boss', {
        script: [calls(toolName, args, { id: 'c1' }), says('Later.'), says('Good.')],
        tools: [{ name: made(), ...(isResumable && { resumable: {} }) }],
      })
      const it = await simulate({ agents: [top] })
      const id = await it.create({ env: { KEY: 'known' } })
      await it.run(id, 'hi')
      const [request] = await it.events(id, 'variables_requested')
      const { requestId, toolCallId } = request!
      const [openedAt, expiresAt] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z']
      const said = { requestId, required: ['KEY', 'PORT'], missing: ['PORT'], expiresAt }
      expect(request).toEqual({
        ...said,
        type: 'variables_requested',
        at: openedAt,
        relation: 'helper',
        agent: 'boss',
        side: 'a',
        toolName,
        toolCallId,
        arguments: args,
      })
      expect((await it.events(id, 'tool_execution_end')).map((end) => end.toolCallId)).toEqual([
        toolCallId,
      ])
      const { get } = it.threads.variables
      expect(await get(id, requestId)).toEqual({ ...said, status: 'open' })
      expect(await it.runtime.inbox.list()).toEqual([
        {
          threadId: id,
          rootId: id,
          interruptId: requestId,
          toolCallId,
          toolName,
          arguments: args,
          kind: 'variables',
          path: ['boss'],
          openedAt,
          expiresAt,
          variables: [{ name: 'PORT', type: 'text', description: 'Of call.' }],
        },
      ])
      await it.threads.variables.provide(id, requestId, { PORT: 'Ayr' })
      await it.idle()
      expect(await it.runtime.inbox.list()).toEqual([])
      await it.advance(48 * 3_600_000)
      expect(await get(id, requestId)).toEqual({ ...said, status: 'provided' })
    },
  )

  test('SA-63 a variable that is not declared any more counts as a secret', async () => {
    const boss = (helper: AgentDefinition) =>
      solo('boss', {
        script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('Later.')),
        tools: [helper],
      })
    const before = await simulate({ agents: [boss(made())] })
    const { id } = await before.ask('hi')
    const it = await before.restart({ agents: [boss(made([key]))] })
    const [item] = await it.runtime.inbox.list()
    expect(item!.variables).toEqual([
      { name: 'KEY', type: 'secret' },
      { name: 'PORT', type: 'secret' },
    ])
    await it.threads.variables.provide(id, item!.interruptId, { KEY: 'k', PORT: 'p-canary' })
    await it.idle()
    expect(JSON.stringify(await it.threads.events(id))).not.toContain('p-canary')
  })

  test.each([
    [{ name: 'KEY', required: true, scoped: true }, { name: 'KEY' }],
    [{ name: 'KEY' }, { name: 'KEY', required: true, scoped: true }],
    [
      { name: 'KEY', required: true },
      { name: 'KEY', scoped: true },
    ],
    [
      { name: 'KEY', scoped: true, type: 'secret' as const },
      { name: 'KEY', required: true },
    ],
  ])('SA-61 what either side of the child declares counts: %j and %j', async (a, b) => {
    const helper = pair('helper', {
      a: {
        script: () => calls('finish', { summary: 'done' }),
        tools: [finish],
        sessionStop: { name: finish, messageProperty: 'summary' },
        prompt: { variables: [a] },
      },
      b: { script: [], prompt: { variables: [b] } },
    })
    const top = solo('boss', {
      script: [calls('helper', { message: 'go' }), says('Later.')],
      tools: [helper],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(await it.events(id, 'variables_requested')).toMatchObject([{ missing: ['KEY'] }])
    const [item] = await it.runtime.inbox.list()
    expect(item!.variables).toEqual([
      { name: 'KEY', type: 'type' in a && a.type === 'secret' ? 'secret' : 'text' },
    ])
  })

  test.each(['a', 'b'] as const)(
    'SA-61 what is missing is judged by the variables of the side that calls: only side %s has it',
    async (holder) => {
      const helper = child('helper', { prompt: { variables: [key] } })
      const env = { KEY: 'known' }
      const boss = pair('boss', {
        a: { script: [says('Over to you.')], prompt: holder === 'a' ? { env } : {} },
        b: {
          script: [calls('helper', { message: 'go' }), calls('finish', { summary: 'over' })],
          tools: [helper, finish],
          sessionStop: finish,
          prompt: holder === 'b' ? { env } : {},
        },
      })
      const it = await simulate({ agents: [boss] })
      const { id } = await it.ask('hi')
      const requested = await it.events(id, 'variables_requested')
      const created = await it.events(id, 'subagent_created')
      expect(requested.map(({ missing }) => missing)).toEqual(holder === 'b' ? [] : [['KEY']])
      expect(created).toHaveLength(holder === 'b' ? 1 : 0)
      const told = linesOf(requestsOf(boss, 'b')[1]).at(-1)
      if (holder === 'a') expect(told).toContain('"error":"subagent_env_required"')
      else expect(told).toContain('helper is done')
    },
  )

  test('SA-61 the endpoint is that of the thread that asks, on every level', async () => {
    const helper = made([key])
    const drop = tool('drop', (state) => state.setEnv('KEY', null))
    const middle = child('middle', {
      script: [
        calls('drop'),
        calls('helper', { message: 'go' }),
        calls('finish', { summary: 'done' }),
      ],
      tools: [drop, helper],
    })
    const top = solo('boss', {
      script: [calls('middle', { message: 'go' }), says('Done.')],
      tools: [middle],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { KEY: 'known' } })
    await it.run(id, 'hi')
    const [{ reference } = { reference: '' }] = await it.events(id, 'subagent_created')
    const [{ requestId } = { requestId: '' }] = await it.events(reference, 'variables_requested')
    expect(linesOf(requestsOf(middle)[2]).at(-1)).toContain(
      `"endpoint":"/threads/${reference}/variables/${requestId}"`,
    )
  })
})

describe('variables of a tree', () => {
  function family() {
    const seen: string[] = []
    const read = tool('read', (state) => {
      const value = (name: string) => (state.hasEnv(name) ? state.env(name) : '-')
      seen.push(`${state.agentId} ${value('COLOUR')} ${value('OWN')}`)
    })
    const script: SideSetup['script'] = ({ messages }) =>
      messages.at(-1)!.type === 'user' ? calls('read') : calls('finish', { summary: 'done' })
    const leaf = child('leaf', { script, tools: [read] })
    const middle = child('middle', {
      script: ({ messages }) => {
        const last = messages.at(-1)!
        const text = last.type === 'user' ? last.text : ''
        if (text.includes('make'))
          return calls('subagent_create', { agent: 'leaf', name: 'L', message: 'go' })
        return last.type === 'user' && !text.startsWith('[runtime] Subagents')
          ? calls('read')
          : calls('finish', { summary: 'done' })
      },
      tools: [read, { name: leaf, resumable: {} }],
    })
    const set = tool('set', (state, { value }) => state.setEnv('COLOUR', String(value)))
    return { seen, leaf, middle, set }
  }

  test('a value set by a person or a tool reaches live descendants, but none that has its own', async () => {
    const { seen, middle, leaf, set } = family()
    const top = solo('boss', {
      script: [
        calls('subagent_create', { agent: 'middle', name: 'M', message: 'make' }),
        says('Made.'),
        calls('set', { value: 'green' }),
        says('Set.'),
      ],
      tools: [set, { name: middle, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { COLOUR: 'red' } })
    await it.run(id, 'go')
    expect(seen).toEqual(['leaf red -'])
    const tree = await it.threads.list({ rootId: id })
    const idOf = (agent: string) => tree.find((head) => head.agent === agent)!.id
    // The middle reads as well when it learns of the leaf; where threads run elsewhere, that may come first.
    const leafSaw = () => seen.findLast((line) => line.startsWith('leaf'))
    await it.threads.env.set(id, 'COLOUR', 'blue')
    await it.run(idOf('leaf'), 'look')
    expect(leafSaw()).toBe('leaf blue -')
    // By a tool of the root.
    await it.run(id, 'set it')
    await it.run(idOf('leaf'), 'look')
    expect(leafSaw()).toBe('leaf green -')
    void leaf
    // Below, not above.
    await it.threads.env.set(idOf('middle'), 'OWN', 'mine')
    await it.run(idOf('leaf'), 'look')
    expect(leafSaw()).toBe('leaf green mine')
    expect((await it.threads.env.list(id)).map(({ name }) => name)).toEqual(['COLOUR'])
  })

  test('a scoped value that is set again reaches no sibling', async () => {
    const { seen, leaf } = family()
    const read = tool('read2', (state) => {
      seen.push(`sibling ${state.hasEnv('OWN') ? state.env('OWN') : '-'}`)
    })
    const sibling = child('sibling', {
      script: ({ messages }) =>
        messages.at(-1)!.type === 'user' ? calls('read2') : calls('finish', { summary: 'done' }),
      tools: [read],
    })
    const top = solo('boss', {
      script: [
        says('Ready.'),
        calls('subagent_create', { agent: 'sibling', name: 'S', message: 'go' }),
        says('Made.'),
      ],
      tools: [
        { name: leaf, immediate: { scopedEnv: ['OWN'] }, resumable: {} },
        { name: sibling, resumable: {} },
      ],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { OWN: 'first-value', COLOUR: 'red' } })
    await it.idle()
    await it.run(id, 'go')
    expect(seen).toEqual(['leaf red first-value', 'sibling -'])
    await it.threads.env.set(id, 'OWN', 'second-value')
    const tree = await it.threads.list({ parentId: id })
    for (const head of tree.toSorted((a, b) => (a.agent < b.agent ? -1 : 1)))
      await it.run(head.id, 'look')
    // Handed over is a copy: the child keeps what it was given.
    expect(seen.slice(2)).toEqual(['leaf red first-value', 'sibling -'])
  })
})

test('SA-55 a scoped value that is changed in its child stays the child’s own', async () => {
  const seen: string[] = []
  const read = tool('read', (state) => {
    seen.push(`${state.agentId} ${state.hasEnv('OWN') ? state.env('OWN') : '-'}`)
  })
  const set = tool('set', (state) => state.setEnv('OWN', 'second'))
  const leaf = child('leaf', {
    script: ({ messages }) =>
      messages.at(-1)!.type === 'user' ? calls('read') : calls('finish', { summary: 'done' }),
    tools: [read],
  })
  const make = (name: string) => calls('leaf', { message: name })
  const middle = child('middle', {
    script: [
      calls('set'),
      make('after the tool'),
      calls('finish', { summary: 'one' }),
      calls('read'),
      make('after the person'),
      calls('finish', { summary: 'two' }),
    ],
    tools: [read, set, leaf],
  })
  const top = solo('boss', {
    script: () => says('I see.'),
    tools: [{ name: middle, immediate: { scopedEnv: ['OWN'] }, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create({ env: { OWN: 'first' } })
  await it.idle()
  const [entry] = await it.threads.children(id)
  await it.threads.env.set(entry!.reference, 'OWN', 'third')
  await it.run(entry!.reference, 'again')
  expect(seen).toEqual(['leaf -', 'middle third', 'leaf -'])
})

test('SA-55 a scoped value that its child changes does not reach a grandchild that lives', async () => {
  const seen: string[] = []
  const read = tool('read', (state) => {
    seen.push(state.hasEnv('OWN') ? state.env('OWN') : '-')
  })
  const leaf = child('leaf', {
    script: ({ messages }) =>
      messages.at(-1)!.type === 'user' ? calls('read') : calls('finish', { summary: 'done' }),
    tools: [read],
  })
  const middle = child('middle', {
    script: [
      calls('subagent_create', { agent: 'leaf', name: 'L', message: 'go' }),
      calls('set'),
      calls('finish', { summary: 'one' }),
    ],
    tools: [tool('set', (state) => state.setEnv('OWN', 'second')), { name: leaf, resumable: {} }],
  })
  const top = solo('boss', {
    script: () => says('I see.'),
    tools: [{ name: middle, immediate: { scopedEnv: ['OWN'] }, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create({ env: { OWN: 'first' } })
  await it.idle()
  const { reference } = (await it.threads.children(id))[0]!
  const below = (await it.threads.children(reference))[0]!.reference
  await it.run(below, 'look')
  await it.threads.env.set(reference, 'OWN', 'third')
  await it.run(below, 'look')
  expect(seen).toEqual(['-', '-', '-'])
})
