import { afterEach, describe, expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { manualClock, type ManualClock } from '@skein/base'
import type { Policy } from '@skein/governance'
import {
  createRuntime,
  defineAgent,
  defineEffect,
  definePrompt,
  type EffectContext,
  type EffectDefinition,
  type EmbeddedRuntime,
  memoryStore,
  type RuntimeEvent,
  verifyAudit,
} from '../index.ts'
import { manualTimers, type ManualTimers } from '../testing/simulation.ts'
import type { Store } from '../store/store.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

interface Stage {
  readonly store: Store
  readonly clock: ManualClock
  readonly timers: ManualTimers
  readonly errors: unknown[]
  /** Opens a runtime; it replaces the one before, which dies in the middle of what it does. */
  open(): Promise<EmbeddedRuntime>
  advance(ms: number): Promise<void>
  events<Type extends RuntimeEvent['type']>(
    type: Type,
  ): Promise<Extract<RuntimeEvent, { type: Type }>[]>
}

function stage(effects: readonly EffectDefinition[], policy?: Policy): Stage {
  const store = memoryStore()
  const kept = new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const timers = manualTimers(clock)
  const errors: unknown[] = []
  let runtime: EmbeddedRuntime | undefined
  const model = scripted(() => says('Answered.'))
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model })
  const agents = [defineAgent({ name: 'a', sideA: { prompt } })]
  return {
    store,
    clock,
    timers,
    errors,
    async open() {
      // The log of a drain that is cut off is that of a process that died: a start without an end.
      await runtime?.stop({ graceMs: 0 })
      const onError = (error: unknown): void => void errors.push(error)
      const options = { agents, effects, store: kept, clock, timers, onError, policy }
      runtime = await createRuntime(options)
      opened.push(runtime)
      await runtime.start()
      await timers.advance(0)
      return runtime
    },
    async advance(ms) {
      await timers.advance(ms)
      await timers.advance(0)
    },
    async events(type) {
      const [thread] = await store.list({})
      const events = await store.events(thread!.id)
      return events.flatMap(({ event }) => (event.type === type ? [event as never] : []))
    },
  }
}

type Effect = Partial<Omit<Parameters<typeof defineEffect>[0], 'name' | 'execute'>>

/** An effect that takes effect and then hangs, as often as `dies` says: the process dies in it. */
function charging(options: Effect = {}, dies = 1) {
  const seen: EffectContext[] = []
  const charge = defineEffect({
    name: 'charge',
    ...options,
    execute: async (_, __, context) => {
      seen.push(context)
      if (seen.length <= dies) await new Promise(() => {})
    },
  })
  return { charge, seen }
}

async function crashIn(
  it: Stage,
  when: Parameters<EmbeddedRuntime['threads']['effects']['schedule']>[3] = 0,
) {
  const first = await it.open()
  const { id } = await first.threads.create({ agent: 'a' })
  const effectId = await first.threads.effects.schedule(id, 'charge', { of: 'ann' }, when)
  await it.advance(60_000)
  expect(await it.events('effect_started')).toHaveLength(1)
  const second = await it.open()
  return { id, effectId, runtime: second }
}

describe('an effect that was running when its process died', () => {
  test('is not run again, and its log, the operator and its list say so', async () => {
    const { charge, seen } = charging()
    const it = stage([charge])
    const { runtime, id } = await crashIn(it)
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
    expect(await it.events('effect_ended')).toMatchObject([{ outcome: 'unknown' }])
    const [raised] = await it.events('error_raised')
    expect(raised).toMatchObject({ code: 'EFFECT_UNKNOWN' })
    expect(raised?.message).toContain('"charge"')
    expect(raised?.hint).toContain('idempotent')
    expect(it.errors).toMatchObject([{ code: 'EFFECT_UNKNOWN' }])
    expect(await runtime.threads.effects.list(id)).toEqual([])
  })

  test('with the calendar of a time zone goes on by the clocks of that zone', async () => {
    const { charge } = charging()
    const it = stage([charge])
    await crashIn(it, { cron: '31 * * * *', timeZone: 'Asia/Kolkata' })
    await it.advance(60 * 60_000)
    const ends = await it.events('effect_ended')
    // Kolkata is five and a half hours ahead of UTC.
    expect(ends.map(({ runAt }) => runAt?.slice(11, 16))).toEqual(['01:01', '02:01'])
  })

  test('with a calendar goes on at its next time, with another key', async () => {
    const { charge, seen } = charging()
    const it = stage([charge])
    await crashIn(it, { cron: '* * * * *' })
    await it.advance(60_000)
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 1])
    expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2)
    const ends = await it.events('effect_ended')
    expect(ends.map(({ outcome }) => outcome)).toEqual(['unknown', 'done'])
  })

  test.each([
    ['idempotent', { idempotent: true }],
    ['idempotent and tried again', { idempotent: true, retry: { attempts: 3, backoffMs: 1000 } }],
    ['one that only reads', { risk: 'read_only' }],
    ['found absent by its probe', { probe: () => 'absent' }],
  ] as const)('is run again if it is %s: the same key, another attempt', async (_, options) => {
    const { charge, seen } = charging(options as Effect)
    const it = stage([charge])
    await crashIn(it)
    expect(seen).toHaveLength(1) // not at once
    await it.advance(1000)
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(seen[0]?.idempotencyKey).toBe(seen[1]?.idempotencyKey)
    expect(it.errors).toEqual([])
    expect((await it.events('effect_ended')).at(-1)).toMatchObject({ outcome: 'done' })
  })

  test('is not run again because of its `retry`, which is about failures', async () => {
    const { charge, seen } = charging({ retry: { attempts: 3, backoffMs: 1000 } })
    const it = stage([charge])
    await crashIn(it)
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
    expect(await it.events('effect_ended')).toMatchObject([{ outcome: 'unknown' }])
  })

  test('a crash counts as an attempt, and the delay grows', async () => {
    const retry = { attempts: 3, backoffMs: 1000 }
    const { charge, seen } = charging({ idempotent: true, retry }, 9)
    const it = stage([charge])
    await crashIn(it)
    await it.advance(1000)
    await it.open()
    await it.advance(1999)
    expect(seen).toHaveLength(2)
    await it.advance(1)
    await it.open()
    await it.advance(3_600_000)
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect((await it.events('effect_ended')).at(-1)).toMatchObject({ outcome: 'unknown' })
  })

  test('one that kills every process is given up after five times', async () => {
    const { charge, seen } = charging({ idempotent: true }, 99)
    const it = stage([charge])
    await crashIn(it)
    for (let restart = 0; restart < 20; restart++) {
      await it.advance(60_000)
      await it.open()
    }
    expect(seen).toHaveLength(5)
    expect(it.errors).toMatchObject([{ code: 'EFFECT_UNKNOWN' }])
  })

  test('counts as done when its probe finds the effect', async () => {
    const asked: EffectContext[] = []
    const probe = (args: unknown, context: EffectContext): boolean => {
      asked.push(context)
      return (args as { of: string }).of === 'ann'
    }
    const { charge, seen } = charging({ probe })
    const it = stage([charge])
    await crashIn(it)
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
    expect(asked[0]?.idempotencyKey).toBe(seen[0]?.idempotencyKey)
    expect(await it.events('effect_ended')).toMatchObject([{ outcome: 'done', settledBy: 'probe' }])
  })

  test('a probe that does not know, or throws, leaves it unknown', async () => {
    for (const probe of [() => 'unknown' as const, () => Promise.reject(new Error('down'))]) {
      const { charge, seen } = charging({ probe })
      const it = stage([charge])
      await crashIn(it)
      await it.advance(3_600_000)
      expect(seen).toHaveLength(1)
      expect(await it.events('effect_ended')).toMatchObject([{ outcome: 'unknown' }])
    }
  })
})

describe('messages', () => {
  test('go first after an effect has failed, whichever effects are due', async () => {
    let failed = 0
    const fail = defineEffect({
      name: 'fail',
      execute: () => {
        failed++
        throw new Error('no')
      },
    })
    const it = stage([fail])
    const runtime = await it.open()
    const { id } = await runtime.threads.create({ agent: 'a' })
    await it.advance(0)
    for (let n = 0; n < 20; n++) await runtime.threads.effects.schedule(id, 'fail', n, 1000)
    const sent = runtime.threads.send(id, 'hello')
    it.clock.advance(1000)
    await sent
    await it.advance(1000)
    const types = (await it.store.events(id)).map(({ event }) => event.type)
    const before = types.slice(0, types.indexOf('session_end'))
    expect(before.filter((type) => type === 'effect_ended').length).toBeLessThanOrEqual(1)
    expect(failed).toBe(20)
  })

  test('are answered though an effect kills every process that runs it', async () => {
    const { charge } = charging({ idempotent: true, timeoutMs: 1_000_000_000 }, 99)
    const it = stage([charge])
    const { id } = await crashIn(it)
    for (let n = 0; n < 4; n++) {
      const runtime = await it.open()
      await it.advance(0)
      // The effect runs again after its delay and hangs; the next process answers the message first.
      await it.advance(60_000)
      await runtime.threads.send(id, `hello ${n}`)
      const next = await it.open()
      await it.advance(0)
      const said = (await next.threads.messages(id)).filter(
        ({ message }) => message.type === 'assistant',
      )
      expect(said).toHaveLength(n + 1)
    }
  })
})

describe('a high-risk effect', () => {
  const options: Effect = { risk: 'write_high_risk' }

  async function begun(dies = 1) {
    const { charge, seen } = charging(options, dies)
    const it = stage([charge])
    const runtime = await it.open()
    const { id } = await runtime.threads.create({ agent: 'a' })
    const effectId = await runtime.threads.effects.schedule(id, 'charge', { of: 'ann' }, 1000)
    await it.advance(1000)
    return { it, runtime, id, effectId, seen }
  }

  async function waiting(runtime: EmbeddedRuntime) {
    const items = await runtime.inbox.list()
    expect(items).toHaveLength(1)
    return items[0]!
  }

  test('waits for approval, runs once, and leaves an audit log that verifies', async () => {
    const { it, runtime, id, effectId, seen } = await begun(0)
    expect(seen).toEqual([])
    const item = await waiting(runtime)
    expect(item).toMatchObject({
      kind: 'approval',
      toolName: 'charge',
      effectId,
      risk: 'write_high_risk',
      arguments: { of: 'ann' },
    })
    await runtime.inbox.approve({ ...item, by: 'pat' })
    await it.advance(0)
    expect(seen).toHaveLength(1)
    expect(await runtime.inbox.list()).toEqual([])
    const audit = await runtime.threads.audit(id)
    expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
    const types = audit.lines.map(
      (line) => (JSON.parse(line) as { metadata: object }).metadata['uaicp:event' as never],
    )
    for (const type of ['call_started', 'call_settled', 'delivered']) expect(types).toContain(type)
  })

  test('that waits does not hold up what the thread is asked', async () => {
    const { it, runtime, id, seen } = await begun(0)
    const running = runtime.threads.run(id, 'hello')
    await it.advance(0)
    expect(await running).toMatchObject({ outcome: 'completed', waiting: [] })
    expect(seen).toEqual([])
    expect(await it.store.head(id)).toMatchObject({ waiting: 1 })
    await waiting(runtime)
  })

  test('that is denied does not run', async () => {
    const { it, runtime, seen } = await begun(0)
    await runtime.inbox.deny({ ...(await waiting(runtime)), by: 'pat', reason: 'no' })
    await it.advance(3_600_000)
    expect(seen).toEqual([])
    expect(await it.events('effect_ended')).toMatchObject([{ outcome: 'failed' }])
  })

  async function inDoubt() {
    const made = await begun()
    await made.runtime.inbox.approve({ ...(await waiting(made.runtime)), by: 'pat' })
    await made.it.advance(0)
    expect(made.seen).toHaveLength(1)
    const runtime = await made.it.open()
    await made.it.advance(3_600_000)
    const item = await waiting(runtime)
    expect(item.kind).toBe('in_doubt')
    return { ...made, runtime, item }
  }

  test('that was cut off waits for a person; applied ends it', async () => {
    const { it, runtime, item, seen, id } = await inDoubt()
    const wrong = runtime.inbox.answer(item, { type: 'result', value: 'absent' })
    await expect(wrong).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
    await runtime.inbox.settle({ ...item, by: 'pat' }, 'applied')
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
    expect(await it.events('effect_ended')).toMatchObject([
      { outcome: 'done', settledBy: 'person' },
    ])
    const audit = await runtime.threads.audit(id)
    expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
  })

  test('found absent, it waits for a new approval before it runs again', async () => {
    const { it, runtime, item, seen, id } = await inDoubt()
    await runtime.inbox.settle({ ...item, by: 'pat' }, 'absent')
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
    const again = await waiting(runtime)
    expect(again.kind).toBe('approval')
    await runtime.inbox.approve({ ...again, by: 'pat' })
    await it.advance(0)
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect((await it.events('effect_ended')).at(-1)).toMatchObject({ outcome: 'done' })
    const audit = await runtime.threads.audit(id)
    expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
  })

  test('unknown stays unknown; nothing runs it around the question', async () => {
    const { it, runtime, item, seen, id, effectId } = await inDoubt()
    const now = runtime.threads.effects.runNow(id, effectId)
    await expect(now).rejects.toMatchObject({ code: 'EFFECT_INVALID' })
    await runtime.inbox.settle({ ...item, by: 'pat' }, 'unknown')
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
    expect(await it.events('effect_ended')).toMatchObject([{ outcome: 'unknown' }])
  })

  test('that is removed asks nobody any more', async () => {
    const { it, runtime, seen, id, effectId } = await inDoubt()
    expect(await runtime.threads.effects.remove(id, effectId)).toBe(true)
    expect(await runtime.inbox.list()).toEqual([])
    expect(await it.store.head(id)).toMatchObject({ waiting: 0 })
    await it.advance(3_600_000)
    expect(seen).toHaveLength(1)
  })
})

test('a policy that forbids an effect with a risk is heard, and it does not run', async () => {
  const { charge, seen } = charging({ risk: 'write_low_risk' }, 0)
  const never: Policy = {
    id: 'never',
    hash: 'sha256:0',
    decide: () => ({ effect: 'deny' }),
  }
  const it = stage([charge], never)
  const runtime = await it.open()
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.effects.schedule(id, 'charge', null, 0)
  await it.advance(0)
  expect(seen).toEqual([])
  const [ended] = await it.events('effect_ended')
  expect(ended?.error).toContain('POLICY_BLOCKED')
})

test('an effect without a risk leaves no audit lines', async () => {
  const { charge, seen } = charging({}, 0)
  const it = stage([charge])
  const runtime = await it.open()
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.effects.schedule(id, 'charge', null, 0)
  await it.advance(0)
  expect(seen).toHaveLength(1)
  expect((await runtime.threads.audit(id)).lines).toEqual([])
})

test('what an effect declares is checked when it is loaded, all at once', async () => {
  const wrong = defineEffect({
    name: 'wrong',
    risk: 'harmless' as never,
    idempotent: 'yes' as never,
    probe: 'look' as never,
    execute: () => {},
  })
  const loaded = createRuntime({ agents: [], effects: [wrong] })
  await expect(loaded).rejects.toMatchObject({
    problems: [
      { subject: 'effect "wrong"', field: 'risk' },
      { subject: 'effect "wrong"', field: 'idempotent' },
      { subject: 'effect "wrong"', field: 'probe' },
    ],
  })
})
