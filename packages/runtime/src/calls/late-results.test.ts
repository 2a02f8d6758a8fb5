import { afterEach, describe, expect, test } from 'vitest'
import { agent as makeAgent } from '@skein/agents'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  memoryStore,
  type RuntimeEvent,
  sqliteStore,
  type Store,
} from '../index.ts'
import { threadView } from '../view/index.ts'

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function until<T>(find: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let n = 0; n < 500; n++) {
    const found = await find()
    if (found !== undefined && found !== false) return found
    await later(10)
  }
  throw new Error('It did not happen in time.')
}

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 }).catch(() => {})
})

interface Options {
  readonly risk?: 'write_low_risk' | 'write_high_risk'
  readonly timeoutMs?: number
  readonly probe?: () => boolean
  readonly idempotent?: boolean
  readonly undoes?: boolean
  readonly isStrategy?: boolean
  readonly store?: Store
  readonly owner?: string
  readonly leaseMs?: number
  /** How the write ends when it is let go. */
  readonly fails?: boolean
}

/** What happened outside, whatever the log says. */
class Ledger {
  readonly done: string[] = []
  #release: (() => void)[] = []
  started = 0

  /** A write that takes effect only when it is let go, and that ignores its signal. */
  async write(what: string): Promise<void> {
    this.started++
    await new Promise<void>((resolve) => this.#release.push(resolve))
    this.done.push(what)
  }

  letGo(): void {
    for (const release of this.#release.splice(0)) release()
  }
}

/** A thread whose model makes two payments in one message; the first one runs. */
async function inFirstPayment(options: Options = {}) {
  const { risk = 'write_low_risk', undoes = false, isStrategy = false, fails = false } = options
  const { store = memoryStore(), timeoutMs, probe, idempotent } = options
  const ledger = new Ledger()
  const undo = defineTool({
    name: 'undo',
    description: 'Undoes.',
    args: z.object({ n: z.number() }),
    risk: 'write_low_risk',
    rollback: 'impossible',
    execute: (_: unknown, { n }: { n: number }) => void ledger.done.push(`undo ${n}`),
  } as never)
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    args: z.object({ n: z.number() }),
    risk,
    timeoutMs,
    probe,
    idempotent,
    rollback: undoes ? { tool: 'undo', args: (args: unknown) => args } : 'impossible',
    execute: async (_: unknown, { n }: { n: number }) => {
      await ledger.write(`pay ${n}`)
      if (fails) throw new Error('The bank says no.')
      return `paid ${n}`
    },
  } as never)
  const model = scripted(({ messages }) =>
    messages.some(({ type }) => type === 'assistant')
      ? says('Ok.')
      : [calls('pay', { n: 1 }), calls('pay', { n: 2 })],
  )
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: [pay, undo] })
  const sideA = isStrategy
    ? {
        agent: makeAgent({
          model,
          tools: [{ ...(pay as object), sequential: true }, undo] as never,
        }),
      }
    : { prompt }
  const rules = { name: 'r', needs: [], verifiers: [], acceptInDoubt: false }
  const definition = { name: 'a', sideA, ...(undoes && { taskClass: rules }) }
  const open = async (owner: string): Promise<EmbeddedRuntime> => {
    const runtime = await createRuntime({
      agents: [defineAgent(definition as never)],
      store,
      owner,
      limits: { stopGraceMs: 60, leaseMs: options.leaseMs ?? 30_000 },
      keys: await keys(),
      onError: () => {},
    })
    opened.push(runtime)
    await runtime.start()
    return runtime
  }
  const runtime = await open('one')
  const { id } = await runtime.threads.create({ agent: 'a' })
  const running = runtime.threads.run(id, 'go').catch(() => undefined)
  if (risk === 'write_high_risk')
    for (const one of await until(async () => {
      const { waiting } = await runtime.inbox.page()
      return waiting.length >= 2 ? waiting : undefined
    }))
      await runtime.inbox.approve({ ...one, by: 'ann', digest: one.request!.digest })
  await until(() => ledger.started === 1 || undefined)
  const events = async (of = runtime): Promise<RuntimeEvent[]> =>
    (await of.threads.events(id)).map(({ event }) => event)
  const ends = async (of = runtime) =>
    (await events(of)).filter(
      (event): event is Extract<RuntimeEvent, { type: 'tool_execution_end' }> =>
        event.type === 'tool_execution_end',
    )
  const late = (of = runtime) =>
    until(async () => (await events(of)).find(({ type }) => type === 'late_result'))
  const rest = () =>
    until(async () => {
      const { lifecycle } = await runtime.threads.get(id)
      return lifecycle !== 'running' && lifecycle !== 'stopping' && lifecycle !== 'queued'
        ? lifecycle
        : undefined
    })
  const shown = (n = -1): string => JSON.stringify(model.requests.at(n)?.messages)
  return { runtime, id, ledger, model, running, events, ends, late, rest, shown, open, store }
}

type Scene = Awaited<ReturnType<typeof inFirstPayment>>

let made:
  ReturnType<typeof import('../governance/governance-keys.ts').openGovernanceKeys> | undefined
/** One set of keys, so that two nodes accept each other's approvals. */
async function keys() {
  const { openGovernanceKeys } = await import('../governance/governance-keys.ts')
  made ??= openGovernanceKeys({ store: memoryStore() })
  return made
}

/** How a call can end before its tool has. After each the thread has one more message from a person. */
const doors: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  stop: ({ runtime, id }) => runtime.threads.stop(id),
  terminate: ({ runtime, id }) => runtime.threads.terminate(id),
  'a message that cuts': ({ runtime, id }) =>
    runtime.threads.send(id, { text: 'Wait!', ifBusy: 'cut' }),
  'a message that restarts': ({ runtime, id }) =>
    runtime.threads.send(id, { text: 'Wait!', ifBusy: 'restart' }),
}

for (const [name, openStore] of [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
] as const)
  describe(`a write that outlasts its grace (${name})`, () => {
    for (const isStrategy of [false, true])
      for (const [door, open] of Object.entries(doors))
        test(`after ${door} (${isStrategy ? 'agent()' : 'prompt'}): the log says what the ledger says`, async () => {
          const scene = await inFirstPayment({ store: openStore(), isStrategy })
          const { runtime, id, ledger, ends, late, rest, events, shown } = scene
          await open(scene)
          await until(async () => (await ends()).length === 2 || undefined)
          expect(await ends()).toMatchObject([
            { toolCallId: 'call_1', outcome: 'unknown' },
            { outcome: 'interrupted', result: expect.stringMatching(/was not run\.$/) },
          ])
          expect(ledger.done).toEqual([])
          const before = await rest()
          const requests = scene.model.requests.length
          ledger.letGo()
          expect(await late()).toMatchObject({ outcome: 'success', result: 'paid 1' })
          expect(ledger.done).toEqual(['pay 1'])
          expect(await rest()).toBe(before)
          await runtime.idle()
          expect(scene.model.requests.length).toBe(requests) // the result wakes nothing
          expect((await ends())[0]).toMatchObject({ outcome: 'unknown' }) // what was said stays
          const log = (await events()).map((event, place) => ({ seq: place + 1, event }))
          expect(JSON.stringify(threadView(log))).toContain('"late":{')
          if (door === 'terminate') return
          await runtime.threads.run(id, 'and now?')
          expect(shown()).toContain('has ended after all. It took effect. Its result: paid 1')
          expect(ledger.started).toBe(1)
        })

    test('after its time limit: the session is notified with its next request', async () => {
      const { runtime, id, ledger, ends, late, shown, running } = await inFirstPayment({
        store: openStore(),
        timeoutMs: 30,
      })
      await until(async () => (await ends()).length === 1 || undefined)
      expect(await ends()).toMatchObject([{ outcome: 'unknown' }])
      await until(() => ledger.started === 2 || undefined)
      ledger.letGo()
      await late()
      await running
      await runtime.threads.run(id, 'and now?')
      expect(shown()).toContain('whose outcome was unknown, has ended after all')
      expect(ledger.done).toEqual(['pay 1', 'pay 2'])
    })
  })

describe('a high-risk write in doubt', () => {
  const risk = 'write_high_risk'
  for (const [door, open] of Object.entries(doors).filter(
    ([name]) => name !== 'a message that restarts',
  ))
    test(`after ${door} is asked about, and a person's answer is news`, async () => {
      const scene = await inFirstPayment({ risk })
      const { runtime, id, ledger, ends, rest, shown } = scene
      await open(scene)
      await until(async () => (await ends()).length === 2 || undefined)
      await rest()
      const { waiting } = await runtime.inbox.page()
      expect(waiting).toMatchObject([{ threadId: id, kind: 'in_doubt', toolName: 'pay' }])
      expect((await runtime.threads.get(id)).waiting).toBe(1)
      await runtime.inbox.settle({ ...waiting[0]!, by: 'ann' }, 'applied')
      expect((await runtime.inbox.page()).waiting).toEqual([])
      expect((await runtime.threads.get(id)).waiting).toBe(0)
      expect(ledger.started).toBe(1)
      const audit = JSON.stringify(await runtime.store.audit(id))
      if (door !== 'a message that cuts') expect(audit).toContain('skein:finding')
      if (door === 'terminate') return
      await runtime.threads.run(id, 'and now?')
      expect(shown()).toContain('took effect. A person has found that out.')
    })

  test('is settled by its late result, which closes the question', async () => {
    const { runtime, id, ledger, rest, late } = await inFirstPayment({ risk })
    await runtime.threads.stop(id)
    await rest()
    const [item] = (await runtime.inbox.page()).waiting
    ledger.letGo()
    await late()
    expect((await runtime.inbox.page()).waiting).toEqual([])
    expect((await runtime.threads.get(id)).waiting).toBe(0)
    await expect(runtime.inbox.settle({ ...item!, by: 'ann' }, 'absent')).rejects.toMatchObject({
      code: 'INTERRUPT_NOT_FOUND',
    })
  })

  test('continues the thread that waited only for the question', async () => {
    const scene = await inFirstPayment({ risk, timeoutMs: 30 })
    const { runtime, ledger, ends } = scene
    await until(
      async () =>
        (await runtime.inbox.page()).waiting.some((one) => one.kind === 'in_doubt') || undefined,
    )
    ledger.letGo()
    await until(() => ledger.started === 2 || undefined)
    expect((await ends())[0]).toMatchObject({ outcome: 'success', result: 'paid 1' })
    ledger.letGo()
    await until(async () => (await ends()).length === 2 || undefined)
    expect(ledger.done).toEqual(['pay 1', 'pay 2'])
  })

  test('that a person took for absent is not run again when its result comes', async () => {
    const { runtime, ledger, ends } = await inFirstPayment({ risk, timeoutMs: 30 })
    const asked = await until(async () =>
      (await runtime.inbox.page()).waiting.find((one) => one.kind === 'in_doubt'),
    )
    await runtime.inbox.settle({ ...asked, by: 'ann' }, 'absent')
    const again = await until(async () =>
      (await runtime.inbox.page()).waiting.find((one) => one.kind === 'approval'),
    )
    ledger.letGo()
    await until(async () => (await ends()).length >= 1 || undefined)
    expect((await ends())[0]).toMatchObject({ outcome: 'success', result: 'paid 1' })
    await expect(
      runtime.inbox.approve({ ...again, by: 'ann', digest: again.request!.digest }),
    ).rejects.toMatchObject({ name: 'RuntimeError' })
    expect(ledger.done).toEqual(['pay 1'])
  })

  test('of which a person said that it had no effect: the contradiction is news', async () => {
    const { runtime, id, ledger, rest, late, shown } = await inFirstPayment({ risk })
    await runtime.threads.stop(id)
    await rest()
    const [item] = (await runtime.inbox.page()).waiting
    await runtime.inbox.settle({ ...item!, by: 'ann' }, 'absent')
    ledger.letGo()
    await late()
    await runtime.threads.run(id, 'and now?')
    expect(shown()).toContain('had no effect. A person has found that out.')
    expect(shown()).toContain('has ended after all. It took effect. Its result: paid 1')
  })
})

test('a late failure is news too, and leaves out nothing that the tool said', async () => {
  const { runtime, id, ledger, rest, late, shown } = await inFirstPayment({ fails: true })
  await runtime.threads.stop(id)
  await rest()
  ledger.letGo()
  expect(await late()).toMatchObject({ outcome: 'failed', result: 'The bank says no.' })
  await runtime.threads.run(id, 'and now?')
  expect(shown()).toContain('has ended after all. It failed: The bank says no.')
})

test('a late result says that what the tool changed in the thread was not stored', async () => {
  const ledger = new Ledger()
  const book = defineTool({
    name: 'book',
    description: 'Books.',
    risk: 'write_low_risk',
    timeoutMs: 10,
    async execute(state) {
      state.setValue('booked', true)
      await ledger.write('book')
      return 'booked'
    },
  })
  const model = scripted([calls('book', {}), says('Ok.')])
  const prompt = definePrompt({ name: 'p', prompt: '', model, tools: [book] })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'a', sideA: { prompt } })],
    limits: { stopGraceMs: 10 },
  })
  opened.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.run(id, 'go')
  ledger.letGo()
  const { event } = await until(async () =>
    (await runtime.threads.events(id)).find(({ event: { type } }) => type === 'late_result'),
  )
  const result = 'booked\n\n[What the tool changed in the thread was not stored.]'
  expect(event).toMatchObject({ outcome: 'success', result })
  expect(await runtime.threads.values.get(id, 'booked')).toBeUndefined()
})

test('a shutdown leaves a write open, and its late result counts in the next process', async () => {
  const store = memoryStore()
  const close = store.close.bind(store)
  store.close = async () => {} // both processes use it
  const scene = await inFirstPayment({ store })
  await scene.runtime.stop({ graceMs: 0 })
  expect(
    await scene.store
      .events(scene.id)
      .then((log) => log.filter(({ event }) => event.type === 'tool_execution_end')),
  ).toEqual([])
  scene.ledger.letGo()
  await until(
    async () =>
      (await store.events(scene.id)).some(({ event }) => event.type === 'late_result') || undefined,
  )
  const two = await scene.open('two')
  await until(() => scene.ledger.started === 2 || undefined)
  scene.ledger.letGo()
  await until(async () => (await scene.ends(two)).length === 2 || undefined)
  expect(await scene.ends(two)).toMatchObject([
    { outcome: 'success', result: 'paid 1' },
    { outcome: 'success', result: 'paid 2' },
  ])
  expect(scene.ledger.done).toEqual(['pay 1', 'pay 2'])
  await close()
})

test('a shutdown waits for a write that ends within its grace', async () => {
  const store = memoryStore()
  const close = store.close.bind(store)
  store.close = async () => {}
  const scene = await inFirstPayment({ store })
  const stopping = scene.runtime.stop({ graceMs: 10 })
  await later(40)
  scene.ledger.letGo()
  await stopping
  const ends = (await store.events(scene.id)).filter(
    ({ event }) => event.type === 'tool_execution_end',
  )
  expect(ends).toMatchObject([{ event: { outcome: 'success', result: 'paid 1' } }])
  await close()
})

test('a late result is recorded once, and not at all in a thread that was erased', async () => {
  const { runtime, id, ledger, rest, events } = await inFirstPayment()
  await runtime.threads.stop(id)
  await rest()
  await runtime.threads.erase(id)
  ledger.letGo()
  await later(50)
  expect((await events()).filter(({ type }) => type === 'late_result')).toEqual([])
})

describe('effects', () => {
  async function charging(
    options: object,
    door: (runtime: EmbeddedRuntime, id: string) => Promise<unknown>,
  ) {
    const ledger = new Ledger()
    const charge = defineEffect({
      name: 'charge',
      args: z.object({}),
      idempotent: false,
      retry: { attempts: 3, backoffMs: 10 },
      ...options,
      execute: () => ledger.write('charge'),
    })
    const prompt = definePrompt({ name: 'p', prompt: 'P.', model: scripted(() => says('Yes.')) })
    const runtime = await createRuntime({
      agents: [defineAgent({ name: 'a', sideA: { prompt } })],
      effects: [charge],
      limits: { stopGraceMs: 40 },
      onError: () => {},
    })
    opened.push(runtime)
    await runtime.start()
    const { id } = await runtime.threads.create({ agent: 'a' })
    await runtime.threads.effects.schedule(id, 'charge', {}, 0)
    await until(() => ledger.started === 1 || undefined)
    await door(runtime, id)
    const events = async (): Promise<RuntimeEvent[]> =>
      (await runtime.threads.events(id)).map(({ event }) => event)
    return { runtime, id, ledger, events }
  }

  test('an attempt that ends after its time limit and its grace is recorded, and not repeated', async () => {
    const { ledger, events } = await charging({ timeoutMs: 20 }, async () => {})
    const ended = () =>
      until(async () => (await events()).find(({ type }) => type === 'effect_ended'))
    expect(await ended()).toMatchObject({ outcome: 'unknown' })
    ledger.letGo()
    expect(
      await until(async () => (await events()).find(({ type }) => type === 'late_result')),
    ).toMatchObject({
      toolName: 'charge',
      outcome: 'success',
    })
    await later(60)
    expect(ledger).toMatchObject({ started: 1, done: ['charge'] })
  })

  test('a person is asked about one of high risk, and its late result is the answer', async () => {
    const high = { timeoutMs: 20, risk: 'write_high_risk' }
    const prompted = charging(high, async () => {})
    const runtime = await until(() => opened.at(-1))
    const approval = await until(async () => (await runtime.inbox.page()).waiting[0])
    await runtime.inbox.approve({ ...approval, by: 'ann', digest: approval.request!.digest })
    const { ledger, events } = await prompted
    await until(async () =>
      (await runtime.inbox.page()).waiting.find((one) => one.kind === 'in_doubt'),
    )
    ledger.letGo()
    const ended = await until(async () =>
      (await events()).find(({ type }) => type === 'effect_ended'),
    )
    expect(ended).toMatchObject({ outcome: 'done', settledBy: 'result' })
    expect((await runtime.inbox.page()).waiting).toEqual([])
    expect(ledger).toMatchObject({ started: 1, done: ['charge'] })
  })

  test('the end of its thread gives it the same grace', async () => {
    const { ledger, events } = await charging({}, async (runtime, id) => {
      await runtime.threads.terminate(id)
    })
    expect((await events()).find(({ type }) => type === 'effect_ended')).toMatchObject({
      outcome: 'unknown',
    })
    ledger.letGo()
    await until(async () => (await events()).find(({ type }) => type === 'late_result'))
  })
})
