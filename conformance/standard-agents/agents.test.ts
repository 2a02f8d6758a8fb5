import { expect, test } from 'vitest'
import { agent as uapAgent } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, defineAgent, defineHook, type SideConfig } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const broken = tool('hand', () => {
  throw new Error('no')
})

test('SA-06 two that never end are ended at the cap, which counts completed turns of both sides', async () => {
  const look = tool('look')
  const agent = pair(
    'endless',
    {
      // Steps are not turns: side A takes two steps in each of its turns.
      a: { script: (_, index) => (index % 2 === 0 ? calls('look') : says('More.')), tools: [look] },
      b: { script: () => says('Again.') },
    },
    { maxSessionTurns: 5 },
  )
  const it = await simulate({ agents: [agent] })
  const { id, outcome, reason } = await it.ask('Begin.')
  expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'max_session_turns' })
  expect(requestsOf(agent, 'a')).toHaveLength(6)
  expect(requestsOf(agent, 'b')).toHaveLength(2)
  expect(await it.events(id, 'turn_start')).toHaveLength(5)
  await it.idle()
  expect((await it.threads.get(id)).lifecycle).toBe('failed')
  // The count is the session's: the next one has all its turns again.
  await it.run(id, 'Again.')
  expect(await it.events(id, 'turn_start')).toHaveLength(10)
  await it.threads.resume(id)
  await it.idle()
  expect(await it.events(id, 'turn_start')).toHaveLength(15)
})

test.each<readonly [ends: string, side: SideSetup | SideConfig]>([
  ['a response', { script: () => says('More.') }],
  [
    'the stop tool',
    { script: () => calls('hand', { text: 'More.' }), tools: [tool('hand')], stopTool: 'hand' },
  ],
  [
    'a stop tool that fails',
    { script: () => calls('hand'), tools: [broken], stopTool: 'hand', stopOnResponse: false },
  ],
  ['words of a side without a stop rule', { script: () => says('More.'), stopOnResponse: false }],
  ['the end of its strategy', { agent: uapAgent({ model: scripted(() => says('More.')) }) }],
  ['the answer of code', { handler: () => 'More.' }],
])('SA-06 a turn that ends with %s counts, on either side', async (_, side) => {
  const other = { script: () => says('Again.') }
  const agents = ['a', 'b'].map((letter) => {
    const given = 'script' in side ? side : other
    const sides = letter === 'a' ? { a: given, b: other } : { a: other, b: given }
    const field = letter === 'a' ? 'sideA' : 'sideB'
    const more = 'script' in side ? {} : { [field]: side }
    return pair(`endless_${letter}`, sides, { maxSessionTurns: 5, ...more })
  })
  const it = await simulate({ agents })
  for (const { name } of agents) {
    const id = await it.create({ agent: name })
    const { outcome, reason } = await it.run(id, 'Begin.')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'max_session_turns' })
    expect((await it.events(id, 'turn_start')).map(({ agentId }) => agentId)).toEqual(
      ['a', 'b', 'a', 'b', 'a'].map((letter) => `${name}/${letter}`),
    )
  }
})

test('SA-06 an agent that faces a person has no cap over its sessions', async () => {
  const agent = solo('patient', { script: () => says('Yes.') }, { maxSessionTurns: 1 })
  const it = await simulate({ agents: [agent] })
  const { id } = await it.ask('one')
  expect((await it.run(id, 'two')).outcome).toBe('completed')
})

test('SA-17 the warnings of a runtime are those of the definitions that it has now', async () => {
  const never = { a: { script: () => says('x') }, b: { script: () => says('x') } }
  const open = pair('open', never, { maxSessionTurns: undefined })
  const it = await simulate({ agents: [open] })
  expect(it.runtime.registry.warnings).toMatchObject([{ field: 'maxSessionTurns' }])
  it.runtime.replaceRegistry(createRegistry({ agents: [pair('capped', never)] }))
  expect(it.runtime.registry.warnings).toEqual([])
  it.runtime.replaceRegistry(createRegistry({ agents: [open] }))
  expect(it.runtime.registry.warnings).toMatchObject([{ field: 'maxSessionTurns' }])
})

test('SA-10 the tool description is what a model reads about the callable', async () => {
  const billing = solo(
    'billing',
    { script: () => says('x') },
    { exposeAsTool: true, toolDescription: 'Knows all about invoices.' },
  )
  const drafts = pair(
    'drafts',
    { a: { script: () => says('x') }, b: { script: () => says('x') } },
    { toolDescription: 'Writes and reviews drafts.' },
  )
  const agent = solo('front', { script: [says('Hello.')], tools: [billing, drafts] })
  const it = await simulate({ agents: [agent] })
  await it.ask('hi')
  const tools = requestsOf(agent)[0]!.tools.map(({ name, description }) => ({ name, description }))
  expect(tools).toEqual([
    { name: 'billing', description: 'Knows all about invoices.' },
    { name: 'drafts', description: 'Writes and reviews drafts.' },
  ])
})

test('SA-10 so it is in every form of listing, though the agent has a description too', async () => {
  const said = (name: string) => ({
    description: `What people read about ${name}.`,
    toolDescription: `What models read about ${name}.\n\nAnd more of ${name}.`,
  })
  const never = { script: () => says('x') }
  const prompted = { ...never, prompt: { toolDescription: 'What is read of a prompt.' } }
  const made = (name: string) => pair(name, { a: prompted, b: never }, said(name))
  const desk = solo('desk', never, { exposeAsTool: true, ...said('desk') })
  const agent = solo('front', {
    script: [says('Hello.')],
    tools: [
      desk,
      made('plain'),
      { name: made('configured'), blocking: false },
      { name: made('kept'), resumable: {} },
      { name: made('other'), resumable: {} },
    ],
    subagents: [made('own'), { agent: made('renamed'), as: 'alias' }],
  })
  const it = await simulate({ agents: [agent] })
  await it.ask('hi')
  const { tools } = requestsOf(agent)[0]!
  const read = Object.fromEntries(tools.map(({ name, description }) => [name, description]))
  const { subagent_create: creates, subagent_message: _, ...direct } = read
  const wordsOf = (name: string) => said(name).toolDescription
  expect(direct).toEqual({
    desk: wordsOf('desk'),
    plain: wordsOf('plain'),
    configured: wordsOf('configured'),
    own: wordsOf('own'),
    alias: wordsOf('renamed'),
  })
  for (const name of ['kept', 'other']) expect(creates).toContain(`${name}: ${wordsOf(name)}`)
  expect(JSON.stringify(tools)).not.toMatch(/What people read|What is read of a prompt/)
})

test('SA-11 variables: the tool, then the thread, the installation, the agent, the prompt', async () => {
  const levels = ['tool', 'thread', 'instance', 'agent', 'prompt'] as const
  // FROM_n has a value on level n and on all weaker ones.
  const valuesOf = (level: (typeof levels)[number]) =>
    Object.fromEntries(
      levels
        .filter((from) => levels.indexOf(from) <= levels.indexOf(level))
        .map((from) => [`FROM_${from}`, level]),
    )
  const seen: Record<string, string> = {}
  const look = tool('look', (state) => {
    for (const level of levels) seen[level] = state.env(`FROM_${level}`)
    expect(() => state.env('FROM_nowhere')).toThrow('FROM_nowhere')
  })
  const agent = solo(
    'reads',
    {
      script: [calls('look'), says('Seen.')],
      system: [
        { type: 'text', content: 'Mode: ' },
        { type: 'env', property: 'FROM_agent' },
      ],
      tools: [{ name: look, env: valuesOf('tool') }],
      prompt: { env: valuesOf('prompt') },
    },
    { env: valuesOf('agent') },
  )
  const it = await simulate({ agents: [agent], env: valuesOf('instance') })
  const id = await it.create({ env: valuesOf('thread') })
  await it.run(id, 'look')
  expect(seen).toEqual(Object.fromEntries(levels.map((level) => [level, level])))
  expect(requestsOf(agent)[0]!.system).toBe('Mode: agent')
})

test('SA-11 an empty value is a value, and a value that is removed uncovers the default', async () => {
  const seen: unknown[] = []
  const look = tool('look', (state) => {
    const read = (name: string) => [state.hasEnv(name) && state.env(name), state.envType(name)]
    seen.push(['THREAD', 'INSTANCE', 'EMPTY', 'NONE'].map(read))
    state.setEnv('THREAD', null)
    state.setEnv('EMPTY', 'set')
    seen.push(['THREAD', 'EMPTY'].map(read))
    state.setEnv('EMPTY', null)
    seen.push(read('EMPTY'))
  })
  const agent = solo(
    'reads',
    {
      script: [calls('look'), says('Seen.')],
      system: ['THREAD', 'INSTANCE', 'EMPTY'].flatMap((property) => [
        { type: 'text' as const, content: '<' },
        { type: 'env' as const, property },
        { type: 'text' as const, content: '>' },
      ]),
      tools: [look],
      prompt: { env: { EMPTY: 'of the prompt' } },
    },
    { env: { THREAD: 'default', INSTANCE: 'default', EMPTY: '' } },
  )
  const it = await simulate({
    agents: [agent],
    env: { INSTANCE: '', THREAD: 'of the installation' },
  })
  const id = await it.create({ env: { THREAD: '' } })
  await it.run(id, 'look')
  expect(requestsOf(agent)[0]!.system).toBe('<><><>')
  const empty = ['', 'text']
  expect(seen).toEqual([
    [empty, empty, empty, [false, undefined]],
    [
      ['of the installation', 'text'],
      ['set', 'text'],
    ],
    empty,
  ])
  expect(requestsOf(agent)[1]!.system).toBe('<of the installation><><>')
})

test('SA-11 each side falls back to its own prompt, and what a caller changes later changes nothing', async () => {
  const seen: string[] = []
  const look = tool('look', (state) => void seen.push(`${state.env('CITY')} ${state.env('SIDE')}`))
  const env = { CITY: 'Rome' }
  const side = (name: string) => ({ tools: [look], prompt: { env: { SIDE: name, CITY: 'Bonn' } } })
  const agent = pair(
    'both',
    {
      a: { ...side('A'), script: [calls('look'), says('x')] },
      b: { ...side('B'), script: [calls('look')], stopTool: 'look', sessionStop: 'look' },
    },
    { env },
  )
  env.CITY = 'Oslo'
  const it = await simulate({ agents: [agent] })
  await it.ask('go')
  expect(seen).toEqual(['Rome A', 'Rome B'])
})

test('SA-12 hooks of the agent are used only where a prompt lists none; an empty list means none', async () => {
  const mark = (id: string) =>
    defineHook({ id, hook: 'after_system_message', execute: (_, text) => `${text} ${id}` })
  const systemOf = async (prompt: object): Promise<string | undefined> => {
    const agent = solo(
      'marked',
      { script: [says('x')], system: 'You.', prompt },
      { hooks: [mark('of_agent')] },
    )
    const it = await simulate({ agents: [agent] })
    await it.ask('hi')
    return requestsOf(agent)[0]!.system
  }
  expect(await systemOf({})).toBe('You. of_agent')
  expect(await systemOf({ hooks: [mark('of_prompt')] })).toBe('You. of_prompt')
  expect(await systemOf({ hooks: [] })).toBe('You.')
})

test('SA-12 each side falls back to the hooks of the agent for itself', async () => {
  const mark = (id: string) =>
    defineHook({ id, hook: 'after_system_message', execute: (_, text) => `${text} ${id}` })
  const done = tool('done')
  const hooked = async (a: object, b: object) => {
    const agent = pair(
      'both',
      {
        a: { script: [says('x')], system: 'A.', prompt: a },
        b: { script: [calls('done')], system: 'B.', tools: [done], sessionStop: 'done', prompt: b },
      },
      { hooks: [mark('of_agent'), mark('twice')] },
    )
    const it = await simulate({ agents: [agent] })
    await it.ask('hi')
    return [requestsOf(agent, 'a')[0]!.system, requestsOf(agent, 'b')[0]!.system]
  }
  const own = { hooks: [mark('own')] }
  expect(await hooked({}, {})).toEqual(['A. of_agent twice', 'B. of_agent twice'])
  expect(await hooked(own, {})).toEqual(['A. own', 'B. of_agent twice'])
  expect(await hooked({}, own)).toEqual(['A. of_agent twice', 'B. own'])
})

test('SA-12 a side that is an agent() of its own has the hooks of the agent', async () => {
  const mark = (id: string) =>
    defineHook({ id, hook: 'after_system_message', execute: (_, text) => `${text} ${id}` })
  const model = scripted([says('x')])
  const own = defineAgent({
    name: 'own',
    hooks: [mark('one'), mark('two')],
    sideA: { agent: uapAgent({ model, system: 'You.' }) },
  })
  const it = await simulate({ agents: [own] })
  await it.ask('hi')
  expect(model.requests[0]!.system).toBe('You. one two')
})

test('SA-14 side A is the model, side B the person: the thread parks for the next message', async () => {
  const agent = solo('one', {
    script: [calls('look'), says('Hello.'), says('Bye.')],
    tools: [tool('look')],
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome, reason, text } = await it.ask('hi')
  expect({ outcome, reason, text }).toEqual({
    outcome: 'completed',
    reason: 'response',
    text: 'Hello.',
  })
  await it.idle()
  expect(await it.threads.get(id)).toMatchObject({ lifecycle: 'idle', wakeAt: null })
  expect(requestsOf(agent)).toHaveLength(2)
  await it.run(id, 'bye')
  expect(linesOf(requestsOf(agent)[2])).toEqual([
    'user: hi',
    'assistant:  [look({})]',
    'tool_result: look = "ok"',
    'assistant: Hello.',
    'user: bye',
  ])
})
