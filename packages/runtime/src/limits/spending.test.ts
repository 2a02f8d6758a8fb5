import { says, scripted, type ScriptPart } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  memoryStore,
  type AgentDefinition,
  type EmbeddedRuntime,
  type RuntimeOptions,
  type Store,
} from '@skein/runtime'
import { manualTimers } from '../testing/simulation.ts'

const HOUR = 3_600_000
const START = Date.parse('2026-01-01T00:00:00.000Z')
/** The largest reservation of the agents below: some input, and 1000 tokens of output at 1000 dollars a million. */
const RESERVED = 1.2

const running: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of running.splice(0)) await runtime.stop({ graceMs: 0 })
})

/** Makes an answer that costs this much: 1000 tokens of output cost one dollar. */
function costing(usd: number): ScriptPart {
  const outputTokens = Math.round(usd * 1000)
  return { do: 'stop', usage: { inputTokens: 0, outputTokens, totalTokens: outputTokens } }
}

function agentOf(
  answer: () => readonly ScriptPart[] | Promise<readonly ScriptPart[]>,
): AgentDefinition {
  const model = defineModel({
    name: 'm',
    model: scripted(() => answer()),
    inputPrice: 1000,
    outputPrice: 1000,
    capabilities: { maxOutputTokens: 1000 },
  })
  const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model })
  return defineAgent({ name: 'solo', sideA: { prompt } })
}

async function start(options: RuntimeOptions): Promise<EmbeddedRuntime> {
  const runtime = await createRuntime({ keepsSecretKeyWithData: true, ...options })
  running.push(runtime)
  await runtime.start()
  return runtime
}

/** A runtime in virtual time. */
async function virtual(options: RuntimeOptions) {
  const clock = manualClock(START)
  const timers = manualTimers(clock)
  const runtime = await start({ store: memoryStore({ clock }), ...options, clock, timers })
  const create = async (owner?: string) =>
    (await runtime.threads.create({ agent: 'solo', tenant: 'acme', owner })).id
  return { runtime, timers, create, ...runtime }
}

describe('a limit of spending', () => {
  test('what was accepted waits for the next period, visibly, and is then answered', async () => {
    let asked = 0
    const agent = agentOf(() => (asked++, [says('Hi.'), costing(1)]))
    const spending = [
      { per: 'tenant', periodMs: HOUR, maxCostUsd: 2, newMessages: 'queue' },
    ] as const
    const { timers, threads, create, limits } = await virtual({ agents: [agent], spending })
    const ids = [await create(), await create(), await create()]
    for (const id of ids) await threads.send(id, 'Hello')
    await timers.advance(60_000)
    expect(asked).toBe(2)
    const waiting = (await Promise.all(ids.map((id) => threads.get(id)))).filter(
      ({ lifecycle }) => lifecycle === 'waiting',
    )
    expect(waiting).toHaveLength(1)
    expect(waiting[0]?.wakeAt).toBe('2026-01-01T01:00:00.000Z')
    const events = (await threads.events(waiting[0]!.id)).map(({ event }) => event)
    expect(events.findLast(({ type }) => type === 'step_failed')).toMatchObject({
      code: 'SPENDING_LIMIT',
      message: 'The tenant "acme" may use 2 US dollars of models until 2026-01-01T01:00:00.000Z.',
      attempt: 0,
      retryAt: '2026-01-01T01:00:00.000Z',
    })
    expect(await limits.report({ tenant: 'acme' })).toEqual({
      retention: [],
      spending: [
        {
          per: 'tenant',
          tenant: 'acme',
          from: '2026-01-01T00:00:00.000Z',
          until: '2026-01-01T01:00:00.000Z',
          spent: { costUsd: 2, tokens: 2000, inferences: 2 },
          reserved: { costUsd: 0, tokens: 0, inferences: 0 },
          max: { costUsd: 2 },
          refused: 0,
          delayed: 1,
        },
      ],
    })
    expect((await limits.report({ tenant: 'other' })).spending).toEqual([])
    await timers.advance(HOUR)
    expect(asked).toBe(3)
    expect((await threads.get(waiting[0]!.id)).lifecycle).toBe('idle')
  })

  test('new messages are refused with the time to wait, and counted', async () => {
    const agent = agentOf(() => [says('Hi.'), costing(1)])
    const spending = [{ per: 'user', periodMs: HOUR, maxInferences: 1 }] as const
    const { timers, threads, create, limits } = await virtual({ agents: [agent], spending })
    const id = await create('ann')
    await threads.send(id, 'Hello')
    await timers.advance(60_000)
    const seq = (await threads.get(id)).seq
    await expect(threads.send(id, 'Again')).rejects.toMatchObject({
      code: 'SPENDING_LIMIT',
      retryAfterMs: HOUR - 60_000,
    })
    const message = 'Me too'
    await expect(
      threads.create({ agent: 'solo', tenant: 'acme', owner: 'ann', message }),
    ).rejects.toMatchObject({ code: 'SPENDING_LIMIT' })
    expect((await threads.get(id)).seq).toBe(seq)
    // Other users of the tenant, and threads without a user, are not affected.
    for (const other of [await create('bob'), await create()]) await threads.send(other, 'Hello')
    const { spending: accounts } = await limits.report()
    expect(accounts).toContainEqual(expect.objectContaining({ user: 'ann', refused: 2 }))
    expect([...(await limits.totals())]).toEqual([['refused', 2]])
    await timers.advance(HOUR)
    await threads.send(id, 'Again')
  })

  test('a rule that names a tenant takes the place of the rule for all', async () => {
    const agent = agentOf(() => [says('Hi.'), costing(1)])
    const spending = [
      { per: 'tenant', periodMs: HOUR, maxTokens: 1 },
      { per: 'tenant', periodMs: HOUR, maxTokens: 5000, tenants: ['big'] },
    ] as const
    const { timers, threads } = await virtual({ agents: [agent], spending })
    const small = await threads.create({ agent: 'solo', tenant: 'small', message: 'Hello' })
    const big = await threads.create({ agent: 'solo', tenant: 'big', message: 'Hello' })
    await timers.advance(60_000)
    await expect(threads.send(small.id, 'Again')).rejects.toMatchObject({ code: 'SPENDING_LIMIT' })
    await threads.send(big.id, 'Again')
  })

  test('a request that the vendor refused costs nothing; counters of old periods are removed', async () => {
    const { UPPError } = await import('@skein/ai')
    const refusal = {
      code: 'AUTHENTICATION_FAILED',
      provider: 'scripted',
      modality: 'llm',
    } as const
    const agent = agentOf(() => [{ do: 'fail', error: new UPPError('No.', refusal) }])
    const spending = [{ per: 'tenant', periodMs: HOUR, maxCostUsd: 2 }] as const
    const { timers, threads, create, limits } = await virtual({ agents: [agent], spending })
    await threads.send(await create(), 'Hello')
    await timers.advance(60_000)
    expect((await limits.report()).spending).toMatchObject([
      { spent: { costUsd: 0, tokens: 0, inferences: 1 }, reserved: { costUsd: 0, tokens: 0 } },
    ])
    await timers.advance(3 * HOUR)
    expect((await limits.report()).spending).toEqual([])
  })

  test('a rule that cannot hold is refused at the start', async () => {
    const model = scripted([says('Hi.')])
    const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model })
    const agents = [defineAgent({ name: 'solo', sideA: { prompt } })]
    const rule = { per: 'tenant', periodMs: HOUR } as const
    const none = createRuntime({ agents, spending: [{ ...rule, maxCostUsd: 1 }] })
    await expect(none).rejects.toThrow(/maxCostUsd cannot hold, because scripted\/\S+ has no price/)
    for (const wrong of [rule, { ...rule, periodMs: 1, maxTokens: 1 }, { ...rule, maxTokens: -1 }])
      await expect(createRuntime({ agents, spending: [wrong] })).rejects.toMatchObject({
        code: 'INPUT_INVALID',
      })
  })
})

/** A store that a process loses when it dies: none of its calls ever returns. */
function mortal(store: Store): { readonly store: Store; kill(): void } {
  let isDead = false
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (isDead) return () => new Promise(() => {})
      return member.bind(target) as unknown
    },
  })
  return { store: proxy, kill: () => void (isDead = true) }
}

describe('what a process had reserved when it died', () => {
  /**
   * A process asks its model and dies. Later, when its lease has ended, `isPaused` lets it go on: it was not
   * dead, only very slow, and its model has answered.
   */
  async function died() {
    const clock = manualClock(START)
    const timers = manualTimers(clock)
    const store = memoryStore({ clock })
    const first = mortal(store)
    const spending = [
      { per: 'tenant', periodMs: HOUR, maxCostUsd: 1, newMessages: 'queue' },
    ] as const
    let answerLate!: (parts: readonly ScriptPart[]) => void
    const late = new Promise<readonly ScriptPart[]>((resolve) => (answerLate = resolve))
    const dying = await createRuntime({
      keepsSecretKeyWithData: true,
      agents: [agentOf(() => late)],
      spending,
      clock,
      timers: manualTimers(clock),
      store: first.store,
    })
    await dying.start()
    const { id } = await dying.threads.create({ agent: 'solo', tenant: 'acme', message: 'Hello' })
    await timers.advance(0)
    const account = async () => (await runtime.limits.report()).spending[0]
    const agents = [agentOf(() => [says('Hi.'), costing(0.3)])]
    const runtime = await createRuntime({
      keepsSecretKeyWithData: true,
      agents,
      spending,
      clock,
      timers,
      store,
    })
    running.push(runtime)
    expect(await account()).toMatchObject({ reserved: { inferences: 1 }, spent: { costUsd: 0 } })
    return { runtime, timers, first, id, account, answerLate }
  }

  test('is given back when its thread is taken up, except for its input', async () => {
    const { runtime, timers, first, id, account } = await died()
    first.kill()
    await timers.advance(120_000) // the lease of the dead process ends
    await runtime.start()
    await timers.advance(60_000)
    expect((await runtime.threads.get(id)).lifecycle).toBe('idle')
    const { spent, reserved } = (await account())!
    expect(reserved).toEqual({ costUsd: 0, tokens: 0, inferences: 0 })
    expect(spent.inferences).toBe(2)
    // The vendor has read the input of the first request; how much it wrote is not known.
    expect(spent.costUsd).toBeGreaterThan(0.3)
    expect(spent.costUsd).toBeLessThan(0.5)
    expect((await runtime.limits.report()).spending).toHaveLength(1)
  })

  test('is settled once, if the process was not dead but slow', async () => {
    const { runtime, timers, id, account, answerLate } = await died()
    await timers.advance(120_000)
    await runtime.start()
    await timers.advance(60_000)
    expect((await runtime.threads.get(id)).lifecycle).toBe('idle')
    const before = (await account())!.spent
    answerLate([says('Hi.'), costing(0.6)])
    await timers.advance(0)
    await timers.advance(0)
    const { spent, reserved } = (await account())!
    expect(reserved).toEqual({ costUsd: 0, tokens: 0, inferences: 0 })
    // Both answers are counted at their real cost: 0.3 and 0.6.
    expect(before.costUsd).toBeLessThan(0.5)
    expect(spent).toEqual({ costUsd: 0.9, tokens: 900, inferences: 2 })
  })

  test('nothing of it stays in the store after its period', async () => {
    const { runtime, timers, first } = await died()
    first.kill()
    await timers.advance(120_000)
    await runtime.start()
    await timers.advance(4 * HOUR)
    expect((await runtime.limits.report()).spending).toEqual([])
  })

  test.each([0, 0.6])(
    'nor if the process answers when its period is forgotten, at %f USD',
    async (usd) => {
      const { runtime, timers, answerLate } = await died()
      await timers.advance(120_000)
      await runtime.start()
      await timers.advance(4 * HOUR)
      answerLate([says('Hi.'), costing(usd)])
      await timers.advance(0)
      await timers.advance(0)
      expect((await runtime.limits.report()).spending).toEqual([])
    },
  )
})

describe('many threads of one tenant at once', () => {
  async function spend(count: number, maxCostUsd: number, diesAfter: number): Promise<void> {
    const begun = Date.now()
    const clock = { now: () => START + HOUR / 2 + Date.now() - begun }
    const store = memoryStore({ clock })
    const first = mortal(store)
    const spending = [{ per: 'tenant', periodMs: HOUR, maxCostUsd, newMessages: 'queue' }] as const
    let billed = 0
    let asked = 0
    /** What the vendor bills for requests of the first process. */
    let billedFirst = 0
    /** What the first process had settled when it died. */
    let settledFirst = 0
    // What is billed counts from the moment the model is asked, also if the process dies then.
    const answerTo = (isFirst: boolean) => async (): Promise<readonly ScriptPart[]> => {
      const usd = ((asked++ * 7) % 10) / 10 + 0.1
      billed += usd
      if (isFirst) billedFirst += usd
      if (asked === diesAfter) {
        first.kill()
        const [, spent = 0] =
          [...(await store.counters('limit of '))].find(([name]) =>
            name.endsWith('spent nanoUsd'),
          ) ?? []
        settledFirst = spent / 1e9
      }
      await new Promise((resolve) => setTimeout(resolve, asked % 5))
      return [says('Hi.'), costing(usd)]
    }
    const options = {
      spending,
      // A lease that ends on a busy machine aborts inferences, whose output would not be counted.
      limits: { leaseMs: diesAfter === Infinity ? 60_000 : 2_000, modelIdleMs: 2_000 },
      clock,
    }
    const before = await createRuntime({
      keepsSecretKeyWithData: true,
      ...options,
      agents: [agentOf(answerTo(true))],
      store: first.store,
    })
    const ids: string[] = []
    for (let i = 0; i < count; i++) {
      const message = `Hello ${i}`
      ids.push((await before.threads.create({ agent: 'solo', tenant: 'acme', message })).id)
    }
    await before.start()
    if (diesAfter === Infinity) running.push(before)
    else await expect.poll(() => asked, { timeout: 5_000 }).toBeGreaterThanOrEqual(1)
    const after =
      diesAfter === Infinity
        ? before
        : await start({ ...options, agents: [agentOf(answerTo(false))], store })
    const atRest = async () => {
      const heads = await Promise.all(ids.map((id) => store.head(id)))
      if (!heads.every((head) => head?.lifecycle === 'idle' || head?.lifecycle === 'waiting'))
        return false
      // A thread that waits, waits because the limit is reached. One that waits for what others have reserved is woken
      // when they give it back.
      if (diesAfter !== Infinity || heads.every((head) => head?.lifecycle === 'idle')) return true
      const [account] = (await after.limits.report()).spending
      return account!.spent.costUsd >= maxCostUsd
    }
    await expect.poll(atRest, { timeout: 15_000, interval: 50 }).toBe(true)
    if (after !== before) first.kill()
    // What a process had in flight when it died may be billed, and is not in the counters.
    const lost = diesAfter === Infinity ? 0 : billedFirst - settledFirst
    expect(billed).toBeLessThanOrEqual(maxCostUsd + RESERVED + lost)
    const [account] = (await after.limits.report()).spending
    const { spent, reserved } = account!
    expect(spent.costUsd).toBeLessThanOrEqual(maxCostUsd + RESERVED)
    // Nothing stays reserved: what died was given back when its threads were taken up.
    expect(reserved).toEqual({ costUsd: 0, tokens: 0, inferences: 0 })
    expect(spent.inferences).toBe(asked)
    if (diesAfter !== Infinity) return
    expect(spent.costUsd).toBeCloseTo(billed, 6)
  }

  test('64 threads never exceed the limit by more than one reservation', () =>
    spend(64, 12, Infinity))

  test(
    '64 threads: when the process dies and another goes on, only what died is not counted',
    () => spend(64, 12, 9),
    30_000,
  )

  test(
    'whatever the number, the limit and the moment of death',
    () =>
      fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 24 }),
          fc.integer({ min: 1, max: 12 }),
          fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 6 })),
          async (count, max, dies) => spend(count, max, dies > count ? Infinity : dies),
        ),
        { numRuns: 6 },
      ),
    60_000,
  )
})
