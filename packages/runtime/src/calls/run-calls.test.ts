import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { agent, AgentState } from '@skein/agents'
import { llm, tool, ToolResultMessage, type Message } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import { createRuntime, type EmbeddedRuntime } from '../runtime.ts'
import type { Store } from '../store/store.ts'
import { memoryStore } from '../store/memory-store.ts'
import { sqliteStore } from '../store/sqlite/sqlite-store.ts'

class Order {
  readonly id = 7
  readonly total = 12.5
  describe(): string {
    return `order ${this.id}`
  }
}

function cycle(): object {
  const order: Record<string, unknown> = { id: 7 }
  order['self'] = order
  return order
}

/** Values that are not JSON, and what the model is told; undefined where there is no way to say it. */
const values: readonly (readonly [string, () => unknown, unknown])[] = [
  ['Date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
  [
    'object with a Date',
    () => ({ id: 7, at: new Date(0) }),
    { id: 7, at: '1970-01-01T00:00:00.000Z' },
  ],
  ['Map', () => new Map([['a', 1]]), { a: 1 }],
  ['Error', () => new TypeError('no such order'), { name: 'TypeError', message: 'no such order' }],
  ['bigint', () => 12n, '12'],
  ['Uint8Array', () => new Uint8Array([0, 255]), { $bytes: 'AP8=' }],
  ['class instance', () => new Order(), { id: 7, total: 12.5 }],
  ['undefined', () => undefined, null],
  ['cycle', cycle, undefined],
  ['NaN', () => ({ score: Number.NaN }), undefined],
]

const folder = mkdtempSync(join(tmpdir(), 'skein-results-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: join(folder, `${files++}.db`) }),
}

interface Ran {
  readonly runs: number
  readonly outcome: string
  readonly ended: { readonly outcome: string; readonly result: unknown } | undefined
  readonly results: unknown
}

/** Runs one thread whose model calls a tool once. */
async function runThread(
  execute: () => unknown,
  risk: 'read_only' | 'write_low_risk',
  store: Store,
): Promise<Ran> {
  let runs = 0
  const odd = defineTool({
    name: 'odd',
    description: 'Returns anything.',
    args: z.object({}),
    risk,
    execute: () => {
      runs++
      return execute()
    },
  })
  const model = scripted([calls('odd', {}), says('Done.')])
  const prompt = definePrompt({ name: 'p', model, tools: [odd], prompt: '' })
  const support = defineAgent({ name: 'support', sideA: { prompt } })
  const runtime: EmbeddedRuntime = await createRuntime({
    agents: [support],
    store,
    secretKey: new Uint8Array(32),
  })
  await runtime.start()
  try {
    const { id } = await runtime.threads.create({ agent: 'support' })
    const { outcome } = await runtime.threads.run(id, 'go')
    const log = await runtime.threads.events(id)
    const ended = log.map(({ event }) => event).find(({ type }) => type === 'tool_execution_end')
    const results = resultsOf(model.requests[1]?.messages ?? [])
    return { runs, outcome, ended: ended as Ran['ended'], results }
  } finally {
    await runtime.stop()
  }
}

/** What the model was told about its calls. */
function resultsOf(messages: readonly Message[]): unknown {
  const message = messages.find((one) => one instanceof ToolResultMessage)
  return message?.results.map(({ result, isError = false }) => ({ result, isError }))
}

for (const [name, open] of Object.entries(stores))
  for (const risk of ['read_only', 'write_low_risk'] as const)
    describe(`${name}, ${risk}`, () => {
      test.each(values)(
        'a tool that returns a %s runs once, and the thread goes on',
        async (_, make, told) => {
          const ran = await runThread(make, risk, open())
          expect(ran).toMatchObject({ runs: 1, outcome: 'completed' })
          if (told !== undefined) {
            expect(ran.ended).toMatchObject({ outcome: 'success', result: told })
            expect(ran.results).toEqual([{ result: told, isError: false }])
            return
          }
          expect(ran.ended?.outcome).toBe('failed')
          expect(ran.results).toEqual([
            { result: expect.stringContaining('result.'), isError: true },
          ])
        },
      )
    })

test('what a tool changed is kept when its result cannot be said in JSON', async () => {
  const keep = defineTool({
    name: 'keep',
    description: 'Sets a value and returns a cycle.',
    args: z.object({}),
    risk: 'write_low_risk',
    execute: (state) => {
      state.setValue('order', 7)
      return cycle()
    },
  })
  const model = scripted([calls('keep', {}), says('Done.')])
  const prompt = definePrompt({ name: 'p', model, tools: [keep], prompt: '' })
  const runtime = await createRuntime({ agents: [defineAgent({ name: 'a', sideA: { prompt } })] })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  expect(await runtime.threads.run(id, 'go')).toMatchObject({ outcome: 'completed' })
  expect(await runtime.threads.values.get(id, 'order')).toBe(7)
  await runtime.stop()
})

test('law: whatever a tool returns or throws, llm, agent and runtime have the same history', async () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
  })
  const odd = fc.constantFrom<() => unknown>(
    ...values.map(([, make]) => make),
    () => () => 1,
    () => Symbol('x'),
    () => Promise.resolve(1),
    () => Number.NEGATIVE_INFINITY,
    () => new Response('x'),
  )
  const value = fc.oneof(
    anything.map((given) => (): unknown => given),
    odd,
  )
  await fc.assert(
    fc.asyncProperty(value, fc.boolean(), async (make, throws) => {
      const given = make()
      let runs = 0
      const execute = (): unknown => {
        runs++
        if (throws) throw given
        return given
      }
      const plain = tool({ name: 'odd', description: 'd', parameters: z.object({}), run: execute })
      const script = () => scripted([calls('odd', {}), says('Done.')])
      const alone = script()
      await llm({ model: alone, tools: [plain] }).generate('go')
      const inAgent = script()
      await agent({ model: inAgent, tools: [plain] }).generate('go', AgentState.initial())
      const histories = [alone, inAgent].map(({ requests }) =>
        resultsOf(requests[1]?.messages ?? []),
      )
      expect(runs).toBe(2)
      runs = 0
      const ran = await runThread(execute, 'read_only', memoryStore())
      expect(ran).toMatchObject({ runs: 1, outcome: 'completed' })
      expect(runs).toBe(1)
      expect([...histories, ran.results]).toEqual([ran.results, ran.results, ran.results])
    }),
    { seed: 5, numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 60 },
  )
})
