import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agent as defineUapAgent } from '@skein/agents'
import { tool, type Tool } from '@skein/ai'
import { deriveTool } from '@skein/ai/engine'
import { calls, says, scripted, type ScriptPart } from '@skein/ai/testing'
import { governed, type Policy } from '@skein/governance'
import type { JsonObject } from '@skein/base'
import type { WaitingItem } from '../contract/waiting-item.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { defineEffect } from '../definitions/define-effect.ts'
import { definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import type { AnyTool } from '../definitions/tool-definition.ts'
import { createRuntime, type EmbeddedRuntime } from '../runtime.ts'
import { memoryStore } from '../store/memory-store.ts'
import { sqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { threadView } from '../view/view-fold.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-parsed-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

/** Returns a function that opens the same file each time. */
function databaseFile(): () => Store {
  const path = join(folder, `${files++}.db`)
  return () => sqliteStore({ path })
}

const secretKey = new Uint8Array(32)
const running: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of running.splice(0)) await runtime.stop()
})

interface Setup {
  readonly tools: readonly AnyTool[]
  readonly script: readonly (ScriptPart | readonly ScriptPart[])[]
  readonly store?: () => Store
  readonly policy?: Policy
  /** Whether side A is an `agent()` of `@skein/agents`. */
  readonly isUapAgent?: boolean
  readonly effects?: Parameters<typeof createRuntime>[0]['effects']
}

async function open({ tools, script, store = memoryStore, policy, isUapAgent, effects }: Setup) {
  const model = scripted(script as never)
  const sideA = isUapAgent
    ? { agent: defineUapAgent({ model, tools: tools as readonly Tool[] }) }
    : { prompt: definePrompt({ name: 'p', model, tools, prompt: '' }) }
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'support', sideA })],
    store: store(),
    secretKey,
    policy,
    effects,
  })
  running.push(runtime)
  await runtime.start()
  return { runtime, model }
}

/** What people and programs can see of the arguments of a call, after the thread has ended. */
async function seenOf({ threads }: EmbeddedRuntime, id: string) {
  const log = (await threads.events(id)).map(({ event }) => event)
  const started = log.find((event) => event.type === 'tool_execution_start')
  const audit = JSON.stringify(await threads.audit(id))
  return { log, started: started?.arguments, audit }
}

const cents = { cents: z.number().transform((n) => n * 100), all: z.boolean().default(true) }
let transforms = 0
const counted = z.object({
  cents: z.number().transform((n) => {
    transforms++
    return n * 100
  }),
  all: z.boolean().default(true),
})

function payTool(ran: unknown[], more: object = {}) {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    rollback: 'impossible',
    args: z.object(cents),
    ...more,
    execute: (_state, args) => void ran.push(args),
  } as Parameters<typeof defineTool<{ cents: number; all: boolean }, void>>[0])
}

async function oneWaiting({ inbox }: EmbeddedRuntime): Promise<WaitingItem> {
  const [item, ...more] = await inbox.list()
  expect(more).toEqual([])
  return item!
}

function approve(runtime: EmbeddedRuntime, item: WaitingItem, more: object = {}) {
  return runtime.inbox.approve({ ...item, by: 'ann', digest: item.request?.digest, ...more })
}

describe('a call that waits for approval', () => {
  test.each([false, true])(
    'shows, signs, logs and runs the value that the schema makes, and parses once (agent(): %s)',
    async (isUapAgent) => {
      const ran: unknown[] = []
      transforms = 0
      const { runtime, model } = await open({
        isUapAgent,
        tools: [payTool(ran, { args: counted })],
        script: [calls('pay', { cents: 5 }), says('Done.')],
      })
      const { id } = await runtime.threads.create({ agent: 'support' })
      const { outcome } = await runtime.threads.run(id, 'go')
      expect(outcome).toBe('waiting')
      const item = await oneWaiting(runtime)
      const made = { cents: 500, all: true }
      expect(item).toMatchObject({ arguments: made, sentArguments: { cents: 5 } })
      expect(item.request?.action.args).toEqual(made)
      expect(item.request?.sent).toEqual({ cents: 5 })
      const view = threadView(await runtime.threads.events(id))
      expect(view.items.find((one) => one.type === 'call')).toMatchObject({
        arguments: made,
        sentArguments: { cents: 5 },
      })

      await approve(runtime, item)
      const ended = await runtime.threads.settled(id)
      expect(ended.outcome).toBe('completed')
      expect(ran).toEqual([made])
      expect(transforms).toBe(1)
      const { log, started } = await seenOf(runtime, id)
      expect(started).toEqual(made)
      const said = log.find(
        (event) => event.type === 'message_added' && event.message.type === 'assistant',
      )
      expect(said).toMatchObject({ message: { toolCalls: [{ arguments: { cents: 5 } }] } })
      // The model keeps reading what it wrote itself.
      expect(JSON.stringify(model.requests[1]?.messages)).toContain('{"cents":5}')
      expect(JSON.stringify(model.requests[1]?.messages)).not.toContain('"cents":500')
    },
  )

  test('is a call that can run: invalid arguments go back to the model with all issues', async () => {
    const ran: unknown[] = []
    const { runtime, model } = await open({
      tools: [payTool(ran)],
      script: [calls('pay', { cents: 'many', all: 'yes' }), says('Sorry.')],
    })
    const { id } = await runtime.threads.create({ agent: 'support' })
    expect((await runtime.threads.run(id, 'go')).outcome).toBe('completed')
    expect(await runtime.inbox.list()).toEqual([])
    expect(ran).toEqual([])
    const told = JSON.stringify(model.requests[1]?.messages)
    expect(told).toContain('cents')
    expect(told).toContain('all')
  })

  test('runs with what a person gave instead, parsed in the same way', async () => {
    const ran: unknown[] = []
    transforms = 0
    const { runtime } = await open({
      tools: [payTool(ran, { args: counted })],
      script: [calls('pay', { cents: 5 }), says('Done.')],
    })
    const { id } = await runtime.threads.create({ agent: 'support' })
    await runtime.threads.run(id, 'go')
    const item = await oneWaiting(runtime)
    await expect(approve(runtime, item, { with: { cents: 'x' } })).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
    })
    transforms = 0
    await approve(runtime, item, { with: { cents: 7 } })
    await runtime.threads.settled(id)
    expect(ran).toEqual([{ cents: 700, all: true }])
    expect(transforms).toBe(1)
    const { log } = await seenOf(runtime, id)
    const asked = log.filter((event) => event.type === 'interrupt_opened')
    expect(asked.at(-1)).toMatchObject({
      parsed: { arguments: { cents: 700, all: true } },
      interrupt: { request: { action: { args: { cents: 700, all: true } }, sent: { cents: 7 } } },
    })
  })

  test.each([
    ['a coerced number as text', z.object({ cents: z.coerce.number() }), { cents: '7' }],
    [
      'text that the schema reads',
      z.object({ cents: z.preprocess((x) => Number(String(x).replace('c', '')), z.number()) }),
      { cents: '7c' },
    ],
    ['a key that the schema drops', z.object({ cents: z.number() }), { cents: 7, more: 1 }],
  ])('a person may give what a model may send: %s', async (_, args, given) => {
    const ran: unknown[] = []
    const { runtime } = await open({
      tools: [payTool(ran, { args })],
      script: [calls('pay', { cents: 5 }), says('Done.')],
    })
    const { id } = await runtime.threads.create({ agent: 'support' })
    await runtime.threads.run(id, 'go')
    await approve(runtime, await oneWaiting(runtime), { with: given })
    await runtime.threads.settled(id)
    expect(ran).toEqual([{ cents: 7 }])
  })

  test('several held-back calls of a message are parsed once each', async () => {
    const ran: unknown[] = []
    transforms = 0
    const { runtime } = await open({
      tools: [payTool(ran, { args: counted })],
      script: [[calls('pay', { cents: 1 }), calls('pay', { cents: 2 })], says('Done.')],
    })
    const { id } = await runtime.threads.create({ agent: 'support' })
    await runtime.threads.run(id, 'go')
    const items = await runtime.inbox.list()
    for (const item of items) await approve(runtime, item)
    await runtime.threads.settled(id)
    expect(ran).toEqual([
      { cents: 100, all: true },
      { cents: 200, all: true },
    ])
    expect(transforms).toBe(2)
  })
})

describe('a definition that changes between the question and the run', () => {
  test('asks again if it makes other arguments of what the model sent', async () => {
    const ran: unknown[] = []
    const store = databaseFile()
    const before = await open({
      tools: [payTool(ran, { args: z.object({ cents: z.number() }) })],
      script: [calls('pay', { cents: 5 })],
      store,
    })
    const { id } = await before.runtime.threads.create({ agent: 'support' })
    await before.runtime.threads.run(id, 'go')
    const asked = await oneWaiting(before.runtime)
    await before.runtime.stop()
    running.pop()

    const args = z.object({ cents: z.number(), all: z.boolean().default(true) })
    const after = await open({ tools: [payTool(ran, { args })], script: [says('Done.')], store })
    await approve(after.runtime, asked)
    const waited = await after.runtime.threads.settled(id)
    expect(waited.outcome).toBe('waiting')
    expect(ran).toEqual([])
    const again = await oneWaiting(after.runtime)
    expect(again.arguments).toEqual({ cents: 5, all: true })
    expect(again.request?.digest).not.toBe(asked.request?.digest)
    await approve(after.runtime, again)
    await after.runtime.threads.settled(id)
    expect(ran).toEqual([{ cents: 5, all: true }])
  })

  test('runs if it makes the same of it', async () => {
    const ran: unknown[] = []
    const store = databaseFile()
    const before = await open({
      tools: [payTool(ran, { args: z.object({ cents: z.number() }) })],
      script: [calls('pay', { cents: 5 })],
      store,
    })
    const { id } = await before.runtime.threads.create({ agent: 'support' })
    await before.runtime.threads.run(id, 'go')
    const asked = await oneWaiting(before.runtime)
    await before.runtime.stop()
    running.pop()

    const args = z.object({ cents: z.number().max(100).describe('The amount.') })
    const after = await open({ tools: [payTool(ran, { args })], script: [says('Done.')], store })
    await approve(after.runtime, asked)
    expect((await after.runtime.threads.settled(id)).outcome).toBe('completed')
    expect(ran).toEqual([{ cents: 5 }])
  })

  test('a restart with the same definition runs the logged value and parses nothing again', async () => {
    const ran: unknown[] = []
    const store = databaseFile()
    const args = z.object({ key: z.string().default(() => `key ${Math.random()}`) })
    const before = await open({
      tools: [payTool(ran, { args })],
      script: [calls('pay', {})],
      store,
    })
    const { id } = await before.runtime.threads.create({ agent: 'support' })
    await before.runtime.threads.run(id, 'go')
    const asked = await oneWaiting(before.runtime)
    await before.runtime.stop()
    running.pop()
    const after = await open({ tools: [payTool(ran, { args })], script: [says('Done.')], store })
    await approve(after.runtime, asked)
    expect((await after.runtime.threads.settled(id)).outcome).toBe('completed')
    expect(ran).toEqual([asked.arguments])
  })
})

const schemas = {
  Zod: z.object({ n: z.string().transform(Number), unit: z.string().default('km') }),
  'Zod, asynchronous': z.object({
    n: z.string().transform(async (text) => Number(text)),
    unit: z.string().default('km'),
  }),
  Valibot: toStandardJsonSchema(
    v.object({
      n: v.pipe(v.string(), v.transform(Number), v.number()),
      unit: v.optional(v.string(), 'km'),
    }),
  ),
  ArkType: type({ n: 'string.numeric.parse', unit: 'string = "km"' }),
}

describe.each(Object.entries(schemas))(
  'the policy, raise, rollback and evidence (%s)',
  (_, args) => {
    const made = { n: 7, unit: 'km' }
    const makers: Readonly<
      Record<string, (run: (args: unknown) => unknown, see: (args: unknown) => void) => AnyTool>
    > = {
      defineTool: (run, see) =>
        defineTool({
          name: 'move',
          description: 'Moves.',
          risk: 'write_low_risk',
          args: args as typeof schemas.Zod,
          raise: (given) => (see(given), 'write_low_risk'),
          rollback: (given) => (see(given), { type: 'tool_call', target: 'move', payload: {} }),
          evidence: (_result, given) => (see(given), { type: 'tool_result', payload: null }),
          execute: (_state, given) => run(given) as string,
        }),
      'tool()': (run) => moveTool(run),
      'a spread of tool()': (run) => ({ ...moveTool(run) }),
      'a wrapper that replaces run': (run) => {
        const own = moveTool(run)
        return { ...own, run: (given: never, context: never) => own.run(given, context) }
      },
      'a wrapper with the four fields': (run) => {
        const { name, description, parameters, run: inner } = moveTool(run)
        return { name, description, parameters, run: inner } as Tool
      },
      'deriveTool()': (run) => deriveTool(moveTool(run), { description: 'Other.' }),
      'governed()': (run, see) =>
        governed(moveTool(run), {
          risk: 'write_low_risk',
          raise: (given) => (see(given), 'write_low_risk'),
          rollback: (given) => (see(given), { type: 'tool_call', target: 'move', payload: {} }),
        }) as unknown as AnyTool,
    }
    function moveTool(run: (args: unknown) => unknown) {
      return tool({
        name: 'move',
        description: 'Moves.',
        risk: 'write_low_risk',
        parameters: args as typeof schemas.Zod,
        run: (given) => run(given) as string,
      })
    }

    test.each(Object.keys(makers))('see what runs: %s', async (maker) => {
      const ran: unknown[] = []
      const seen: unknown[] = []
      const judged: unknown[] = []
      const move = makers[maker]!(
        (given) => (ran.push(given), 'ok'),
        (given) => seen.push(given),
      )
      const policy: Policy = {
        id: 'watch',
        hash: `sha256:${'0'.repeat(64)}`,
        decide: (action) => (judged.push(action.args), { effect: 'allow' }),
      }
      const { runtime } = await open({
        tools: [move],
        policy,
        script: [calls('move', { n: '7' }), says('Done.')],
      })
      const { id } = await runtime.threads.create({ agent: 'support' })
      expect((await runtime.threads.run(id, 'go')).outcome).toBe('completed')
      expect(ran).toEqual([made])
      expect(judged).toEqual([made])
      for (const one of seen) expect(one).toEqual(made)
      expect((await seenOf(runtime, id)).started).toEqual(made)
    })
  },
)

test('a wrapper that copies the arguments does not have them transformed a second time', async () => {
  const ran: unknown[] = []
  const inner = tool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_low_risk',
    parameters: z.object(cents),
    run: (args) => void ran.push(args),
  })
  const copying = {
    ...inner,
    run: (args: JsonObject, context: never) => inner.run({ ...args }, context),
  } as unknown as AnyTool
  const { runtime, model } = await open({
    tools: [copying],
    script: [calls('pay', { cents: 5 }), says('Done.')],
  })
  const { id } = await runtime.threads.create({ agent: 'support' })
  await runtime.threads.run(id, 'go')
  expect(ran).toEqual([])
  expect(JSON.stringify(model.requests[1]?.messages)).toContain('changed after they were parsed')
})

test.each([
  ['Date', z.object({ a: z.string().transform((text) => new Date(text)) })],
  ['Map', z.object({ a: z.string().transform(() => new Map()) })],
  ['bigint', z.object({ a: z.string().transform(() => 5n) })],
  ['class', z.object({ a: z.string().transform(() => new (class Money {})()) })],
  ['number', z.object({ a: z.string().transform(() => Number.NaN) })],
])('arguments that are not JSON (%s) fail before anybody is asked', async (_, args) => {
  const ran: unknown[] = []
  const { runtime, model } = await open({
    tools: [payTool(ran, { args })],
    script: [calls('pay', { a: '2026-01-01' }), says('Sorry.')],
  })
  const { id } = await runtime.threads.create({ agent: 'support' })
  expect((await runtime.threads.run(id, 'go')).outcome).toBe('completed')
  expect(ran).toEqual([])
  expect(JSON.stringify(model.requests[1]?.messages)).toMatch(/not JSON: a is/)
})

test('a queued tool and a governed effect are shown and run as parsed', async () => {
  const ran: unknown[] = []
  const pay = payTool(ran)
  const later = defineEffect({
    name: 'later',
    risk: 'write_high_risk',
    args: z.object(cents),
    execute: (_state, args) => void ran.push(['later', args]),
  })
  const schedule = defineTool({
    name: 'schedule',
    description: 'Schedules.',
    risk: 'read_only',
    uses: [pay],
    execute: (state) => {
      state.queueTool('pay', { cents: 5 })
      state.scheduleEffect('later', { cents: 6 }, 0)
    },
  })
  const { runtime } = await open({
    tools: [schedule, pay],
    effects: [later],
    script: [calls('schedule', {}), says('Done.'), says('Noted.')],
  })
  const { id } = await runtime.threads.create({ agent: 'support' })
  await runtime.threads.run(id, 'go')
  await expect.poll(async () => (await runtime.inbox.list()).length).toBe(2)
  for (const item of await runtime.inbox.list()) {
    const { cents: sent } = item.sentArguments as { cents: number }
    expect(item.arguments).toEqual({ cents: sent * 100, all: true })
    await approve(runtime, item)
  }
  await expect.poll(() => ran.length).toBe(2)
  expect(ran).toContainEqual({ cents: 500, all: true })
  expect(ran).toContainEqual(['later', { cents: 600, all: true }])
})
