import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const target = (script: Parameters<typeof solo>[1]['script'], prompt = {}) =>
  solo(
    'billing',
    { script, prompt, tools: [tool('refund')], label: 'Billing desk' },
    { exposeAsTool: true, toolDescription: 'Invoices.', env: { DESK: 'billing' } },
  )

test('SA-35 a handoff keeps the thread and its history, and the new agent speaks immediately', async () => {
  const billing = target([says('I see your invoice.'), says('Bye.')])
  const front = solo('front', {
    script: [says('Hello.'), [says('One moment.'), calls('billing')]],
    tools: [billing],
  })
  const it = await simulate({ agents: [front] })
  const { id } = await it.ask('hi')
  const result = await it.run(id, 'my invoice is wrong')
  expect(result).toMatchObject({ outcome: 'completed', text: 'I see your invoice.' })
  expect(result.thread).toMatchObject({ id, agent: 'billing' })

  const [first] = requestsOf(billing)
  expect(first!.system).toBe('You are billing_a.')
  expect(first!.tools.map(({ name }) => name)).toEqual(['refund'])
  expect(linesOf(first)).toEqual([
    'user: hi',
    'assistant: Hello.',
    'user: my invoice is wrong',
    'assistant: One moment. [billing({})]',
    'tool_result: billing = "The conversation goes to billing."',
  ])
  expect(await it.threads.list({})).toHaveLength(1)

  // The next message is the new agent's.
  await it.run(id, 'thanks')
  expect(requestsOf(front)).toHaveLength(2)
  expect(linesOf(requestsOf(billing)[1]).slice(-2)).toEqual([
    'assistant: I see your invoice.',
    'user: thanks',
  ])
})

test('SA-35 a handoff stands in the log, and the document knows both agents', async () => {
  const billing = target([says('Yes.')])
  const front = solo('front', { script: [calls('billing')], tools: [billing], label: 'Front desk' })
  const it = await simulate({ agents: [front] })
  const { id } = await it.ask('hi')
  expect(await it.events(id, 'agent_handoff')).toMatchObject([
    { fromAgentId: 'front/a', toAgentId: 'billing/a' },
  ])
  const { agents, turns } = await it.threads.document(id)
  expect(Object.values(agents ?? {}).map((one) => [one.agent_id, one.agent_name])).toEqual([
    ['front/a', 'Front desk'],
    ['billing/a', 'Billing desk'],
  ])
  expect(turns.length).toBeGreaterThan(1)
  const sessions = await it.events(id, 'session_end')
  expect(sessions.map(({ outcome, reason }) => [outcome, reason])).toEqual([
    ['completed', 'handoff'],
    ['completed', 'response'],
  ])
})

test('SA-35 variables are those of the new agent, and files and values stay', async () => {
  const billing = target([calls('peek'), says('Ok.')], {
    tools: [
      tool('peek', async (state) => [
        state.env('DESK'),
        await state.readTextFile('/note.txt'),
        state.getValue('kept'),
      ]),
    ],
  })
  const front = solo(
    'front',
    {
      script: [[calls('keep'), calls('billing')]],
      tools: [
        billing,
        tool('keep', async (state) => {
          await state.writeFile('/note.txt', 'hello')
          state.setValue('kept', state.env('DESK'))
        }),
      ],
    },
    { env: { DESK: 'front' } },
  )
  const it = await simulate({ agents: [front] })
  await it.ask('hi')
  expect(linesOf(requestsOf(billing)[1]).at(-1)).toBe(
    'tool_result: peek = ["billing","hello","front"]',
  )
})

test('SA-35 an agent that does not read the history still sees what the person asked', async () => {
  const billing = target([says('Yes?')], { includeChat: false })
  const front = solo('front', {
    script: [says('Hello.'), calls('billing')],
    tools: [billing],
  })
  const it = await simulate({ agents: [front] })
  const { id } = await it.ask('hi')
  await it.run(id, 'my invoice')
  expect(linesOf(requestsOf(billing)[0])[0]).toBe('user: my invoice')
})

test('SA-35 a message that came meanwhile is the new agent’s to answer, and steps are counted anew', async () => {
  const billing = target([calls('refund'), says('Done.')])
  const front = solo('front', {
    script: [calls('look'), calls('billing')],
    tools: [billing, tool('look')],
    maxSteps: 2,
  })
  const it = await simulate({ agents: [front] })
  expect(await it.ask('hi')).toMatchObject({ outcome: 'completed', text: 'Done.' })
})

test('SA-35 a message that comes while the thread is handed over is in the first request of the new agent', async () => {
  const billing = target([says('Done.')])
  let id = ''
  const front = solo('front', {
    script: [
      async () => {
        await it.send(id, 'and hurry')
        return calls('billing')
      },
    ],
    tools: [billing],
  })
  const it = await simulate({ agents: [front] })
  id = await it.create()
  await it.send(id, 'hi')
  await it.idle()
  expect(linesOf(requestsOf(billing)[0])).toEqual([
    'user: hi',
    'assistant:  [billing({})]',
    'tool_result: billing = "The conversation goes to billing."',
    'user: and hurry',
  ])
  expect(requestsOf(front)).toHaveLength(1)
  expect(requestsOf(billing)).toHaveLength(1)
})

test('SA-35 of two handoffs in one step the first is made, and the new agent may hand the thread back', async () => {
  const other = solo(
    'other',
    { script: [says('never')] },
    { exposeAsTool: true, toolDescription: 'Another desk.' },
  )
  const billing = solo(
    'billing',
    { script: [calls('front')], tools: ['front'] },
    { exposeAsTool: true, toolDescription: 'Invoices.' },
  )
  const front = solo(
    'front',
    { script: [[calls('billing'), calls('other')], says('Back again.')], tools: [billing, other] },
    { exposeAsTool: true, toolDescription: 'The front desk.' },
  )
  const it = await simulate({ agents: [front] })
  const { id, text } = await it.ask('hi')
  expect(text).toBe('Back again.')
  expect((await it.threads.get(id)).agent).toBe('front')
  expect((await it.events(id, 'agent_handoff')).map(({ toAgentId }) => toAgentId)).toEqual([
    'billing/a',
    'front/a',
  ])
  expect(requestsOf(other)).toEqual([])
  expect(linesOf(requestsOf(front)[1])[0]).toBe('user: hi')
})

test('SA-35 the name of an agent may have slashes in it', async () => {
  const exposed = { exposeAsTool: true, toolDescription: 'A desk.' }
  const billing = solo('@acme/billing/eu', { script: [says('Yes?'), says('Bye.')] }, exposed)
  const front = solo('@acme/front', { script: [calls('@acme/billing/eu')], tools: [billing] })
  const it = await simulate({ agents: [front] })
  const { id, text } = await it.ask('hi')
  expect(text).toBe('Yes?')
  const labels = (await it.events(id, 'agent_registered')).map(({ agent }) => agent.agent_name)
  expect(labels).toEqual(['@acme/front_a', '@acme/billing/eu_a'])
  // Each session is recorded with the definitions of its own agent.
  expect(
    (await it.events(id, 'session_start')).map(({ agent, definitions }) => [agent, definitions]),
  ).toEqual(
    ['@acme/front', '@acme/billing/eu'].map((name) => [name, it.runtime.registry.agent(name).hash]),
  )
  expect(await it.events(id, 'agent_handoff')).toMatchObject([
    { fromAgentId: '@acme/front/a', toAgentId: '@acme/billing/eu/a' },
  ])
  expect((await it.run(id, 'thanks')).text).toBe('Bye.')
  expect((await it.threads.get(id)).agent).toBe('@acme/billing/eu')
})
