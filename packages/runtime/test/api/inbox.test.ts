import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { createRuntime, type EmbeddedRuntime, type RuntimeOptions } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import type { AgentDefinition } from '../../src/definitions/agent-definition.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { coded, deferred } from './harness.ts'

let runtime: EmbeddedRuntime | undefined

afterEach(async () => {
  await runtime?.stop({ graceMs: 0 })
  runtime = undefined
})

async function start(
  agents: readonly AgentDefinition[],
  options: Partial<RuntimeOptions> = {},
): Promise<EmbeddedRuntime> {
  runtime = await createRuntime({ agents, ...options } as RuntimeOptions)
  await runtime.start()
  return runtime
}

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  risk: 'write_high_risk',
  args: z.object({ amount: z.number() }),
  rollback: ({ amount }) => ({ type: 'tool_call', target: 'pay', payload: { amount: -amount } }),
  execute: (_, { amount }) => `paid ${amount}`,
})

test('an approval is in the inbox, the list and the change feed while a call beside it still runs', async () => {
  const gate = deferred()
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    risk: 'read_only',
    args: z.object({}),
    execute: async () => {
      await gate.promise
      return 'seen'
    },
  })
  const agent = defineAgent({
    name: 'boss',
    sideA: {
      prompt: definePrompt({
        name: 'boss',
        prompt: 'Work.',
        model: scripted([[calls('pay', { amount: 5 }), calls('look', {})], says('Done.')]),
        tools: [look, pay],
      }),
    },
  })
  const { threads, inbox } = await start([agent])
  const { id } = await threads.create({ agent: 'boss' })
  const abort = new AbortController()
  const asked = (async () => {
    for await (const page of threads.changes({ signal: abort.signal }))
      for (const { thread, waiting } of page.threads)
        if (thread.id === id && waiting.length > 0) return { thread, waiting }
    return undefined
  })()
  const running = threads.run(id, 'Go')
  const timer = setTimeout(() => abort.abort(), 3000)
  const change = await asked
  clearTimeout(timer)
  expect(change?.waiting).toMatchObject([{ toolName: 'pay', kind: 'approval' }])
  expect(change?.thread).toMatchObject({ waiting: 1, lifecycle: 'running' })
  const [item] = await inbox.list()
  expect(item).toMatchObject({ threadId: id, toolName: 'pay' })
  // It can be decided at once, and the call runs when the other one has ended.
  await inbox.approve({ threadId: id, interruptId: item!.interruptId, by: 'ann' })
  expect(await threads.get(id)).toMatchObject({ waiting: 0, lifecycle: 'running' })
  expect(await inbox.list()).toEqual([])
  gate.resolve()
  expect(await running).toMatchObject({ outcome: 'completed', text: 'Done.' })
  abort.abort()
})

test('a decision that is made before the thread has parked counts, however early it comes', async () => {
  const agent = defineAgent({
    name: 'payer',
    sideA: {
      prompt: definePrompt({
        name: 'payer',
        prompt: 'Pay.',
        model: scripted(({ messages }) =>
          messages.at(-1)?.type === 'user' ? calls('pay', { amount: 1 }) : says('Done.'),
        ),
        tools: [pay],
      }),
    },
  })
  const { threads, inbox, subscribe } = await start([agent])
  const runs = Array.from({ length: 40 }, async (_, index) => {
    const { id } = await threads.create({ agent: 'payer' })
    await threads.send(id, 'Pay')
    for await (const { event } of subscribe(id, { after: '0' }))
      if (event.type === 'interrupt_opened') {
        const item = { threadId: id, interruptId: event.interrupt.id, by: 'ann' }
        expect((await inbox.list({ rootId: id })).length).toBe(1)
        await (index % 2 === 0 ? inbox.approve(item) : inbox.deny({ ...item, reason: 'No.' }))
        break
      }
    const { outcome } = await threads.settled(id)
    return { outcome, waiting: (await threads.get(id)).waiting }
  })
  for (const end of await Promise.all(runs))
    expect(end).toEqual({ outcome: 'completed', waiting: 0 })
})

const SECRET = 'hunter2-canary'

/** An agent whose child needs a secret and a text before it can start. */
function shop(script: readonly ScriptStep[] = [calls('courier', { message: 'Bring it.' }), says('Asked.')]) {
  const courier = defineAgent({
    name: 'courier',
    exposeAsTool: true,
    toolDescription: 'Brings things.',
    type: 'dual_ai',
    sideA: {
      prompt: definePrompt({
        name: 'courier',
        prompt: 'Bring.',
        model: scripted(() => says('On my way.')),
        variables: [
          { name: 'VAULT_CODE', type: 'secret', required: true, scoped: true, description: 'Of the vault.' },
          { name: 'CITY', type: 'text', required: true, scoped: true },
        ],
      }),
    },
    sideB: {
      prompt: definePrompt({
        name: 'courier_b',
        prompt: 'End.',
        model: scripted(() => calls('done', { result: 'Brought.' })),
        tools: [
          defineTool({
            name: 'done',
            description: 'Ends.',
            risk: 'read_only',
            args: z.object({ result: z.string() }),
            execute: () => 'ok',
          }),
        ],
      }),
      sessionStop: { name: 'done', messageProperty: 'result' },
    },
  })
  const boss = defineAgent({
    name: 'boss',
    sideA: {
      prompt: definePrompt({
        name: 'boss',
        prompt: 'Work.',
        model: scripted(script),
        tools: [{ name: 'courier', initUserMessageProperty: 'message' }],
      }),
    },
  })
  return [boss, courier] as const
}

test('a request for variables is in the inbox until somebody gives them; secrets are nowhere', async () => {
  const store = memoryStore()
  const script = [calls('courier', { message: 'Bring it.' }), says('Asked.'), says('Thank you.')]
  const { threads, inbox } = await start(shop(script), { store })
  const { id } = await threads.create({ agent: 'boss' })
  // The request does not hold up the session.
  expect(await threads.run(id, 'Go')).toMatchObject({ outcome: 'completed', waiting: [] })
  expect(await threads.get(id)).toMatchObject({ waiting: 1, lifecycle: 'idle' })
  const [item, ...others] = await inbox.list()
  expect(others).toEqual([])
  expect(item).toMatchObject({
    threadId: id,
    rootId: id,
    kind: 'variables',
    toolName: 'courier',
    arguments: { message: 'Bring it.' },
    path: ['boss'],
    variables: [
      { name: 'VAULT_CODE', type: 'secret', description: 'Of the vault.' },
      { name: 'CITY', type: 'text' },
    ],
  })
  expect(item!.expiresAt).toBeDefined()
  const call = (await threads.messages(id)).flatMap(({ message }) =>
    message.type === 'assistant' ? (message.toolCalls ?? []) : [],
  )
  expect(item!.toolCallId).toBe(call[0]!.toolCallId)
  const { interruptId } = item!
  expect(await inbox.get({ threadId: id, interruptId })).toMatchObject({
    status: 'waiting',
    sentence: 'boss needs 2 values before it can start courier.',
    evidence: [],
    kind: 'variables',
  })
  // It is not a call: nobody approves or answers it.
  for (const attempt of [
    inbox.approve({ threadId: id, interruptId, by: 'ann' }),
    inbox.answer({ threadId: id, interruptId }, { type: 'result', value: 1 }),
  ])
    await expect(attempt).rejects.toEqual(coded('ANSWER_INVALID'))
  const values = { VAULT_CODE: SECRET, CITY: 'Ulm' }
  await threads.variables.provide(id, interruptId, values, { by: 'ann' })
  expect(await inbox.list()).toEqual([])
  expect(await threads.get(id)).toMatchObject({ waiting: 0 })
  await expect(
    threads.variables.provide(id, interruptId, values, { by: 'bob' }),
  ).rejects.toEqual(coded('ALREADY_ANSWERED'))
  // The second person learns who was first.
  const detail = await inbox.get({ threadId: id, interruptId })
  expect(detail).toMatchObject({ status: 'decided', decision: { type: 'provided', by: 'ann' } })
  expect(JSON.stringify(detail)).not.toContain(SECRET)
  expect(JSON.stringify(detail)).not.toContain('Ulm')
  const logs = await Promise.all(
    (await store.list({})).map((head) => store.events(head.id)),
  )
  expect(JSON.stringify(logs)).not.toContain(SECRET)
})

test('a request for variables whose time is over waits for nobody', async () => {
  const store = memoryStore()
  const limits = { variablesTtlMs: 400 }
  const { threads, inbox } = await start(shop(), { store, limits })
  const { id } = await threads.create({ agent: 'boss' })
  await threads.run(id, 'Go')
  const [item] = await inbox.list()
  // The thread is woken when the time is over, so that no list goes on counting the request.
  expect((await store.head(id))!.wakeAt).toBe(Date.parse(item!.expiresAt!))
  await expect.poll(async () => (await store.head(id))!.waiting, { timeout: 5000 }).toBe(0)
  expect(await inbox.list()).toEqual([])
  expect((await store.head(id))!.wakeAt).toBe(null)
  expect(await inbox.get({ threadId: id, interruptId: item!.interruptId })).toMatchObject({
    status: 'over',
  })
})
