import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agent as uapAgent } from '@skein/agents'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { type Policy, rules } from '@skein/governance'
import { createRuntime, type EmbeddedRuntime, memoryStore, type Store } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'

/** What approve with changes promises: only what a person has seen and signed runs, and it runs once. */

let runtime: EmbeddedRuntime | undefined

afterEach(async () => {
  await runtime?.stop({ graceMs: 0 })
  runtime = undefined
})

/** A store that outlives the runtimes that use it. */
function sharedStore(): Store {
  const store = memoryStore()
  store.close = async () => undefined
  return store
}

interface Setup {
  readonly script?: readonly ScriptStep[]
  readonly policy?: Policy
  readonly store?: Store
  readonly isAgent?: boolean
}

const PAY = calls('pay', { amount: 100, to: 'bob' }, { id: 'call-1' })

/** A thread whose model wants to pay 100, and what was done. */
async function boot({ script = [PAY, says('Well.')], policy, store, isAgent }: Setup = {}) {
  const done: string[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    args: z.object({
      amount: z.number().positive(),
      to: z.string().refine((to) => to !== 'nobody', 'is nobody'),
    }),
    rollback: 'impossible',
    execute: (_, { amount, to }) => {
      done.push(`pay ${amount} ${to}`)
      return `paid ${amount} to ${to}`
    },
  })
  const tell = defineTool({
    name: 'tell',
    description: 'Tells.',
    risk: 'write_low_risk',
    execute: () => {
      done.push('tell')
      return 'told'
    },
  })
  const model = scripted(script)
  const tools = [pay, tell]
  const prompt = definePrompt({ name: 'payer', prompt: '', model, tools })
  const sideA = isAgent ? { agent: uapAgent({ model, tools }) } : { prompt }
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'payer', sideA })],
    ...(policy && { policy }),
    ...(store && { store }),
  })
  await runtime.start()
  return { ...runtime, done, model, runtime }
}

/** Lets the model ask, and returns what waits. */
async function ask(it: Awaited<ReturnType<typeof boot>>) {
  const { id } = await it.threads.create({ agent: 'payer' })
  const { waiting } = await it.threads.run(id, 'pay bob')
  const { threadId, interruptId, request, isIrreversible } = waiting[0]!
  return { id, item: { threadId, interruptId, by: 'ann' }, request: request!, isIrreversible }
}

const half = { amount: 50, to: 'bob' }

test.each([false, true])(
  'the changed call runs once and the original never; model and audit know both (agent(): %s)',
  async (isAgent) => {
    const it = await boot({ isAgent })
    const { id, item, isIrreversible } = await ask(it)
    expect(isIrreversible).toBe(true)
    await it.inbox.approve({ ...item, with: half, reason: 'half is enough' })
    expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Well.' })
    expect(it.done).toEqual(['pay 50 bob'])

    const [said, results] = it.model.requests[1]!.messages.slice(-2)
    const made = said?.type === 'assistant' ? (said.toolCalls ?? []) : []
    expect(made.map(({ arguments: args }) => args)).toEqual([{ amount: 100, to: 'bob' }, half])
    const told = results?.type === 'tool_result' ? results.results : []
    expect(told.map(({ toolCallId }) => toolCallId)).toEqual(made.map((one) => one.toolCallId))
    expect(told[0]!.isError).toBe(true)
    expect(String(told[0]!.result)).toContain(`The call ${made[1]!.toolCallId} runs in its place`)
    expect(told[1]!.result).toBe('paid 50 to bob')

    const { lines } = await it.threads.audit(id)
    const events = lines.map((line) => {
      const { metadata } = JSON.parse(line) as { metadata: Record<string, unknown> }
      const { call, answer } = metadata['uaicp:data'] as { call?: string; answer?: string }
      return [metadata['uaicp:event'], call?.split(':').at(-1), answer]
    })
    const [old, own] = made.map(({ toolCallId }) => toolCallId)
    expect(events).toContainEqual(['review_answered', old, 'denied'])
    expect(events).toContainEqual(['call_refused', old, undefined])
    expect(events).toContainEqual(['review_answered', own, 'approved'])
    expect(events).toContainEqual(['call_started', own, undefined])
    expect(events).not.toContainEqual(['call_started', old, undefined])
    const folded = await it.threads.document(id)
    expect(JSON.stringify(folded)).toContain('paid 50 to bob')
  },
)

test('the same arguments are an ordinary approval', async () => {
  const it = await boot()
  const { id, item } = await ask(it)
  await it.inbox.approve({ ...item, with: { to: 'bob', amount: 100 } })
  await it.threads.settled(id)
  expect(it.done).toEqual(['pay 100 bob'])
  const events = await it.threads.events(id)
  expect(events.some(({ event }) => event.type === 'call_changed')).toBe(false)
})

test('a write behind the changed call waits for it', async () => {
  const script = [[PAY, calls('tell', {})], says('Well.')]
  const it = await boot({ script })
  const { id, item } = await ask(it)
  await it.inbox.approve({ ...item, with: half })
  await it.threads.settled(id)
  expect(it.done).toEqual(['pay 50 bob', 'tell'])
})

test('after a restart the changed call runs, once', async () => {
  const store = sharedStore()
  const first = await boot({ store })
  const { id, item } = await ask(first)
  await first.runtime.stop()
  // A runtime that is not started records the decision and does nothing else.
  const between = await createRuntime({ registry: first.registry, store })
  await between.inbox.approve({ ...item, with: half })
  await between.stop()
  const second = await boot({ store, script: [says('Well.')] })
  await second.threads.settled(id)
  await second.idle()
  expect([...first.done, ...second.done]).toEqual(['pay 50 bob'])
})

describe('nothing is recorded and nothing runs', () => {
  const review = rules([{ when: ({ risk }) => risk === 'write_high_risk', effect: 'review' }])
  const small = rules([
    { when: () => true, effect: 'review' },
    { when: ({ args }) => (args as { amount: number }).amount > 500, effect: 'deny' },
  ])
  const fourEyes = rules([{ when: () => true, effect: 'review', fourEyes: true }])
  const digest = `sha256:${'0'.repeat(64)}`

  test.each([
    ['arguments that do not fit the schema', { with: { amount: 'all', to: 'bob' } }, review],
    ['arguments beyond a bound', { with: { amount: -5, to: 'bob' } }, review],
    ['arguments that the schema refines', { with: { amount: 5, to: 'nobody' } }, review],
    ['a missing argument', { with: { amount: 5 } }, review],
    ['a list', { with: [1] as never }, review],
    ['arguments that the policy denies', { with: { amount: 501, to: 'eve' } }, small],
    ['a stale digest', { with: half, digest }, review],
    ['a stale digest of a plain approval', { digest }, review],
    ['tokens of the original call', { with: half, tokens: ['x'] }, review],
    ['a person whom the policy excludes', { with: half, by: 'owner' }, fourEyes],
  ])('%s', async (_, given, policy) => {
    const it = await boot({ policy })
    const { id } = await it.threads.create({ agent: 'payer', owner: 'owner' })
    const { waiting } = await it.threads.run(id, 'pay bob')
    const { threadId, interruptId } = waiting[0]!
    const { seq } = await it.threads.get(id)
    const decided = it.inbox.approve({ threadId, interruptId, by: 'ann', ...given })
    await expect(decided).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
    await it.idle()
    expect((await it.threads.get(id)).seq).toBe(seq)
    expect(it.done).toEqual([])
    expect(await it.inbox.list()).toHaveLength(1)
  })

  test('a second decision', async () => {
    const it = await boot()
    const { id, item } = await ask(it)
    const both = await Promise.allSettled([
      it.inbox.approve({ ...item, with: half }),
      it.inbox.approve({ ...item, with: { amount: 70, to: 'eve' } }),
      it.inbox.approve(item),
    ])
    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await it.threads.settled(id)
    expect(it.done).toHaveLength(1)
  })

  test('a call that no longer waits', async () => {
    const it = await boot()
    const { id, item } = await ask(it)
    await it.inbox.deny({ ...item, reason: 'no' })
    await it.threads.settled(id)
    await expect(it.inbox.approve({ ...item, with: half })).rejects.toMatchObject({
      code: 'INTERRUPT_NOT_FOUND',
    })
    expect(it.done).toEqual([])
  })
})

test('where two people have to approve, the second one sees the changed call', async () => {
  const policy = rules([{ when: () => true, effect: 'review', quorum: 2 }])
  const it = await boot({ policy })
  const { id, item } = await ask(it)
  await it.inbox.approve({ ...item, by: 'cem' })
  await it.inbox.approve({ ...item, with: half })
  await it.idle()
  expect(it.done).toEqual([])
  const waiting = await it.inbox.list()
  expect(waiting).toMatchObject([{ arguments: half, request: { action: { args: half } } }])
  const { threadId, interruptId } = waiting[0]!
  await expect(it.inbox.approve({ threadId, interruptId, by: 'ann' })).rejects.toMatchObject({
    code: 'ALREADY_ANSWERED',
  })
  await it.inbox.approve({ threadId, interruptId, by: 'cem' })
  await it.threads.settled(id)
  expect(it.done).toEqual(['pay 50 bob'])
})

test('what was signed for a call that cannot be undone counts only for that', async () => {
  const store = sharedStore()
  const first = await boot({ store })
  const { item } = await ask(first)
  await first.runtime.stop()
  const between = await createRuntime({ registry: first.registry, store })
  await between.inbox.approve({ ...item, with: half })
  await between.stop()
  // Meanwhile the tool was changed: it now says that a call can be undone.
  const done: string[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    args: z.object({ amount: z.number(), to: z.string() }),
    rollback: () => ({ type: 'tool_call', target: 'pay', payload: {} }),
    execute: () => void done.push('pay'),
  })
  const prompt = definePrompt({ name: 'payer', prompt: '', model: scripted([]), tools: [pay] })
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'payer', sideA: { prompt } })],
    store,
  })
  await runtime.start()
  await runtime.idle()
  expect(done).toEqual([])
  // People are asked again, about what would run now.
  const waiting = await runtime.inbox.list()
  expect(waiting).toMatchObject([{ arguments: half }])
  expect(waiting[0]!.isIrreversible).toBe(false)
})

test('a policy that allows it does not make a call run that cannot be undone', async () => {
  const policy = rules([{ when: () => true, effect: 'allow' }])
  const it = await boot({ policy })
  const { item } = await ask(it)
  expect(it.done).toEqual([])
  await it.inbox.deny({ ...item, reason: 'no' })
  await it.idle()
  expect(it.done).toEqual([])
})
