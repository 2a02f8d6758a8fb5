// Subagents that a side lists itself, under names of its own, and the variables that are reserved for them.
import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import type { SideConfig } from '@skein/runtime'
import {
  child,
  finish,
  finished,
  linesOf,
  pair,
  requestsOf,
  solo,
  tool,
  type SideSetup,
} from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const helperOf = (side: Partial<SideSetup> = {}) =>
  child('helper', { script: () => finished('done'), ...side })

test('SA-57 SA-59 SA-60 one agent under several names: each has its own tool, settings and cap', async () => {
  const helper = helperOf()
  const create = (agent: string, name: string) =>
    calls('subagent_create', { agent, name, message: 'go' })
  const reference = (place: number) => references[place]!
  const references: string[] = []
  const top = solo('boss', {
    script: [
      calls('scout', { message: 'go' }),
      create('clerk', 'Ada'),
      create('clerk', 'Bob'),
      create('guard', 'Cy'),
      create('guard', 'Di'),
      says('Made.'),
      () => calls('subagent_message', { reference: reference(2), message: 'more' }),
      () => calls('subagent_message', { reference: reference(1), message: 'more' }),
      says('Good.'),
    ],
    subagents: [
      { agent: helper, as: 'scout', description: 'Looks around.' },
      { agent: helper, as: 'clerk', resumable: { maxInstances: 1 } },
      {
        agent: helper,
        as: 'guard',
        blocking: false,
        resumable: { maxInstances: 2, parentCommunication: 'explicit' },
      },
    ],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await it.idle()
  const made = await it.events(id, 'subagent_created')
  references.push(...made.map((one) => one.reference))
  expect(
    made.map(({ relation, name, threadName, isBlocking, isResumable, parentCommunication }) => ({
      relation,
      name,
      threadName,
      isBlocking,
      isResumable,
      parentCommunication,
    })),
  ).toEqual([
    {
      relation: 'scout',
      name: 'helper',
      threadName: undefined,
      isBlocking: true,
      isResumable: false,
      parentCommunication: 'implicit',
    },
    ...[
      ['clerk', 'Ada', true, 'implicit'],
      ['guard', 'Cy', false, 'explicit'],
      ['guard', 'Di', false, 'explicit'],
    ].map(([relation, threadName, isBlocking, parentCommunication]) => ({
      relation,
      name: 'helper',
      threadName,
      isBlocking,
      isResumable: true,
      parentCommunication,
    })),
  ])
  expect(await it.threads.children(id, { includesEnded: true })).toMatchObject(
    made.map((one) => ({
      reference: one.reference,
      name: 'helper',
      description: one.relation === 'scout' ? 'Looks around.' : 'Two who do helper.',
      resumable: one.isResumable,
      blocking: one.isBlocking,
      parentCommunication: one.parentCommunication,
    })),
  )
  const [scout, creates] = requestsOf(top)[0]!.tools
  expect(scout).toMatchObject({ name: 'scout', description: 'Looks around.' })
  expect(creates).toMatchObject({
    name: 'subagent_create',
    parameters: { properties: { agent: { enum: ['clerk', 'guard'] } } },
  })
  const refused = linesOf(requestsOf(top)[3]).findLast((line) => line.startsWith('tool_result'))
  expect(refused).toMatch(/^tool_result: subagent_create ! There may be 1 instances of "clerk"/)
  expect(refused).toContain(references[1])
  await it.run(id, 'more')
  const results = linesOf(requestsOf(top).at(-1)).filter((line) =>
    line.startsWith('tool_result: subagent_message'),
  )
  // The settings of the name under which the child was made decide whether the call waits.
  expect(results).toEqual([
    `tool_result: subagent_message = "The message was sent to subagent (reference: ${references[2]})."`,
    `tool_result: subagent_message = ${JSON.stringify(
      `Subagent (reference: ${references[1]}) has returned the following result:\n\ndone`,
    )}`,
  ])
  await it.idle()
})

const canary = 'canary-7731-blue'

test.each(
  (['thread', 'installation', 'agent', 'prompt'] as const).flatMap((level) =>
    (['a', 'b'] as const).map((side) => [level, side] as const),
  ),
)(
  'SA-55 SA-56 a scoped value of the %s reaches the child of side %s, and no model',
  async (level, side) => {
    const seen: string[] = []
    const read = tool('read', (state) => {
      for (const name of Object.keys(env)) seen.push(state.hasEnv(name) ? state.env(name) : '-')
    })
    const env = { ONE: `${canary}-one`, TWO: `${canary}-two`, THREE: `${canary}-three` }
    const shows = (...names: string[]): SideSetup['system'] => [
      { type: 'text', content: 'Keys: ' },
      ...names.map((property) => ({ type: 'env', property }) as const),
    ]
    const system = shows('ONE', 'TWO', 'THREE')
    const helper = helperOf({
      script: ({ messages }) =>
        messages.at(-1)!.type === 'user' ? calls('read') : calls('finish', { summary: 'done' }),
      tools: [read],
      system: shows('ONE', 'TWO'),
    })
    // One is named in `immediate`, one next to it; the second child is made by a call.
    const subagents: SideConfig['subagents'] = [
      { agent: helper, as: 'early', immediate: { scopedEnv: ['ONE'] }, scopedEnv: ['TWO'] },
      { agent: helper, as: 'late', scopedEnv: ['ONE', 'TWO', 'THREE'] },
    ]
    const own = { subagents, prompt: level === 'prompt' ? { env } : {} }
    const top = pair(
      'boss',
      {
        a: {
          script: side === 'a' ? [calls('late', { message: 'go' }), says('Done.')] : [says('Go.')],
          system,
          ...(side === 'a' && own),
        },
        b: {
          script:
            side === 'b' ? [calls('late', { message: 'go' }), calls('finish')] : [calls('finish')],
          tools: [finish],
          sessionStop: finish,
          system,
          ...(side === 'b' && own),
        },
      },
      level === 'agent' ? { env } : {},
    )
    const it = await simulate({ agents: [top], env: level === 'installation' ? env : {} })
    const id = await it.create({ env: level === 'thread' ? env : {} })
    expect(await it.run(id, 'hi')).toMatchObject({ outcome: 'completed' })
    await it.idle()
    // Variables of the installation are there for every agent.
    const other = level === 'installation' ? env.THREE : '-'
    expect(seen).toEqual([env.ONE, env.TWO, other, env.ONE, env.TWO, env.THREE])
    const requests = [...requestsOf(top, 'a'), ...requestsOf(top, 'b'), ...requestsOf(helper, 'a')]
    const sent = requests.map((request) => JSON.stringify([request.system, request.messages]))
    expect(sent.length).toBeGreaterThan(5)
    expect(sent.filter((text) => text.includes(canary))).toEqual([])
  },
)
