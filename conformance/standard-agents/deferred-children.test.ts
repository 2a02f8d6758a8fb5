// Children that wait for variables (Standard Agents §7.8): who asked for them, and what their values are.
import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import type { AgentDefinition, SubagentToolConfig, VariableDefinition } from '@skein/runtime'
import {
  child,
  finish,
  finished,
  linesOf,
  pair,
  requestsOf,
  type SideSetup,
  solo,
  tool,
} from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const key: VariableDefinition = { name: 'KEY', required: true, scoped: true }
const canary = 'canary-7731-blue'

/** A child that needs `KEY` and shows it to its model, in its prompt and in a result. */
function needy(variable: VariableDefinition = key) {
  const seen: string[] = []
  const read = tool('read', (state) => {
    seen.push(...['KEY', 'PORT'].flatMap((name) => (state.hasEnv(name) ? state.env(name) : [])))
    return state.env('KEY')
  })
  const helper = child('helper', {
    script: ({ messages }) => (messages.at(-1)!.type === 'user' ? calls('read') : finished('done')),
    tools: [read],
    // A variable that is declared as a secret may not be in a prompt.
    ...(variable.type !== 'secret' && { system: [{ type: 'env', property: 'KEY' }] }),
    prompt: { variables: [variable] },
  })
  return { seen, helper }
}

async function provide(it: Simulation, id: string, values: Record<string, string>) {
  const [request] = await it.events(id, 'variables_requested')
  const { reference } = await it.threads.variables.provide(id, request!.requestId, values)
  await it.idle()
  return reference
}

const ways = ['POST', 'the thread'] as const
const types: readonly [SubagentToolConfig['immediate'], 'text' | 'secret' | undefined, boolean][] =
  [
    [{}, undefined, false],
    [{}, 'text', false],
    [{}, 'secret', true],
    [{ scopedEnv: ['KEY'] }, undefined, true],
    [{ scopedEnv: ['KEY'] }, 'text', true],
    [{ scopedEnv: ['KEY'] }, 'secret', true],
    [{ scopedEnv: ['KEY'], nameEnv: 'KEY' }, 'text', false],
  ]

test.each(ways.flatMap((way) => types.map((one) => [way, ...one] as const)))(
  'SA-56 SA-64 a value from %s, with immediate %j and declared as %s, is hidden: %j',
  async (way, immediate, type, isHidden) => {
    const { seen, helper } = needy({ ...key, type })
    const top = solo('boss', {
      script: () => says('I see.'),
      tools: [{ name: helper, immediate, blocking: false }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: way === 'POST' ? {} : { KEY: canary } })
    await it.idle()
    if (way === 'POST') {
      expect((await it.runtime.inbox.list()).map(({ variables }) => variables)).toEqual([
        [{ name: 'KEY', type: isHidden ? 'secret' : 'text' }],
      ])
      await provide(it, id, { KEY: canary })
    }
    const [made] = await it.events(id, 'subagent_created')
    expect(seen).toEqual([canary])
    expect(await it.threads.env.list(made!.reference)).toEqual([
      { name: 'KEY', type: isHidden ? 'secret' : 'text', value: isHidden ? undefined : canary },
    ])
    const sent = requestsOf(helper).map(({ system, messages }) =>
      JSON.stringify([system, messages]),
    )
    const stored = JSON.stringify([
      await it.events(id, 'variables_provided'),
      await it.threads.events(made!.reference),
    ])
    expect(sent).toHaveLength(2)
    for (const text of [sent[1], stored]) expect(text!.includes(canary)).toBe(!isHidden)
  },
)

test.each(['a', 'b'] as const)(
  'SA-64 of two sides that list the same child, the one that asked decides: side %s',
  async (side) => {
    const seen: string[] = []
    const look = tool('look', (state) => void seen.push(state.env('PORT')))
    const helper = child('helper', {
      script: [calls('look'), finished('done')],
      tools: [look],
      prompt: { variables: [key] },
    })
    const create = calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
    const setup = (own: 'a' | 'b', rest: SideSetup): SideSetup => ({
      ...rest,
      prompt: { env: { PORT: own === 'a' ? 'Ayr' : 'Oban', WITH: own === side ? 'yes' : 'no' } },
      subagents: [
        {
          agent: helper,
          blocking: false,
          scopedEnv: ['PORT'],
          optional: 'WITH',
          resumable: { parentCommunication: own === 'a' ? 'implicit' : 'explicit' },
        },
      ],
    })
    const done = calls('finish')
    const top = pair('boss', {
      a: setup('a', { script: side === 'a' ? [create, says('Go.')] : [says('Go.')] }),
      b: setup('b', {
        script: side === 'b' ? [create, done] : [done],
        tools: [finish],
        sessionStop: finish,
      }),
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const reference = await provide(it, id, { KEY: canary })
    expect(seen).toEqual([side === 'a' ? 'Ayr' : 'Oban'])
    expect(await it.events(id, 'subagent_created')).toMatchObject([
      { reference, parentCommunication: side === 'a' ? 'implicit' : 'explicit' },
    ])
  },
)

test.each([{}, { resumable: {} }, { immediate: true }, { immediate: { scopedEnv: ['PORT'] } }])(
  'SA-56 SA-64 a child that was asked for before a handoff is created as it would have been: %j',
  async (config: Partial<SubagentToolConfig>) => {
    const { seen, helper } = needy()
    const second = solo(
      'second',
      { script: () => says('Mine now.') },
      { exposeAsTool: true, toolDescription: 'Takes over.', env: { PORT: 'Oban' } },
    )
    const asks = config.resumable
      ? calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
      : calls('helper', { message: 'go' })
    const first = solo(
      'first',
      {
        script: config.immediate ? [calls('second')] : [asks, calls('second')],
        tools: [second, { name: helper, blocking: false, ...config }],
      },
      { env: { PORT: 'Ayr' } },
    )
    const it = await simulate({ agents: [first] })
    const { id, text } = await it.ask('hi')
    expect(text).toBe('Mine now.')
    expect((await it.runtime.inbox.list()).map(({ variables }) => variables)).toEqual([
      [{ name: 'KEY', type: 'text' }],
    ])
    const reference = await provide(it, id, { KEY: canary })
    const isScoped = typeof config.immediate === 'object'
    expect(seen).toEqual(isScoped ? [canary, 'Ayr'] : [canary])
    expect(await it.threads.env.list(reference)).toEqual([
      { name: 'KEY', type: 'text', value: canary },
      ...(isScoped ? [{ name: 'PORT', type: 'secret' }] : []),
    ])
    expect(linesOf(requestsOf(second).at(-1)).join('\n')).toContain(
      `Subagent (reference: ${reference}) has returned the following result:\n\ndone`,
    )
  },
)

test('SA-54 SA-64 a hint that a person gave later is a hint as well', async () => {
  const { helper } = needy()
  const top = solo('boss', {
    script: [says('Ada, look.'), says('I see.')],
    tools: [{ name: helper, blocking: false, immediate: { nameEnv: 'KEY' } }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  await it.idle()
  const reference = await provide(it, id, { KEY: 'Ada' })
  expect(linesOf(requestsOf(top)[0])).toEqual([expect.stringContaining('Name: Ada') as string])
  expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Ada, look.'])
  expect(await it.threads.get(reference)).toMatchObject({ title: 'Ada' })
})

test.each([1, 2, 3, 4])(
  'SA-61 a variable that is required on level %i below the parent is asked for when the first child is created',
  async (level) => {
    let below: AgentDefinition | undefined
    for (const depth of [4, 3, 2, 1])
      below = child(`level_${depth}`, {
        tools: below ? [below] : [],
        prompt: { variables: depth === level ? [key] : [] },
      })
    const top = solo('boss', {
      script: [calls('level_1', { message: 'go' }), says('Later.')],
      tools: [below!],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(await it.events(id, 'variables_requested')).toMatchObject([
      { relation: 'level_1', required: ['KEY'], missing: ['KEY'] },
    ])
    expect(await it.events(id, 'subagent_created')).toEqual([])
  },
)
