import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import type { Policy } from '@skein/governance'
import { foldThread, type UnknownThreadEvent } from '@skein/threads'
import { createRuntime, type EmbeddedRuntime, type NumberedEvent } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import type { AgentDefinition } from '../../src/definitions/agent-definition.ts'
import type { PromptDefinition } from '../../src/definitions/prompt-definition.ts'
import { deferred } from './harness.ts'

let runtime: EmbeddedRuntime | undefined

afterEach(async () => {
  await runtime?.stop()
  runtime = undefined
})

async function start(...agents: AgentDefinition[]): Promise<EmbeddedRuntime> {
  runtime = await createRuntime({ agents })
  await runtime.start()
  return runtime
}

const promptOf = (
  name: string,
  script: readonly ScriptStep[],
  rest: Partial<PromptDefinition> = {},
) =>
  definePrompt({
    name,
    prompt: `You are ${name}.`,
    model: scripted(script, { modelId: name }),
    ...rest,
  })

const pay = (onPaid: (amount: number) => void = () => {}) =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    args: z.object({ amount: z.number() }),
    rollback: ({ amount }) => ({ type: 'tool_call', target: 'pay', payload: { amount: -amount } }),
    execute: (_, { amount }) => {
      onPaid(amount)
      return `paid ${amount}`
    },
  })

const done = defineTool({
  name: 'done',
  description: 'Ends.',
  risk: 'read_only',
  args: z.object({ result: z.string().optional() }),
  execute: () => 'ok',
})

test('what a subscriber folds while the thread works is what is stored in the end', async () => {
  const agent = defineAgent({
    name: 'solo',
    sideA: { prompt: promptOf('solo', [says('Hello there'), says('Again')]) },
  })
  const { threads, subscribe } = await start(agent)
  const { id } = await threads.create({ agent: 'solo' })
  const got: NumberedEvent[] = []
  const abort = new AbortController()
  const reading = (async () => {
    for await (const event of subscribe(id, { signal: abort.signal })) got.push(event)
  })()
  expect(await threads.run(id, 'Hi')).toMatchObject({ outcome: 'completed', text: 'Hello there' })
  expect(await threads.run(id, 'Hi again')).toMatchObject({ text: 'Again' })
  const whole: string[] = []
  for await (const event of subscribe(id, { untilParked: true })) whole.push(event.id)
  abort.abort()
  await reading
  expect(got.some(({ event }) => event.type === 'text_delta')).toBe(true)
  const {
    eventCount: _a,
    updatedAt: _b,
    ...folded
  } = foldThread(got.map(({ event }) => event as unknown as UnknownThreadEvent))
  const { eventCount: _c, updatedAt: _d, ...stored } = await threads.folded(id)
  expect(folded).toEqual(stored)
  expect(whole).toEqual(whole.map((_, index) => `${index + 1}`))
})

test('a child that needs a person is a result of the parent, and the answer lets both go on', async () => {
  const paid: number[] = []
  const child = defineAgent({
    name: 'cashier',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'Pays bills.',
    sideA: {
      prompt: promptOf(
        'cashier',
        [calls('pay', { amount: 7 }), calls('done', { result: 'It is paid.' })],
        { tools: [pay((amount) => paid.push(amount)), done] },
      ),
      sessionStop: { name: 'done', messageProperty: 'result' },
    },
    sideB: { prompt: promptOf('auditor', [says('Fine.')]) },
  })
  const agent = defineAgent({
    name: 'boss',
    sideA: {
      prompt: promptOf('boss', [calls('cashier', { bill: 7 }), says('All paid.')], {
        tools: [child],
      }),
    },
  })
  const { threads, inbox } = await start(agent, child)
  const { id } = await threads.create({ agent: 'boss', owner: 'ann' })
  const first = await threads.run(id, 'Pay the bill.')
  expect(first).toMatchObject({
    outcome: 'waiting',
    waiting: [
      {
        toolName: 'pay',
        arguments: { amount: 7 },
        path: ['boss', 'cashier'],
        rootId: id,
        kind: 'approval',
      },
    ],
  })
  const [item] = await inbox.list({ owner: 'ann' })
  const decision = { threadId: item!.threadId, interruptId: item!.interruptId }
  const answers = await Promise.allSettled([
    inbox.approve({ ...decision, by: 'ann' }),
    inbox.approve({ ...decision, by: 'bob' }),
  ])
  expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'All paid.' })
  expect(paid).toEqual([7])
  expect(await inbox.list()).toEqual([])
})

test('stop cuts a running step short; resume goes on', async () => {
  const isRunning = deferred()
  const hang = defineTool({
    name: 'hang',
    description: 'Waits.',
    risk: 'read_only',
    execute: (_, __, { signal }) =>
      new Promise((_resolve, reject) => {
        isRunning.resolve()
        signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
      }),
  })
  const agent = defineAgent({
    name: 'slow',
    sideA: { prompt: promptOf('slow', [calls('hang'), says('Back.')], { tools: [hang] }) },
  })
  const { threads } = await start(agent)
  const { id } = await threads.create({ agent: 'slow' })
  const running = threads.run(id, 'Go.')
  await isRunning.promise
  await threads.stop(id, { by: 'ann' })
  expect(await running).toMatchObject({
    outcome: 'stopped',
    thread: { lifecycle: expect.any(String) },
  })
  expect(await threads.settled(id)).toMatchObject({ thread: { lifecycle: 'stopped' } })
  await threads.resume(id)
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Back.' })
})

test('terminate ends the tree, and resolves when it is done', async () => {
  const isRunning = deferred()
  const aborted: string[] = []
  const hang = defineTool({
    name: 'hang',
    description: 'Waits.',
    risk: 'read_only',
    execute: (state, _, { signal }) =>
      new Promise((_resolve, reject) => {
        isRunning.resolve()
        signal.addEventListener(
          'abort',
          () => {
            aborted.push(state.agentId)
            reject(new Error('stopped'))
          },
          { once: true },
        )
      }),
  })
  const child = defineAgent({
    name: 'kid',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'Works.',
    sideA: {
      prompt: promptOf('kid', [calls('hang')], { tools: [hang, done] }),
      sessionStop: 'done',
    },
    sideB: { prompt: promptOf('kid_b', [says('Go on.')]) },
  })
  const agent = defineAgent({
    name: 'top',
    sideA: { prompt: promptOf('top', [calls('kid', {}), says('never')], { tools: [child] }) },
  })
  const { threads } = await start(agent, child)
  const { id } = await threads.create({ agent: 'top' })
  const running = threads.run(id, 'Go.')
  await isRunning.promise
  await threads.terminate(id, { by: 'ann' })
  const tree = await threads.list({ rootId: id })
  expect(tree.map(({ lifecycle }) => lifecycle)).toEqual(['terminated', 'terminated'])
  expect(aborted).toHaveLength(1)
  expect(await running).toMatchObject({ outcome: 'terminated' })
  await threads.terminate(id)
  await threads.remove(id)
  expect(await threads.list({ rootId: id })).toEqual([])
})

test('many threads and readers at once over SQLite: every reader has its thread, in order', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skein-api-'))
  const prompt = definePrompt({
    name: 'echo',
    prompt: 'Echo.',
    model: scripted(() => says('One two three four five.'), { modelId: 'echo' }),
  })
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'echo', sideA: { prompt } })],
    folder,
    secretKey: new Uint8Array(32),
  })
  const { threads, subscribe } = runtime
  await runtime.start()
  const worked = Array.from({ length: 20 }, async () => {
    const { id } = await threads.create({ agent: 'echo' })
    const abort = new AbortController()
    const got: NumberedEvent[] = []
    const reading = (async () => {
      for await (const event of subscribe(id, { signal: abort.signal })) got.push(event)
    })()
    const results = await Promise.all([
      threads.run(id, 'a'),
      threads.run(id, 'b'),
      threads.run(id, 'c'),
    ])
    expect(results.every(({ outcome }) => outcome === 'completed')).toBe(true)
    await threads.settled(id)
    const { seq } = await threads.get(id)
    // Its own commits were told before the answers; the reader has them as soon as it is asked.
    while (Number.parseInt(got.at(-1)?.id ?? '0', 10) < seq)
      await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    await reading
    const {
      eventCount: _a,
      updatedAt: _b,
      ...folded
    } = foldThread(got.map(({ event }) => event as unknown as UnknownThreadEvent))
    const { eventCount: _c, updatedAt: _d, ...stored } = await threads.folded(id)
    expect(folded).toEqual(stored)
    const numbers = got.map((event) => event.id).filter((number) => !number.includes('.'))
    expect(new Set(numbers).size).toBe(numbers.length)
  })
  await Promise.all(worked)
  await runtime.stop()
  runtime = undefined
  await rm(folder, { recursive: true })
})

test('variables of a deferred child, given twice at once, boot one child', async () => {
  const worker = defineAgent({
    name: 'worker',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'Works.',
    sideA: {
      prompt: promptOf('worker', [calls('done', { result: 'Worked.' })], {
        tools: [done],
        variables: [{ name: 'API_KEY', type: 'secret', required: true, scoped: true }],
      }),
      sessionStop: { name: 'done', messageProperty: 'result' },
    },
    sideB: { prompt: promptOf('worker_b', [says('Fine.')]) },
  })
  const agent = defineAgent({
    name: 'lead',
    sideA: {
      prompt: promptOf(
        'lead',
        [calls('worker', { job: 1 }), says('It needs a key.'), says('Thanks.')],
        { tools: [worker] },
      ),
    },
  })
  const { threads } = await start(agent, worker)
  const { id } = await threads.create({ agent: 'lead' })
  expect(await threads.run(id, 'Go.')).toMatchObject({ text: 'It needs a key.' })
  const asked = (await threads.events(id)).find(
    ({ event }) => event.type === 'variables_requested',
  )?.event
  const requestId = asked?.type === 'variables_requested' ? asked.requestId : ''
  const given = await Promise.allSettled(
    [1, 2].map(() => threads.variables.provide(id, requestId, { API_KEY: 'hunter2' })),
  )
  expect(given.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  await runtime!.idle()
  expect(await threads.list({ parentId: id })).toHaveLength(1)
  const everything = JSON.stringify(
    await Promise.all((await threads.list({ rootId: id })).map((head) => threads.events(head.id))),
  )
  expect(everything).not.toContain('hunter2')
  expect(await threads.settled(id)).toMatchObject({ text: 'Thanks.' })
})

test('a policy that asks for two people gets both, and the call runs once', async () => {
  const paid: number[] = []
  const tools = [pay((amount) => paid.push(amount))]
  const prompt = promptOf('careful', [calls('pay', { amount: 3 }), says('Paid.')], { tools })
  const policy: Policy = {
    id: 'two-people',
    hash: `sha256:${'0'.repeat(64)}`,
    decide: ({ risk }) =>
      risk === 'write_high_risk' ? { effect: 'review', quorum: 2 } : undefined,
  }
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'careful', sideA: { prompt } })],
    policy,
  })
  await runtime.start()
  const { threads, inbox } = runtime
  const { id } = await threads.create({ agent: 'careful' })
  const { waiting } = await threads.run(id, 'Pay.')
  const decision = { threadId: id, interruptId: waiting[0]!.interruptId }
  await inbox.approve({ ...decision, by: 'ann' })
  await runtime.idle()
  expect(paid).toEqual([])
  expect(await threads.settled(id)).toMatchObject({ outcome: 'waiting' })
  await inbox.approve({ ...decision, by: 'bob' })
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Paid.' })
  expect(paid).toEqual([3])
})
