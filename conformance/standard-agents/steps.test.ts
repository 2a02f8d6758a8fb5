// What counts as a step of a side, and how long the count continues.
import { expect, test } from 'vitest'
import { agent as uapAgent } from '@skein/agents'
import { react } from '@skein/agents/execution'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { defineAgent } from '@skein/runtime'
import { pair, requestsOf, solo, tool } from './support/agents.ts'
import { simulate } from './support/simulate.ts'

const look = tool('look')
const done = tool('done')

const note = {
  name: 'note',
  description: 'Takes a note.',
  parameters: { type: 'object' } as const,
  run: () => 'noted',
}

test.each([
  ['its loop', undefined],
  ['its thoughts', react()],
])('SA-24 maxSteps holds for an agent() on side A, which counts %s', async (_, execution) => {
  const model = scripted(({ tools }) => (tools.length > 0 ? calls('note') : says('Let me think.')))
  const agent = uapAgent({ model, tools: [note], ...(execution && { execution }) })
  const capped = defineAgent({ name: 'capped', sideA: { agent, maxSteps: 3 } })
  const it = await simulate({ agents: [capped] })
  expect(await it.ask('go')).toMatchObject({ outcome: 'failed', reason: 'max_side_steps' })
  expect(model.requests).toHaveLength(3)
})

test('SA-24 maxSteps may be more than the runtime’s own limit, in one turn and over several', async () => {
  const script = (_: unknown, index: number) => (index < 3 ? calls('look') : says('Done.'))
  const agent = solo('long', { script, tools: [look], maxSteps: 4 })
  const talks = pair('talks', {
    a: {
      script: (_, index) => (index < 3 ? says('draft') : calls('done')),
      maxSteps: 4,
      tools: [done],
      sessionStop: 'done',
    },
    b: { script: () => says('no'), maxSteps: 4 },
  })
  const it = await simulate({ agents: [agent, talks], limits: { maxSteps: 2 } })
  expect(await it.ask('go')).toMatchObject({ outcome: 'completed', text: 'Done.' })
  const other = await it.create({ agent: 'talks' })
  expect(await it.run(other, 'go')).toMatchObject({ outcome: 'completed' })
})

test('SA-24 maxSteps counts on when the thread is handed back and forth, until a person speaks', async () => {
  const exposed = { exposeAsTool: true, toolDescription: 'A desk.' }
  const back = solo('back', { script: () => calls('front'), tools: ['front'] }, exposed)
  const front = solo('front', { script: () => calls('back'), tools: [back], maxSteps: 3 }, exposed)
  const it = await simulate({ agents: [front], limits: { maxHandoffs: 20 } })
  const { id, ...first } = await it.ask('go')
  expect(first).toMatchObject({ outcome: 'failed', reason: 'max_side_steps' })
  expect([requestsOf(front).length, requestsOf(back).length]).toEqual([3, 3])
  expect(await it.run(id, 'again')).toMatchObject({ reason: 'max_side_steps' })
  expect([requestsOf(front).length, requestsOf(back).length]).toEqual([6, 6])
})

test('SA-24 maxSteps begins anew for all agents when a person speaks in the middle of it', async () => {
  const exposed = { exposeAsTool: true, toolDescription: 'A desk.' }
  const back = solo('back', { script: () => calls('front'), tools: ['front'] }, exposed)
  const script = async (_: unknown, index: number) => {
    if (index === 1) await it.send(id, 'hurry')
    return calls('back')
  }
  const front = solo('front', { script, tools: [back], maxSteps: 3 }, exposed)
  const it = await simulate({ agents: [front], limits: { maxHandoffs: 20 } })
  const id = await it.create()
  await it.send(id, 'go')
  await it.idle()
  // Two steps before the message, three after it.
  expect(requestsOf(front)).toHaveLength(5)
  expect(await it.threads.settled(id)).toMatchObject({ reason: 'max_side_steps' })
})

test('SA-24 the steps of side B count for side A in no turn, also where side A keeps calling', async () => {
  const agent = pair('uneven', {
    a: { script: [says('one'), calls('look'), says('two')], tools: [look], maxSteps: 3 },
    b: {
      script: [calls('look'), calls('look'), calls('look'), says('no'), calls('done')],
      tools: [look, done],
      sessionStop: 'done',
      maxSteps: 5,
    },
  })
  const it = await simulate({ agents: [agent] })
  const { outcome, reason } = await it.ask('go')
  expect({ outcome, reason }).toEqual({ outcome: 'completed', reason: 'session_stop' })
  expect([requestsOf(agent, 'a').length, requestsOf(agent, 'b').length]).toEqual([3, 5])
})

const rules = {
  sessionStop: { name: 'finish', messageProperty: 'say' },
  sessionFail: { name: 'give_up', messageProperty: 'say' },
  stopTool: 'hand',
  stopToolResponseProperty: 'say',
} as const

test.each<[string, ScriptStep, object]>([
  ['text', says('t'), { outcome: 'completed', reason: 'response', text: 't' }],
  ['the stop tool', calls('hand', { say: 'h' }), { reason: 'stop_tool', text: 'h' }],
  ['the end', calls('finish', { say: 'f' }), { outcome: 'completed', text: 'f' }],
  ['the failure', calls('give_up', { say: 'g' }), { reason: 'session_fail', text: 'g' }],
])(
  'SA-34 %s on the very last step counts, of a prompt and of an agent()',
  async (_, last, expected) => {
    const script = () => scripted([calls('look'), last])
    const names = ['finish', 'give_up', 'hand', 'look']
    const plain = names.map((name) => {
      const parameters = { type: 'object' } as const
      return { name, description: `Does ${name}.`, parameters, run: () => 'ok' }
    })
    const model = script()
    const sideA = { agent: uapAgent({ model, tools: plain }), ...rules, maxSteps: 2 }
    const own = defineAgent({ name: 'own', sideA })
    const prompted = solo('prompted', {
      ...rules,
      tools: names.map((name) => tool(name)),
      script: script(),
      maxSteps: 2,
    })
    const it = await simulate({ agents: [prompted, own] })
    expect(await it.ask('go')).toMatchObject(expected)
    const other = await it.create({ agent: 'own' })
    expect(await it.run(other, 'go')).toMatchObject(expected)
    expect(model.requests).toHaveLength(2)
  },
)
