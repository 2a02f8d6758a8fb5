import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { defineEffect, type EffectDefinition } from '@skein/runtime'
import { child, finished, linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { childOf, simulate } from './support/simulate.ts'

/** An effect that notes when it ran, and fails as often as the test says. */
function ticking(options: Partial<EffectDefinition> & { readonly failures?: number } = {}) {
  const { failures = 0, ...rest } = options
  const ran: { at: number; args: unknown }[] = []
  let left = failures
  const clock = { now: () => 0 }
  const tick = defineEffect({
    name: 'tick',
    ...rest,
    execute: (state, args) => {
      ran.push({ at: clock.now(), args })
      state.setValue('ran', ran.length)
      if (left-- > 0) throw new Error('not yet')
    },
  })
  return { tick, ran, clock }
}

async function started(parts: ReturnType<typeof ticking>) {
  const agent = solo('plans', { script: () => says('x') })
  const it = await simulate({ agents: [agent], effects: [parts.tick] })
  const start = it.clock.now()
  parts.clock.now = () => it.clock.now() - start
  return { it, agent, id: await it.create() }
}

test('an effect runs once after its delay, and what it changes is true afterwards', async () => {
  const parts = ticking()
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', { n: 1 }, 60_000)
  expect(await it.threads.effects.list(id)).toMatchObject([{ name: 'tick', args: { n: 1 } }])
  await it.advance(59_999)
  expect(parts.ran).toEqual([])
  await it.advance(1)
  expect(parts.ran).toEqual([{ at: 60_000, args: { n: 1 } }])
  expect(await it.threads.values.get(id, 'ran')).toBe(1)
  await it.advance(600_000)
  expect(parts.ran).toHaveLength(1)
  expect(await it.threads.effects.list(id)).toEqual([])
})

test('a calendar runs at its times; after a pause it catches up once', async () => {
  const parts = ticking()
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', null, { cron: '*/10 * * * *' })
  for (let minute = 0; minute < 30; minute++) await it.advance(60_000)
  const minutes = () => parts.ran.map(({ at }) => at / 60_000)
  expect(minutes()).toEqual([10, 20, 30])
  await it.stop()
  it.clock.advance(45 * 60_000)
  const again = await it.restart()
  await again.idle()
  expect(minutes()).toEqual([10, 20, 30, 75])
  await again.advance(5 * 60_000)
  expect(minutes()).toEqual([10, 20, 30, 75, 80])
})

test('one that fails is tried again as it says, and changes nothing when it fails', async () => {
  const parts = ticking({ failures: 2, retry: { attempts: 3, backoffMs: 1000 } })
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', null, 1000)
  await it.advance(1000)
  expect(parts.ran).toHaveLength(1)
  expect(await it.threads.values.list(id)).toEqual({})
  await it.advance(999)
  expect(parts.ran).toHaveLength(1)
  await it.advance(1)
  await it.advance(2000)
  expect(parts.ran.map(({ at }) => at)).toEqual([1000, 2000, 4000])
  expect(await it.threads.values.get(id, 'ran')).toBe(3)
  const ends = await it.events(id, 'effect_ended')
  expect(ends.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'done'])
})

test('one without retries, or with none left, is over', async () => {
  const parts = ticking({ failures: 9, retry: { attempts: 2, backoffMs: 1000 } })
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', null, 0)
  await it.idle()
  await it.advance(3_600_000)
  expect(parts.ran).toHaveLength(2)
  expect(await it.threads.effects.list(id)).toEqual([])
  expect((await it.events(id, 'effect_ended')).at(-1)).toMatchObject({
    outcome: 'failed',
    error: 'not yet',
  })
})

test('a calendar continues after a failure, with all its tries each time', async () => {
  const parts = ticking({ failures: 4, retry: { attempts: 2, backoffMs: 1000 } })
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', null, { cron: '*/10 * * * *' })
  for (let minute = 0; minute < 30; minute++) await it.advance(60_000)
  expect(parts.ran.map(({ at }) => at / 1000)).toEqual([600, 601, 1200, 1201, 1800])
})

test('a second one with the same key replaces the first', async () => {
  const parts = ticking()
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', 'first', { delayMs: 1000, key: 'k' })
  await it.threads.effects.schedule(id, 'tick', 'second', { delayMs: 2000, key: 'k' })
  await it.threads.effects.schedule(id, 'tick', 'third', { delayMs: 500, key: 'other' })
  expect(await it.threads.effects.list(id)).toHaveLength(2)
  await it.advance(5000)
  expect(parts.ran.map(({ args }) => args)).toEqual(['third', 'second'])
})

test('it outlives a restart, and can be run immediately or taken back', async () => {
  const parts = ticking()
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', 'kept', 1000)
  const now = await it.threads.effects.schedule(id, 'tick', 'now', 1_000_000)
  const gone = await it.threads.effects.schedule(id, 'tick', 'gone', 1000)
  const again = await it.restart()
  expect(await again.threads.effects.remove(id, gone)).toBe(true)
  await again.threads.effects.runNow(id, now)
  await again.idle()
  expect(parts.ran.map(({ args }) => args)).toEqual(['now'])
  await again.advance(1000)
  expect(parts.ran.map(({ args }) => args)).toEqual(['now', 'kept'])
})

test('a tool schedules, and the effect speaks to the model', async () => {
  const remind = defineEffect({
    name: 'remind',
    execute: (state, args) =>
      void state.queueMessage({ content: `Remember: ${String(args)}`, isSilent: true }),
  })
  const later = tool('later', (state) => void state.scheduleEffect('remind', 'tea', 60_000))
  const agent = solo('reminds', {
    script: [calls('later'), says('I will.'), says('Tea!')],
    tools: [later],
  })
  const it = await simulate({ agents: [agent], effects: [remind] })
  const { id } = await it.ask('remind me')
  await it.idle()
  expect(requestsOf(agent)).toHaveLength(2)
  await it.advance(60_000)
  expect(linesOf(requestsOf(agent)[2]).at(-1)).toBe('user: Remember: tea')
  expect((await it.threads.settled(id)).text).toBe('Tea!')
})

test.each([
  ['has failed if it may run again', true, 'failed'],
  ['may or may not have happened if it may not run again', false, 'unknown'],
])('one that takes too long %s, and its signal says so', async (_, idempotent, outcome) => {
  let signal: AbortSignal | undefined
  const hang = defineEffect({
    name: 'hang',
    timeoutMs: 5,
    idempotent,
    execute: (_, __, context) => {
      signal = context.signal
      return new Promise(() => {})
    },
  })
  const agents = [solo('x', { script: [] })]
  const it = await simulate({ agents, effects: [hang], limits: { stopGraceMs: 5 } })
  const id = await it.create()
  await it.threads.effects.schedule(id, 'hang', null, 0)
  await it.runtime.idle() // `it.idle` rejects with what is reported to the operator: an unknown outcome
  expect(signal?.aborted).toBe(true)
  expect(await it.events(id, 'effect_ended')).toMatchObject([{ outcome }])
})

test('nothing waits for a person in a thread that was terminated while an effect asked for approval', async () => {
  const parts = ticking({ risk: 'write_high_risk' })
  const { it, id } = await started(parts)
  await it.threads.effects.schedule(id, 'tick', null, 0)
  await it.idle()
  expect((await it.threads.get(id)).waiting).toBe(1)
  await it.threads.terminate(id)
  await it.idle()
  const { lifecycle, waiting } = await it.threads.get(id)
  expect({ lifecycle, waiting }).toEqual({ lifecycle: 'terminated', waiting: 0 })
})

test('nothing waits for a person in a disposable child that ended while its effect asked for approval', async () => {
  const { tick } = ticking({ risk: 'write_high_risk' })
  const later = tool('later', (state) => void state.scheduleEffect('tick', null, 0))
  const helper = child('helper', { script: [calls('later'), finished('done')], tools: [later] })
  const top = solo('boss', {
    script: [calls('helper', { message: 'go' }), says('I see.')],
    tools: [helper],
  })
  const it = await simulate({ agents: [top], effects: [tick] })
  const { id } = await it.ask('hi')
  await it.idle()
  const reference = await childOf(it, id)
  expect(await it.events(reference, 'interrupt_opened')).toHaveLength(1)
  const { lifecycle, waiting } = await it.threads.get(reference)
  expect({ lifecycle, waiting }).toEqual({ lifecycle: 'terminated', waiting: 0 })
})
