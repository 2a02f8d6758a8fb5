import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { linesOf, pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const finish = tool('finish')

const helper = (name = 'helper') =>
  pair(name, {
    a: {
      script: () => calls('finish', { summary: 'done' }),
      tools: [finish],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    b: { script: [] },
  })

const values: readonly [value: string | undefined, isEnabled: boolean][] = [
  ['true', true],
  ['TRUE', true],
  ['True', true],
  ['tRuE', true],
  ['1', true],
  ['yes', true],
  ['yEs', true],
  ['YES', true],
  [' yes ', false],
  [' true', false],
  ['on', false],
  [' on ', false],
  ['', false],
  [' ', false],
  ['0', false],
  ['no', false],
  ['false', false],
  ['11', false],
  ['truest', false],
  ['enabled', false],
  [undefined, false],
]

test.each(values)(
  'SA-49 SA-50 %j: a branch is there only for true, 1 and yes',
  async (value, isEnabled) => {
    const agent = helper()
    const kept = helper('kept')
    const top = solo('boss', {
      script: [
        [
          calls('helper', { message: 'go' }),
          calls('subagent_create', { agent: 'kept', name: 'Ada', message: 'go' }),
        ],
        says('So.'),
      ],
      tools: [
        { name: agent, optional: 'WITH_HELPER' },
        { name: kept, optional: 'WITH_HELPER', resumable: {} },
      ],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: value === undefined ? {} : { WITH_HELPER: value } })
    expect((await it.run(id, 'hi')).text).toBe('So.')
    const offered = requestsOf(top)[0]!.tools.map(({ name }) => name)
    expect(offered).toEqual(isEnabled ? ['helper', 'subagent_create', 'subagent_message'] : [])
    expect(await it.events(id, 'subagent_created')).toHaveLength(isEnabled ? 2 : 0)
    if (!isEnabled)
      expect(linesOf(requestsOf(top)[1]).at(-1)).toMatch(
        /^tool_result: helper ! .+, subagent_create ! .+/,
      )
  },
)

test('SA-50 a branch that is switched off refuses messages too, and leaves its child alone', async () => {
  const kept = helper()
  const other = helper('other')
  let reference = ''
  const off = tool('off', (state) => {
    reference = state.children[0]!.reference
    state.setEnv('WITH_HELPER', 'no')
  })
  const top = solo('boss', {
    script: [
      calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' }),
      calls('off'),
      () => [
        calls('subagent_message', { reference, message: 'more' }),
        calls('subagent_create', { agent: 'helper', name: 'Bob', message: 'go' }),
      ],
      says('Refused.'),
    ],
    tools: [
      off,
      { name: kept, optional: 'WITH_HELPER', resumable: {} },
      { name: other, resumable: {} },
    ],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create({ env: { WITH_HELPER: 'yes' } })
  expect((await it.run(id, 'hi')).text).toBe('Refused.')
  expect(linesOf(requestsOf(top)[3]).at(-1)).toMatch(
    /^tool_result: subagent_message ! .+, subagent_create ! .*helper/,
  )
  expect(requestsOf(kept)).toHaveLength(1)
  expect(await it.threads.children(id)).toMatchObject([{ reference, status: 'idle' }])
  const create = requestsOf(top)[2]!.tools.find(({ name }) => name === 'subagent_create')
  expect(JSON.stringify(create!.parameters)).not.toContain('helper')
})

test.each(['helper', 'subagent_create', 'subagent_message'])(
  'SA-50 %s is refused if an earlier call of the same message has switched the branch off',
  async (name) => {
    const agent = helper()
    const off = tool('off', (state) => state.setEnv('WITH_HELPER', 'no'))
    const args = { agent: 'helper', name: 'Ada', message: 'go' }
    const isDirect = name === 'helper'
    const top = solo('boss', {
      script: [
        calls(isDirect ? name : 'subagent_create', args),
        (request) => {
          const [, reference] = /reference: ([^)]+)/.exec(linesOf(request).join()) ?? []
          return [calls('off'), calls(name, { ...args, reference })]
        },
        says('Refused.'),
      ],
      tools: [off, { name: agent, optional: 'WITH_HELPER', ...(!isDirect && { resumable: {} }) }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { WITH_HELPER: 'yes' } })
    expect((await it.run(id, 'hi')).text).toBe('Refused.')
    expect(linesOf(requestsOf(top)[2]).at(-1)).toBe(
      `tool_result: off = null, ${name} ! "helper" is switched off by WITH_HELPER.`,
    )
    expect(requestsOf(agent)).toHaveLength(1)
  },
)

test('SA-50 an immediate branch that is switched off creates nothing', async () => {
  const agent = helper()
  const top = solo('boss', {
    script: [says('Hello.')],
    tools: [{ name: agent, optional: 'WITH_HELPER', immediate: true }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await it.idle()
  expect(await it.events(id, 'subagent_created')).toEqual([])
  expect(requestsOf(agent)).toEqual([])
})

test.each(['thread', 'installation', 'agent', 'prompt'])(
  'SA-49 the variable may have its value from the %s, as any other; the thread’s comes first',
  async (level) => {
    const env = { WITH_HELPER: 'yes' }
    const off = { WITH_HELPER: 'no' }
    const top = solo(
      'boss',
      {
        script: () => says('So.'),
        tools: [
          { name: helper(), optional: 'WITH_HELPER' },
          { name: helper('early'), optional: 'WITH_HELPER', immediate: true, blocking: false },
        ],
        prompt: level === 'prompt' ? { env } : {},
      },
      level === 'agent' ? { env } : {},
    )
    const it = await simulate({ agents: [top], env: level === 'installation' ? env : {} })
    const id = await it.create({ env: level === 'thread' ? env : {} })
    await it.run(id, 'hi')
    expect(requestsOf(top)[0]!.tools.map(({ name }) => name)).toEqual(['helper', 'early'])
    expect(await it.events(id, 'subagent_created')).toMatchObject([{ name: 'early' }])
    await it.idle()
    const other = await it.create({ env: off })
    const before = requestsOf(top).length
    await it.run(other, 'hi')
    expect(requestsOf(top)[before]!.tools).toEqual([])
    expect(await it.events(other, 'subagent_created')).toEqual([])
  },
)
