// Immediate subagents (Standard Agents §7.6) at their limits, and while messages wait.
import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { defineTool } from '@skein/runtime'
import { child, linesOf, requestsOf, solo } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

test.each([
  ['disposable', {}],
  ['resumable', { resumable: {} }],
] as const)(
  'SA-47 messages that come while a %s blocking immediate child works, or waits for a person, wait for it',
  async (_, config) => {
    const started = latch()
    const go = latch()
    const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })
    const helper = child('helper', {
      script: [
        async () => {
          started.open()
          await go.reached
          return calls('ask')
        },
        calls('finish', { summary: 'ready' }),
      ],
      tools: [ask],
    })
    const top = solo('boss', {
      script: [says('Now.')],
      tools: [{ name: helper, immediate: true, ...config }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'one' })
    await started.reached
    await it.send(id, 'two')
    go.open()
    await it.idle()
    await it.send(id, 'three')
    await it.idle()
    expect(requestsOf(top)).toEqual([])
    const [item] = await it.runtime.inbox.list()
    await it.runtime.inbox.answer(item!, { type: 'result', value: 'yes' })
    await it.idle()
    const [made] = await it.events(id, 'subagent_created')
    expect(requestsOf(top).map((request) => linesOf(request).slice(0, 4))).toEqual([
      [
        'user: one',
        'user: two',
        'user: three',
        `user: Subagent (reference: ${made!.reference}) has returned the following result:\n\nready`,
      ],
    ])
  },
)

test('SA-51 SA-53 an immediate child that is nested too deeply is refused, the log says so, and its parent continues', async () => {
  const leaf = child('leaf')
  const middle = child('middle', { tools: [{ name: leaf, immediate: true }] })
  const top = solo('boss', {
    script: () => says('I see.'),
    tools: [{ name: middle, immediate: true }],
  })
  const it = await simulate({ agents: [top], limits: { depth: 1 } })
  const { id, text } = await it.ask('hi')
  expect(text).toBe('I see.')
  await it.idle()
  const [made] = await it.events(id, 'subagent_created')
  expect((await it.threads.list({ rootId: id })).map(({ agent }) => agent).toSorted()).toEqual([
    'boss',
    'middle',
  ])
  expect(await it.events(made!.reference, 'error_raised')).toMatchObject([
    { code: 'SUBAGENT_REFUSED', message: expect.stringContaining('1 levels deep') as string },
  ])
  expect(requestsOf(leaf)).toEqual([])
})

test.each([
  ['nothing to start', false],
  ['a child to start', true],
])(
  'SA-52 an agent that gets the thread back starts its children again; the agent between has %s',
  async (_, isBusy) => {
    const [early, late] = [child('early'), child('late')]
    const taken = { exposeAsTool: true, toolDescription: 'Takes over.' }
    const second = solo(
      'second',
      {
        script: [calls('first')],
        tools: ['first', ...(isBusy ? [{ name: late, immediate: true }] : [])],
      },
      taken,
    )
    const first = solo(
      'first',
      {
        script: [calls('second'), calls('first'), says('Mine again.')],
        tools: [second, 'first', { name: early, immediate: true }],
      },
      taken,
    )
    const it = await simulate({ agents: [first] })
    const { id, text } = await it.ask('hi')
    expect(text).toBe('Mine again.')
    const events = (await it.threads.events(id)).map(({ event }) => event)
    expect(
      events.flatMap((event) => {
        if (event.type === 'subagent_created') return `starts ${event.name}`
        if (event.type === 'agent_handoff') return `to ${event.toAgentId}`
        return event.type === 'message_added' && event.agentId ? `${event.agentId} speaks` : []
      }),
    ).toEqual([
      'starts early',
      'first/a speaks',
      'to second/a',
      ...(isBusy ? ['starts late'] : []),
      'second/a speaks',
      'to first/a',
      'starts early',
      'first/a speaks',
      // The prompt is the same before and after.
      'to first/a',
      'first/a speaks',
    ])
  },
)
