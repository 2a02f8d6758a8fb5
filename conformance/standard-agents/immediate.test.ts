import { describe, expect, test } from 'vitest'
import { calls, fails, says } from '@skein/ai/testing'
import { defineTool, type AgentDefinition } from '@skein/runtime'
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
import { latch } from './support/latch.ts'
import { simulate, type Simulation } from './support/simulate.ts'

async function agentsOf(it: Simulation, rootId: string): Promise<string[]> {
  return (await it.threads.list({ rootId, sort: 'oldest' })).map(({ agent }) => agent)
}

test('SA-47 SA-51 an immediate child is created with the thread, before anybody speaks', async () => {
  const helper = child('helper')
  const top = solo('boss', {
    script: [says('Hello.'), says('I see.')],
    tools: [{ name: helper, blocking: false, immediate: true }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  await it.idle()
  expect(await agentsOf(it, id)).toEqual(['boss', 'helper'])
  const types = await it.eventTypes(id)
  expect(types.indexOf('subagent_created')).toBeGreaterThan(0)
  expect(types.indexOf('subagent_created')).toBeLessThan(types.indexOf('step_start'))
  expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Begin.'])
})

test('SA-47 a blocking immediate child is waited for before the first step', async () => {
  const started = latch()
  const go = latch()
  const helper = child('helper', {
    script: async () => {
      started.open()
      await go.reached
      return calls('finish', { summary: 'ready' })
    },
  })
  const top = solo('boss', {
    script: [says('Now.')],
    tools: [{ name: helper, immediate: true }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create({ message: 'hi' })
  await started.reached
  expect(requestsOf(top)).toHaveLength(0)
  go.open()
  await it.idle()
  const [made] = await it.events(id, 'subagent_created')
  expect(linesOf(requestsOf(top)[0])).toEqual([
    'user: hi',
    `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nready`,
  ])
})

test('SA-47 a caller that waits for the thread learns that its immediate child needs a person', async () => {
  const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })
  const helper = child('helper', {
    script: [calls('ask'), calls('finish', { summary: 'asked' })],
    tools: [ask],
  })
  const top = solo('boss', {
    script: [says('Now.')],
    tools: [{ name: helper, immediate: true }],
  })
  const it = await simulate({ agents: [top] })
  const { id, outcome, waiting } = await it.ask('hi')
  expect(outcome).toBe('waiting')
  expect(waiting).toMatchObject([{ toolName: 'ask', kind: 'input', path: ['boss', 'helper'] }])
  const { threadId, interruptId } = waiting[0]!
  await it.runtime.inbox.answer({ threadId, interruptId }, { type: 'result', value: 'yes' })
  await it.idle()
  expect((await it.threads.settled(id)).text).toBe('Now.')
})

test('SA-52 immediate children of the new prompt start at a handoff, before its first step', async () => {
  const helper = child('helper')
  const second = solo(
    'second',
    { script: [says('Mine now.')], tools: [{ name: helper, immediate: true }] },
    { exposeAsTool: true, toolDescription: 'Takes over.' },
  )
  const first = solo('first', { script: [calls('second')], tools: [second] })
  const it = await simulate({ agents: [first] })
  const { id, text } = await it.ask('hi')
  expect(text).toBe('Mine now.')
  const types = await it.eventTypes(id)
  expect(types.indexOf('subagent_created')).toBeGreaterThan(types.indexOf('agent_handoff'))
  expect(types.indexOf('subagent_created')).toBeLessThan(types.lastIndexOf('step_start'))
  expect(linesOf(requestsOf(second)[0]).some((line) => line.includes('helper is done'))).toBe(true)
  // The thread was created once, by another agent.
  expect(await agentsOf(it, id)).toEqual(['second', 'helper'])
})

test('SA-51 SA-52 the immediate children of side B start with the thread, too', async () => {
  const [first, second] = [child('first'), child('second')]
  const done = tool('done')
  const duo = pair('duo', {
    a: { script: [says('A draft.')], tools: [{ name: first, immediate: true }] },
    b: {
      script: [calls('done')],
      tools: [done, { name: second, immediate: true }],
      sessionStop: 'done',
    },
  })
  const it = await simulate({ agents: [duo] })
  const { id, outcome } = await it.ask('go')
  expect(outcome).toBe('completed')
  const made = await it.events(id, 'subagent_created')
  expect(made.map(({ name, isImmediate }) => [name, isImmediate])).toEqual([
    ['first', true],
    ['second', true],
  ])
  const types = await it.eventTypes(id)
  expect(types.lastIndexOf('subagent_created')).toBeLessThan(types.indexOf('step_start'))
})

test('SA-52 they start also if the agent before had immediate children of its own', async () => {
  const [early, late] = [child('early'), child('late')]
  const second = solo(
    'second',
    { script: [says('Mine now.')], tools: [{ name: late, immediate: true }] },
    { exposeAsTool: true, toolDescription: 'Takes over.' },
  )
  const first = solo('first', {
    script: [calls('second')],
    tools: [second, { name: early, immediate: true }],
  })
  const it = await simulate({ agents: [first] })
  const { id, text } = await it.ask('hi')
  expect(text).toBe('Mine now.')
  const made = await it.events(id, 'subagent_created')
  expect(made.map(({ name }) => name)).toEqual(['early', 'late'])
  expect(linesOf(requestsOf(second)[0]).join()).toContain('late is done')
})

test('SA-53 immediate children are recursive: three levels come up by themselves', async () => {
  const leaf = child('leaf')
  const middle = child('middle', { tools: [{ name: leaf, immediate: true }] })
  const top = solo('boss', {
    script: () => says('I see.'),
    tools: [{ name: middle, immediate: true }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  await it.idle()
  expect(await agentsOf(it, id)).toEqual(['boss', 'middle', 'leaf'])
  // Each level waits for the one below it.
  expect(linesOf(requestsOf(middle)[0]).join()).toContain('leaf is done')
  expect(linesOf(requestsOf(top)[0]).join()).toContain('middle is done')
})

test('SA-53 subagents nest eight levels deep and no deeper', async () => {
  // The same agent as its own child: the script goes down until it is refused.
  const refused: string[] = []
  const deep: AgentDefinition = pair('deep', {
    a: {
      script: ({ messages }) => {
        const last = messages.at(-1)!
        if (last.type !== 'tool_result') return calls('deep', { message: 'deeper' })
        const [{ result, isError } = { result: '' }] = last.results
        if (isError) refused.push(String(result))
        return calls('finish', { summary: 'up' })
      },
      tools: [finish, 'deep'],
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    b: { script: [] },
  })
  const top = solo('boss', {
    script: [calls('deep', { message: 'go' }), says('Up.')],
    tools: [deep],
  })
  const it = await simulate({ agents: [top] })
  const { id, text } = await it.ask('down')
  expect(text).toBe('Up.')
  expect(await agentsOf(it, id)).toEqual(['boss', ...Array.from({ length: 8 }, () => 'deep')])
  expect(refused).toEqual([expect.stringContaining('8 levels')])
})

describe('hints and scoped variables', () => {
  const hinted = (helper: AgentDefinition, script: SideSetup['script']): AgentDefinition =>
    solo('boss', {
      script,
      system: 'You are the boss, and this is your own text.',
      tools: [
        {
          name: helper,
          blocking: false,
          immediate: {
            nameEnv: 'HELPER_NAME',
            descriptionEnv: 'HELPER_TASK',
            scopedEnv: ['HELPER_KEY', 'HELPER_NAME'],
          },
        },
      ],
    })
  const env = { HELPER_NAME: 'Ada', HELPER_TASK: 'Count the ships', HELPER_KEY: 'canary-7731-blue' }

  test('SA-54 the bootstrap request has the two hints and nothing else of the thread', async () => {
    const helper = child('helper')
    const top = hinted(helper, [says('Ada, count every ship.'), says('Hello.'), says('I see.')])
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { ...env, OTHER: 'something-else' }, message: 'hi' })
    await it.idle()
    const [bootstrap] = requestsOf(top)
    const sent = JSON.stringify([bootstrap!.system, bootstrap!.messages, bootstrap!.params])
    expect(sent).toContain('Ada')
    expect(sent).toContain('Count the ships')
    for (const unseen of ['canary', 'something-else', 'your own text', 'hi"'])
      expect(sent).not.toContain(unseen)
    expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Ada, count every ship.'])
    expect((await it.events(id, 'subagent_created'))[0]).toMatchObject({ threadName: 'Ada' })
    // What the bootstrap cost is part of what the tree cost.
    expect(await it.events(id, 'usage_recorded')).toHaveLength(1)
    expect((await it.threads.cost(id)).tokens).toBe((await it.store.treeUsage(id)).tokens)
  })

  test('SA-54 a bootstrap that fails leaves the hints themselves as the instruction', async () => {
    const helper = child('helper')
    const top = hinted(helper, [fails('no'), says('Hello.'), says('I see.')])
    const it = await simulate({ agents: [top] })
    await it.create({ env })
    await it.idle()
    expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Count the ships'])
  })

  test.each([
    [{ nameEnv: 'HELPER_NAME' }, ['Ada'], ['Count the ships']],
    [{ descriptionEnv: 'HELPER_TASK' }, ['Count the ships'], ['Ada']],
  ])(
    'SA-54 one hint is enough, and the other variable is not sent: %j',
    async (immediate, has, not) => {
      const helper = child('helper')
      const top = solo('boss', {
        script: [says('Get to work.'), says('I see.')],
        tools: [{ name: helper, blocking: false, immediate }],
      })
      const it = await simulate({ agents: [top] })
      await it.create({ env })
      await it.idle()
      const sent = JSON.stringify(requestsOf(top)[0]!.messages)
      for (const text of has) expect(sent).toContain(text)
      for (const text of not) expect(sent).not.toContain(text)
      expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Get to work.'])
    },
  )

  test.each(['', '  \n'])(
    'SA-54 a bootstrap that answers %j leaves the task as the instruction',
    async (answer) => {
      const helper = child('helper')
      const top = hinted(helper, [says(answer), says('I see.')])
      const it = await simulate({ agents: [top] })
      await it.create({ env })
      await it.idle()
      expect(linesOf(requestsOf(helper)[0])).toEqual(['user: Count the ships'])
    },
  )

  test('SA-55 a scoped variable is there for the tools of its child, not for siblings nor for grandchildren', async () => {
    const seen: string[] = []
    const read = tool('read', (state) => {
      seen.push(`${state.agentId} ${state.hasEnv('HELPER_KEY') ? state.env('HELPER_KEY') : '-'}`)
    })
    const script = [calls('read'), calls('finish', { summary: 'done' })]
    const below = child('below', { script, tools: [read] })
    const helper = child('helper', {
      script: [calls('below', { message: 'go' }), ...script],
      tools: [read, below],
    })
    const sibling = child('sibling', { script, tools: [read] })
    const top = solo('boss', {
      script: [says('Ready.'), calls('sibling', { message: 'go' }), says('Done.')],
      tools: [{ name: helper, immediate: { scopedEnv: ['HELPER_KEY'] } }, sibling],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: { HELPER_KEY: 'canary-7731-blue' } })
    await it.idle()
    // A value of the thread is inherited; one that came scoped is not handed on.
    expect(seen).toEqual(['below -', 'helper canary-7731-blue'])
    await it.run(id, 'continue')
    expect(seen.at(-1)).toBe('sibling -')
  })
})
