// What readers of a program's agents are shown: the catalog, the list over HTTP, and what `asSubagent` keeps.
import { expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  asSubagent,
  catalog,
  createRegistry,
  defineAgent,
  definePrompt,
  type AgentDefinition,
} from '@skein/runtime'
import { createHttp } from '@skein/server'
import { pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const look = tool('look')
const done = tool('done')

const desk = solo(
  'desk',
  { label: 'Front desk', script: () => says('x'), tools: [look, done] },
  {
    title: 'Help desk',
    description: 'Answers people.',
    toolDescription: 'Takes a question.',
    env: { CITY: 'Rome' },
    packageName: '@acme/desk',
    version: '1.2.3',
    author: 'Ann',
    license: 'MIT',
  },
)
const pairOf = (name: string, agent: Partial<AgentDefinition> = {}) =>
  pair(
    name,
    {
      a: { label: `Worker of ${name}`, script: () => says('x'), tools: [look], maxSteps: 4 },
      b: { script: () => says('x'), tools: [look, done], stopOnResponse: false, stopTool: 'done' },
    },
    agent,
  )
const team = pairOf('team', { title: 'Team', description: 'Two people.', icon: '/team.svg' })
const open = pairOf('open', { maxSessionTurns: undefined, toolDescription: 'Open ended.' })
const shown = { tools: ['look', 'done'], variables: [] }

test('SA-06 SA-07 SA-08 the catalog shows each agent as it is defined', () => {
  expect(catalog(createRegistry({ agents: [team, open, desk] }))).toEqual([
    {
      name: 'desk',
      type: 'ai_human',
      title: 'Help desk',
      description: 'Answers people.',
      sides: { a: 'Front desk', b: null },
      ...shown,
      exposeAsTool: false,
      maxSessionTurns: null,
    },
    {
      name: 'open',
      type: 'dual_ai',
      sides: { a: 'Worker of open', b: 'open_b' },
      ...shown,
      exposeAsTool: true,
      maxSessionTurns: 250, // without one of its own, the default holds
    },
    {
      name: 'team',
      type: 'dual_ai',
      title: 'Team',
      description: 'Two people.',
      icon: '/team.svg',
      sides: { a: 'Worker of team', b: 'team_b' },
      ...shown,
      exposeAsTool: true,
      maxSessionTurns: 20,
    },
  ])
})

test('SA-09 the catalog says which agents are for use as tools: only those that say so', () => {
  const never = { script: () => says('x') }
  const toolDescription = 'x'
  for (const exposeAsTool of [undefined, false, true]) {
    const given = { exposeAsTool, toolDescription }
    const agents = [
      solo('one', never, given),
      pair('two', { a: never, b: never }, given),
      pair('two_capped', { a: never, b: never }, { ...given, maxSessionTurns: 3 }),
    ]
    expect(catalog(createRegistry({ agents })).map((entry) => entry.exposeAsTool)).toEqual(
      agents.map(() => exposeAsTool === true),
    )
  }
})

test('SA-13 fields for packing change no title, and no hash of what a session runs with', () => {
  const { packageName: _1, version: _2, author: _3, license: _4, title: _5, ...bare } = desk
  const packed = { ...bare, packageName: 'p', version: '9', author: 'a', license: 'l' }
  const [one, two] = [bare, packed].map((agent) => createRegistry({ agents: [agent] }))
  expect(catalog(two!)).toEqual(catalog(one!))
  expect(two!.agent('desk').hash).toBe(one!.agent('desk').hash)
})

test('SA-06 SA-07 SA-08 so does the list of agents over HTTP', async () => {
  const it = await simulate({ agents: [team, open, desk] })
  const http = createHttp(it.runtime, { auth: 'none' })
  const read = async (path: string): Promise<unknown> =>
    (await http.fetch(new Request(`http://localhost${path}`))).json()
  const side = (name: string, letter: 'a' | 'b', label: string, tools: readonly string[]) => ({
    side: letter,
    label,
    prompt: `${name}_${letter}`,
    models: [`${name}_${letter}`],
    tools: tools.map((one) => ({ name: one, kind: 'tool' })),
  })
  const both = (name: string) => [
    side(name, 'a', `Worker of ${name}`, ['look']),
    side(name, 'b', `${name}_b`, ['look', 'done']),
  ]
  const title = { title: 'Team', description: 'Two people.', icon: '/team.svg' }
  expect(await read('/agents')).toEqual({
    agents: [
      { name: 'team', type: 'dual_ai', ...title, sides: both('team'), variables: [] },
      { name: 'open', type: 'dual_ai', sides: both('open'), variables: [] },
      {
        name: 'desk',
        type: 'ai_human',
        title: 'Help desk',
        description: 'Answers people.',
        sides: [side('desk', 'a', 'Front desk', ['look', 'done'])],
        variables: [],
      },
    ],
  })
  expect(await read('/agents/team')).toMatchObject({
    name: 'team',
    ...title,
    sides: [
      { label: 'Worker of team', maxSteps: 4, stopsOnResponse: true },
      { label: 'team_b', maxSteps: null, stopsOnResponse: false },
    ],
    limits: { maxSessionTurns: 20, budget: null },
  })
  expect(await read('/agents/open')).toMatchObject({ limits: { maxSessionTurns: 250 } })
  expect(await read('/agents/desk')).toMatchObject({ limits: { maxSessionTurns: null } })
})

test('SA-01 SA-09 asSubagent keeps all that the agent says of itself', () => {
  const prompt = definePrompt({
    name: 'reading',
    prompt: 'Read.',
    model: scripted([]),
    tools: [look, done],
  })
  const reader = defineAgent({
    ...desk,
    name: 'reader',
    maxSessionTurns: 7,
    exposeAsTool: false,
    hooks: [],
    sideA: {
      prompt,
      label: 'Reader',
      stopOnResponse: false,
      stopTool: 'look',
      stopToolResponseProperty: 'text',
      maxSteps: 3,
      sessionFail: { name: 'done', messageProperty: 'why' },
    },
  })
  const { sideB, ...made } = asSubagent(reader)
  expect(made).toEqual({
    ...reader,
    type: 'dual_ai',
    exposeAsTool: true,
    sideA: { ...reader.sideA, sessionStopOnResponse: true },
  })
  expect(sideB).toBeDefined()

  const { toolDescription: _1, maxSessionTurns: _2, ...less } = reader
  expect(asSubagent(less)).toMatchObject({
    name: 'reader',
    maxSessionTurns: 250,
    toolDescription: 'Answers people.',
  })
  const renamed = asSubagent(reader, { name: 'other', toolDescription: 'Reads aloud.' })
  expect(renamed).toMatchObject({ name: 'other', toolDescription: 'Reads aloud.' })
  // A pair has a side B of its own, which must not be replaced, whether it is exposed or not.
  for (const exposeAsTool of [true, false])
    expect(() => asSubagent({ ...team, exposeAsTool })).toThrow('is a subagent already')
})

test('SA-01 SA-34 an agent made a subagent ends with its answer, as a child and by itself, in its last turn too', async () => {
  for (const maxSessionTurns of [1, 2, 250]) {
    const helper = asSubagent(
      solo('helper', { script: () => says('42 letters.') }, { description: 'Counts.' }),
    )
    const capped = defineAgent({ ...helper, maxSessionTurns })
    const boss = solo('boss', {
      script: [calls('helper', { message: 'count' }), says('Thanks.')],
      tools: [capped],
    })
    const it = await simulate({ agents: [boss, capped] })
    const alone = await it.create({ agent: 'helper' })
    const answered = { outcome: 'completed', reason: 'response', text: '42 letters.' }
    expect(await it.run(alone, 'count')).toMatchObject(answered)
    const { id } = await it.ask('please')
    const [made] = await it.events(id, 'subagent_created')
    for (const threadId of [alone, made!.reference]) {
      expect(await it.events(threadId, 'session_end')).toMatchObject([
        { outcome: 'completed', reason: 'response', message: '42 letters.' },
      ])
      expect((await it.events(threadId, 'turn_start')).map(({ agentId }) => agentId)).toEqual([
        'helper/a',
      ])
    }
    expect(requestsOf(boss)[0]!.tools).toMatchObject([{ name: 'helper', description: 'Counts.' }])
  }
})
