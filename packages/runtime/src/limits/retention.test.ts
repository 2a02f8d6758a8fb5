import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createRuntime,
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  memoryStore,
  type EmbeddedRuntime,
  type RuntimeOptions,
} from '@skein/runtime'
import { manualTimers } from '../testing/simulation.ts'

const DAY = 24 * 3_600_000
const running: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of running.splice(0)) await runtime.stop({ graceMs: 0 })
})

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  risk: 'write_high_risk',
  rollback: 'impossible',
  args: z.object({}),
  execute: () => 'paid',
})
const model = scripted((request) =>
  request.messages.at(-1)?.text === 'Pay' ? calls('pay', {}) : says('My secret answer.'),
)
const prompt = definePrompt({ name: 'p', prompt: 'Hi.', model, tools: [pay] })
const solo = defineAgent({ name: 'solo', sideA: { prompt } })
const clean = defineEffect({ name: 'clean', execute: async () => undefined })

async function start(retention: RuntimeOptions['retention']) {
  const clock = manualClock(Date.parse('2026-01-01T00:00:00.000Z'))
  const timers = manualTimers(clock)
  const store = memoryStore({ clock })
  const options = { agents: [solo], effects: [clean], keepsSecretKeyWithData: true }
  const runtime = await createRuntime({ ...options, store, clock, timers, retention })
  running.push(runtime)
  await runtime.start()
  const { threads } = runtime
  const talk = async (tenant: string, message = 'Hello'): Promise<string> => {
    const { id } = await threads.create({ agent: 'solo', tenant, message })
    await timers.advance(1_000)
    return id
  }
  /** The lifecycles of threads; `gone` for one that was removed. */
  const states = (...ids: readonly string[]) =>
    Promise.all(
      ids.map((id) =>
        threads.get(id).then(
          ({ lifecycle }) => lifecycle,
          () => 'gone',
        ),
      ),
    )
  /** Applies the rules, and lets the pauses between the slices pass. */
  const sweep = async (): Promise<void> => {
    let isDone = false
    const swept = runtime.limits.sweep().finally(() => (isDone = true))
    while (!isDone) await timers.advance(50)
    await swept
  }
  return { ...runtime, runtime, timers, talk, states, store, sweep }
}

describe('retention', () => {
  test('old threads are erased in the background; those that work, wait or are young stay', async () => {
    const kit = await start({ rules: [{ maxAgeMs: 2 * DAY }], everyMs: DAY })
    const { talk, states, timers, threads, limits, store } = kit
    const old = await talk('acme')
    const asking = await talk('acme', 'Pay')
    const scheduled = await talk('acme')
    await threads.effects.schedule(scheduled, 'clean', null, 30 * DAY)
    await timers.advance(1.5 * DAY)
    const young = await talk('acme')
    expect(await states(old, asking, scheduled, young)).toEqual(['idle', 'waiting', 'idle', 'idle'])
    await timers.advance(1.5 * DAY)
    expect(await states(old, asking, scheduled, young)).toEqual([
      'erased',
      'waiting',
      'idle',
      'idle',
    ])
    expect(JSON.stringify(await store.events(old))).not.toContain('secret')
    const { retention } = await limits.report()
    expect(retention).toEqual([{ tenant: 'acme', erased: 1, removed: 0, kept: 2, failed: 0 }])
    expect(await limits.totals()).toEqual(
      new Map([
        ['erased', 1],
        ['kept', 2],
      ]),
    )
    // What waited can still be answered.
    const [item] = await kit.inbox.list()
    await kit.inbox.approve({ ...item!, by: 'ann' })
    await timers.advance(1_000)
    expect(await states(asking)).toEqual(['idle'])
  })

  test('a tenant keeps the threads that were active last; others are removed', async () => {
    const rules = [{ maxThreads: 2, action: 'remove', tenants: ['acme'] }] as const
    const { talk, states, timers, threads } = await start({ rules, everyMs: DAY })
    const ids = [await talk('acme'), await talk('acme'), await talk('acme'), await talk('acme')]
    const others = [await talk('other'), await talk('other'), await talk('other')]
    await threads.send(ids[0]!, 'Again')
    await timers.advance(DAY)
    expect(await states(...ids)).toEqual(['idle', 'gone', 'gone', 'idle'])
    expect(await states(...others)).toEqual(['idle', 'idle', 'idle'])
  })

  test('threads that wait for people are removed only if the rule says so', async () => {
    const rules = [{ maxAgeMs: 1, includes: ['waiting', 'scheduled'] }] as const
    const { talk, states, timers, inbox } = await start({ rules, everyMs: DAY })
    const id = await talk('acme', 'Pay')
    expect(await inbox.list()).toHaveLength(1)
    await timers.advance(DAY)
    expect(await states(id)).toEqual(['erased'])
    expect(await inbox.list()).toEqual([])
  })

  test('a thread that gets a message at the last moment stays', async () => {
    const { talk, states, timers, runtime, store, limits, sweep } = await start({
      rules: [{ maxAgeMs: DAY }],
      everyMs: 100 * DAY,
    })
    await timers.advance(1_000)
    const id = await talk('acme')
    await timers.advance(2 * DAY)
    const list = store.list.bind(store)
    // The message arrives after retention has read the thread.
    store.list = async (query) => {
      const found = await list(query)
      if (query.rootId === id) await runtime.threads.send(id, 'Wait!')
      return found
    }
    await sweep()
    store.list = list
    expect(await states(id)).toEqual(['idle'])
    expect((await runtime.threads.messages(id)).map(({ message }) => message.text)).toEqual([
      'Hello',
      'My secret answer.',
      'Wait!',
      'My secret answer.',
    ])
    expect((await limits.report()).retention).toMatchObject([{ erased: 0, kept: 1 }])
  })

  test('more threads than one slice are all removed', async () => {
    const { runtime, timers, store, limits, sweep } = await start({
      rules: [{ maxAgeMs: DAY, action: 'remove' }],
      everyMs: 100 * DAY,
    })
    for (let i = 0; i < 250; i++)
      await runtime.threads.create({ agent: 'solo', tenant: `t${i % 3}` })
    await timers.advance(2 * DAY)
    await sweep()
    expect(await store.list({ limit: 1000 })).toEqual([])
    const { retention } = await limits.report({ tenant: 't1' })
    expect(retention).toMatchObject([{ tenant: 't1', removed: 83 }])
  })

  test('a rule that says nothing is refused', async () => {
    const wrong = [{}, { maxAgeMs: -1 }, { maxThreads: 1, action: 'burn' as 'erase' }]
    for (const rule of wrong)
      await expect(
        createRuntime({ agents: [solo], retention: { rules: [rule] } }),
      ).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  })
})
