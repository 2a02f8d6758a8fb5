import { calls, says, scripted } from '@skein/ai/testing'
import { createRegistry, createRuntime, defineAgent, defineTool, memoryStore } from '@skein/runtime'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  diffRuns,
  diffText,
  listEffects,
  readExport,
  readRecording,
  replay,
  runAgain,
} from '@skein/evals'

async function recordedDesk() {
  const ran: string[] = []
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    risk: 'read_only',
    args: z.object({ what: z.string() }),
    async execute(_state, { what }) {
      ran.push(what)
      return { found: what }
    },
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    rollback: 'impossible',
    args: z.object({ amount: z.number() }),
    async execute(_state, { amount }) {
      ran.push(`pay ${amount}`)
      return 'paid'
    },
  })
  const agent = (script: Parameters<typeof scripted>[0], instructions = 'You look.') => {
    const model = scripted(script)
    return { model, agent: defineAgent({ name: 'desk', instructions, model, tools: [look, pay] }) }
  }
  const { agent: first } = agent([
    calls('look', { what: 'a' }),
    says('It is a.'),
    calls('pay', { amount: 5 }),
    says('Paid.'),
  ])
  const store = memoryStore()
  const runtime = await createRuntime({ agents: [first], store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(id, 'Look for a')
  await runtime.threads.run(id, 'Pay 5')
  const [item] = await runtime.inbox.list({ threadId: id })
  await runtime.inbox.approve({ threadId: id, interruptId: item!.interruptId, by: 'ada' })
  await runtime.threads.settled(id)
  const recorded = await readRecording(store, id)
  ran.length = 0
  return { recorded, agent, runtime, ran, id }
}

test('other instructions: the model is asked, tools and people answer from the recording', async () => {
  const { recorded, agent, runtime, ran, id } = await recordedDesk()
  const next = agent(
    [calls('look', { what: 'a' }), says('a!'), calls('pay', { amount: 5 }), says('Done.')],
    'You are brief.',
  )
  const report = await replay(recorded, {
    registry: createRegistry({ agents: [next.agent] }),
    saveTo: runtime.threads,
  })
  expect(report).toMatchObject({
    end: { type: 'done' },
    first: { kind: 'instructions', step: 1, summary: 'instructions of desk' },
    requests: { recorded: 0, sent: 4 },
  })
  expect(ran).toEqual([])
  expect(report.facts.messages.map(({ text }) => text)).toEqual([
    'Look for a',
    'a!',
    'Pay 5',
    'Done.',
  ])
  const fork = await runtime.threads.get(report.fork!)
  expect(fork.forkedFrom).toMatchObject({ threadId: id })
  const diff = diffRuns(recorded, await readExport(await runtime.threads.export(fork.id)))
  expect(diff).toMatchObject({ isSame: false, firstDivergence: 2, deltas: { calls: 0 } })
  expect(diffText(diff)).toContain('- agent: It is a.\n+ agent: a!')
  await runtime.stop()
})

test('a changed step: earlier requests are not sent, later equal ones neither', async () => {
  const { recorded, agent, runtime } = await recordedDesk()
  const next = agent([calls('pay', { amount: 5 }), says('Paid!')], 'You are brief.')
  const report = await replay(recorded, {
    registry: createRegistry({ agents: [next.agent] }),
    from: 3,
  })
  expect(report).toMatchObject({ first: { step: 3 }, requests: { recorded: 2, sent: 2 } })
  await runtime.stop()
})

test('a call that the recording does not know ends the replay, or a stub answers it', async () => {
  const { recorded, agent, runtime, ran } = await recordedDesk()
  const script = [calls('look', { what: 'b' }), says('It is b.'), says('No.')]
  const first = agent(script, 'You are brief.')
  const ended = await replay(recorded, { registry: createRegistry({ agents: [first.agent] }) })
  expect(ended.end).toEqual({ type: 'unknown_call', toolName: 'look', raw: { what: 'b' } })
  expect(ended.requests.sent).toBe(1)
  const second = agent(script, 'You are brief.')
  const stubbed = await replay(recorded, {
    registry: createRegistry({ agents: [second.agent] }),
    stubs: { look: () => ({ found: 'b' }) },
  })
  expect(stubbed).toMatchObject({ end: { type: 'done' }, requests: { sent: 3 } })
  expect(ran).toEqual([])
  await runtime.stop()
})

test('changes of one replay: instructions, model, settings, tools and message', async () => {
  const { recorded, agent, runtime } = await recordedDesk()
  const { agent: same } = agent([])
  const registry = createRegistry({ agents: [same] })
  const kinds: unknown[] = []
  for (const change of [
    { instructions: 'Other.' },
    { model: scripted([says('Hm.')], { modelId: 'other' }) },
    { settings: { temperature: 0 } },
    { tools: [] },
  ]) {
    const { first } = await replay(recorded, { registry, change, maxRequests: 0 })
    kinds.push(first?.kind)
  }
  const { first } = await replay(recorded, { registry, message: 'Look for b', maxRequests: 0 })
  expect([...kinds, first?.kind]).toEqual(['instructions', 'model', 'settings', 'tools', 'history'])
  expect(await replay(recorded, { registry })).toMatchObject({ requests: { recorded: 4, sent: 0 } })
  await runtime.stop()
})

test('running again lists the effects, and refuses high-risk writes that no one has accepted', async () => {
  const { runtime, ran, id } = await recordedDesk()
  expect(await listEffects({ runtime, threadId: id })).toMatchObject([
    { toolName: 'look', risk: 'read_only', needsApproval: false },
    { toolName: 'pay', risk: 'write_high_risk', needsApproval: true },
  ])
  await expect(runAgain({ runtime, threadId: id })).rejects.toMatchObject({
    code: 'EFFECTS_NOT_ACCEPTED',
  })
  expect(ran).toEqual([])
  await runtime.stop()
})
