import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, stops, waits, type ScriptPart } from '@skein/ai/testing'
import {
  asSubagent,
  createRegistry,
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  memoryStore,
  type AgentDefinition,
  type EmbeddedRuntime,
  type RuntimeOptions,
  defineTool,
} from '@skein/runtime'
import { createClient } from '../../src/client/index.ts'
import { createHttp } from '../../src/index.ts'
import { threadView } from '@skein/runtime/view'

let runtime: EmbeddedRuntime | undefined
afterEach(() => runtime?.stop({ graceMs: 0 }))

async function start(options: RuntimeOptions): Promise<EmbeddedRuntime> {
  runtime = await createRuntime(options)
  await runtime.start()
  return runtime
}

const hundred = stops(undefined, {
  usage: { inputTokens: 60, outputTokens: 40, totalTokens: 100 },
})
const solo = (...parts: readonly ScriptPart[]): AgentDefinition =>
  defineAgent({
    name: 'solo',
    sideA: {
      prompt: definePrompt({ name: 'solo', prompt: 'Hi.', model: scripted(() => [...parts]) }),
    },
  })

const done = defineTool({
  name: 'done',
  description: 'Ends the work.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: (_, { text }) => text,
})

/** A parent whose model has a price, with a child whose model has none unless it is given. */
function family(childPrice: { inputPrice?: number; outputPrice?: number } = {}): AgentDefinition {
  const childModel = defineModel({
    name: 'child_model',
    model: scripted(() => [calls('done', { text: 'Dug.' }), hundred]),
    ...childPrice,
  })
  const worker = defineAgent({
    name: 'worker',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Works.',
    maxSessionTurns: 4,
    sideA: {
      prompt: definePrompt({ name: 'work', prompt: 'Work.', model: childModel, tools: [done] }),
      sessionStop: { name: done, messageProperty: 'text' },
    },
    sideB: {
      prompt: definePrompt({ name: 'review', prompt: 'Review.', model: childModel }),
    },
  })
  const model = defineModel({
    name: 'parent_model',
    model: scripted((_, index) =>
      index % 2 === 0 ? [calls('worker', {}), hundred] : [says('Done.'), hundred],
    ),
    inputPrice: 1,
    outputPrice: 10,
  })
  return defineAgent({
    name: 'boss',
    sideA: { prompt: definePrompt({ name: 'boss', prompt: 'Lead.', model, tools: [worker] }) },
  })
}

test('a thread without children does not read its whole tree to be shown', async () => {
  const store = memoryStore()
  let read = 0
  const counted = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (name !== 'list') return member.bind(target) as unknown
      return async (query: Parameters<typeof store.list>[0]) => {
        const heads = await target.list(query)
        read += heads.length
        return heads
      }
    },
  })
  const { threads } = await start({ agents: [family()], store: counted })
  const { id } = await threads.create({ agent: 'boss' })
  for (let count = 0; count < 10; count++) await threads.run(id, 'Go.')
  const children = await threads.list({ parentId: id })
  expect(children).toHaveLength(10)
  read = 0
  const shown = await Promise.all(children.map((child) => threads.get(child.id)))
  expect(read).toBe(0)
  // The sums are those of the list, which has read the tree.
  expect(shown).toEqual(children)
  expect(shown[0]!.tree.tokens).toBe(shown[0]!.tokens)
})

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('lifecycle', () => {
  test('a thread that is given a message is queued until it runs, in answers and in lists', async () => {
    const { threads } = await createRuntime({ agents: [solo(says('Hi.'))] })
    const created = await threads.create({ agent: 'solo', message: 'Hello' })
    expect(created.lifecycle).toBe('queued')
    const empty = await threads.create({ agent: 'solo' })
    expect(empty.lifecycle).toBe('idle')
    await threads.send(empty.id, 'Hello')
    const queued = await threads.list({ lifecycle: 'queued' })
    expect(queued.map(({ id }) => id).toSorted()).toEqual([created.id, empty.id].toSorted())
    expect(threadView(await threads.events(empty.id)).status).toBe('queued')
  })

  test('queued, running, idle: what subscribers of changes see in order', async () => {
    const { threads, changes, ...rest } = await start({ agents: [solo(says('a'), waits(5))] })
    const seen: string[] = []
    const abort = new AbortController()
    const watching = (async () => {
      for await (const { lifecycle } of changes({ signal: abort.signal }))
        if (seen.at(-1) !== lifecycle) seen.push(lifecycle)
    })()
    const { id } = await threads.create({ agent: 'solo' })
    await threads.run(id, 'Hello')
    await rest.idle()
    await new Promise((resolve) => setTimeout(resolve, 20))
    abort.abort()
    await watching
    expect(seen.join(' ')).toMatch(/^(idle )?(queued )?running idle$/)
    const view = threadView(await threads.events(id))
    expect(view.status).toBe('idle')
  })

  test('a withdrawn message leaves the thread as it was', async () => {
    const { threads } = await createRuntime({ agents: [solo(says('Hi.'))] })
    const { id } = await threads.create({ agent: 'solo' })
    const { queueId } = await threads.send(id, 'Hello')
    await threads.unsend(id, queueId)
    expect(threadView(await threads.events(id)).status).toBe('idle')
  })
})

describe('cost', () => {
  test('an unknown cost is null everywhere, and never 0', async () => {
    const { threads } = await start({ agents: [solo(says('Hi.'), hundred)] })
    const { id } = await threads.create({ agent: 'solo' })
    expect(await threads.get(id)).toMatchObject({ costUsd: 0, tree: { tokens: 0, costUsd: 0 } })
    const result = await threads.run(id, 'Hello')
    await runtime!.idle()
    expect(result.outcome).toBe('completed')
    expect(await threads.get(id)).toMatchObject({
      tokens: 100,
      costUsd: null,
      tree: { tokens: 100, costUsd: null },
    })
    expect(await threads.logs(id)).toMatchObject([{ costUsd: null }])
    const report = await threads.cost(id)
    expect(report).toMatchObject({ tokens: 100, costUsd: null })
    expect(Object.values(report.byModel)).toMatchObject([{ costUsd: null }])
    expect(Object.values(report.byThread)).toMatchObject([{ costUsd: null }])
    expect(threadView(await threads.events(id)).usage.costUsd).toBe(null)
  })

  test('a thread has its own sums and those of its tree; one unknown part makes a sum unknown', async () => {
    const { threads } = await start({ agents: [family()] })
    const { id } = await threads.create({ agent: 'boss' })
    expect(await threads.run(id, 'Go')).toMatchObject({ outcome: 'completed', text: 'Done.' })
    await runtime!.idle()
    const boss = await threads.get(id)
    expect(boss).toMatchObject({ tokens: 200, tree: { tokens: 300, costUsd: null } })
    expect(boss.costUsd).toBeCloseTo(0.000_92, 9)
    const [worker] = await threads.list({ parentId: id })
    const own = { tokens: 100, costUsd: null }
    expect(worker).toMatchObject({ ...own, tree: own })
    const { byModel } = await threads.cost(id)
    expect(Object.values(byModel).map(({ costUsd }) => costUsd)).toContain(null)
  })

  test('with all prices the sum of the tree is the sum of its threads', async () => {
    const { threads } = await start({ agents: [family({ inputPrice: 0, outputPrice: 100 })] })
    const { id } = await threads.create({ agent: 'boss' })
    await threads.run(id, 'Go')
    await runtime!.idle()
    const { costUsd, tree } = await threads.get(id)
    expect(costUsd).toBeCloseTo(0.000_92, 9)
    expect(tree.costUsd).toBeCloseTo(0.004_92, 9)
    expect((await threads.cost(id)).costUsd).toBeCloseTo(0.004_92, 9)
  })

  test('a failed request that used tokens is counted once: in the report, the thread and the view', async () => {
    const model = defineModel({
      name: 'priced',
      model: scripted([
        [says('Not JSON'), hundred],
        [says('{"ships":3}'), hundred],
      ]),
      inputPrice: 1,
      outputPrice: 2,
    })
    const output = z.object({ ships: z.number() })
    const prompt = definePrompt({ name: 'solo', prompt: 'Hi.', model, output })
    const limits = { modelBackoffMs: 1 }
    const agents = [defineAgent({ name: 'solo', sideA: { prompt } })]
    const { threads } = await start({ agents, limits })
    const { id } = await threads.create({ agent: 'solo' })
    expect(await threads.run(id, 'Hello')).toMatchObject({ outcome: 'completed' })
    await runtime!.idle()
    await expectSums(id, { tokens: 200, costUsd: 0.000_28, calls: 2 })
  })

  test('the request that writes the first instruction of a subagent is counted once, too', async () => {
    const inner = scripted(() => says('Done.'), { modelId: 'free' })
    const helper = asSubagent(
      defineAgent({
        name: 'helper',
        toolDescription: 'Helps.',
        sideA: { prompt: definePrompt({ name: 'helper', prompt: 'Help.', model: inner }) },
      }),
    )
    const model = defineModel({
      name: 'priced',
      model: scripted(() => [says('Count!'), hundred]),
      inputPrice: 1,
      outputPrice: 2,
    })
    const immediate = { descriptionEnv: 'TASK' }
    const tools = [{ name: helper, blocking: false, immediate }]
    const prompt = definePrompt({ name: 'boss', prompt: 'Lead.', model, tools })
    const { threads } = await start({ agents: [defineAgent({ name: 'boss', sideA: { prompt } })] })
    const { id } = await threads.create({ agent: 'boss', env: { TASK: 'Count the ships' } })
    await runtime!.idle()
    const [child] = await threads.list({ parentId: id })
    await threads.terminate(child!.id)
    const calls = (await threads.logs(id)).length
    expect(calls).toBeGreaterThan(0)
    await expectSums(id, { tokens: 100 * calls, costUsd: 0.000_14 * calls, calls })
  })

  async function expectSums(
    id: string,
    { tokens, costUsd, calls }: { tokens: number; costUsd: number; calls: number },
  ): Promise<void> {
    const { threads } = runtime!
    const thread = await threads.get(id)
    expect(thread.tokens).toBe(tokens)
    expect(thread.costUsd).toBeCloseTo(costUsd, 9)
    const { byThread, byModel } = await threads.cost(id)
    expect(byThread[id]!.tokens).toBe(tokens)
    expect(byThread[id]!.costUsd).toBeCloseTo(costUsd, 9)
    expect(byModel['scripted/script']).toMatchObject({
      tokens,
      calls,
    })
    const { usage } = threadView(await threads.events(id))
    expect(usage.inputTokens + usage.outputTokens).toBe(tokens)
    expect(usage.costUsd).toBeCloseTo(costUsd, 9)
  }
})

describe('prices and budgets', () => {
  const budgeted = (budget: AgentDefinition['budget']): AgentDefinition => ({
    ...solo(says('Hi.'), hundred),
    budget,
  })
  const problem = (options: Parameters<typeof createRegistry>[0]): string => {
    try {
      createRegistry(options)
      return 'none'
    } catch (error) {
      return (error as Error).message
    }
  }

  test('a budget in dollars on a model without a price is a problem that says what to do', () => {
    const text = problem({ agents: [budgeted({ maxCostUsd: 1 })] })
    expect(text).toContain('agent "solo": budget.maxCostUsd: cannot hold')
    expect(text).toContain('scripted/script has no price')
    expect(text).toContain('inputPrice and outputPrice')
    expect(text).toContain('prices')
    expect(problem({ agents: [budgeted({ maxTokens: 1 })] })).toBe('none')
  })

  test('a budget of a tree counts the models of subagents too', () => {
    const boss = { ...family(), budget: { maxCostUsd: 1, tree: { maxCostUsd: 2 } } }
    const text = problem({ agents: [boss] })
    expect(text).toContain('budget.tree.maxCostUsd')
    expect(text).not.toContain('budget.maxCostUsd')
    const priced = family({ inputPrice: 1, outputPrice: 1 })
    expect(problem({ agents: [{ ...priced, budget: boss.budget }] })).toBe('none')
  })

  test.each([
    ['a table', { 'scripted/script': { prices: { input: 1, output: 10 } } }],
    [
      'a function',
      (provider: string, modelId: string) =>
        provider === 'scripted' && modelId === 'script' ? { input: 1, output: 10 } : undefined,
    ],
  ])('prices come from %s, and the budget holds', async (_, prices) => {
    const { threads } = await start({ agents: [budgeted({ maxCostUsd: 0.0009 })], prices })
    const { id } = await threads.create({ agent: 'solo' })
    expect(await threads.run(id, 'One')).toMatchObject({ outcome: 'completed' })
    expect((await threads.get(id)).costUsd).toBeCloseTo(0.000_46, 9)
    expect(await threads.run(id, 'Two')).toMatchObject({ outcome: 'completed' })
    const third = await threads.run(id, 'Three')
    expect(third).toMatchObject({ outcome: 'failed', reason: 'budget_exceeded' })
  })

  test('a price of the definition wins over the table', async () => {
    const model = defineModel({
      name: 'm',
      model: scripted(() => [says('Hi.'), hundred]),
      inputPrice: 0,
      outputPrice: 0,
    })
    const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model })
    const agent = defineAgent({ name: 'free', sideA: { prompt } })
    const { threads } = await start({
      agents: [agent],
      prices: () => ({ input: 9, output: 9 }),
    })
    const { id } = await threads.create({ agent: 'free' })
    await threads.run(id, 'Hello')
    expect((await threads.get(id)).costUsd).toBe(0)
  })

  test('a thread with a budget in dollars needs prices, too', async () => {
    const { threads } = await createRuntime({ agents: [solo(says('Hi.'))] })
    await expect(
      threads.create({ agent: 'solo', budget: { maxCostUsd: 1 } }),
    ).rejects.toMatchObject({ code: 'INPUT_INVALID', message: expect.stringContaining('no price') })
    await expect(
      threads.create({ agent: 'solo', budget: { tree: { maxCostUsd: 1 } } }),
    ).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  })
})

test('every time that the API gives is ISO 8601 text', async () => {
  const { threads, changes } = await start({ agents: [family()] })
  const http = createHttp(runtime!, { auth: 'none' })
  const { id } = await threads.create({ agent: 'boss' })
  const changed = changes()[Symbol.asyncIterator]()
  const next = changed.next()
  const result = await threads.run(id, 'Go')
  const shown = [
    await threads.get(id),
    ...(await threads.list()),
    result.thread,
    (await next).value!,
    await threads.update(id, { title: 'T' }),
    await threads.fork(id),
  ]
  for (const { createdAt, updatedAt, wakeAt } of shown) {
    expect(createdAt).toMatch(ISO)
    expect(updatedAt).toMatch(ISO)
    if (wakeAt !== null) expect(wakeAt).toMatch(ISO)
  }
  const client = createClient({
    url: 'http://localhost',
    fetch: (input, init) => http.fetch(new Request(input, init)),
  })
  expect(await client.threads.get(id)).toEqual(await threads.get(id))
  for (const { createdAt } of await client.threads.children(id)) expect(createdAt).toMatch(ISO)
  await changed.return?.()
})
