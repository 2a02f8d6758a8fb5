import fc from 'fast-check'
import { expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { systemClock } from '@skein/base'
import { createRuntime, defineAgent, defineEffect, definePrompt } from '../index.ts'
import { steadyClock, systemTimers } from './dispatcher.ts'

const HOUR = 3_600_000

test('a timer that is due soon does not wait out the hour by which the clock is set back', async () => {
  let offset = 0
  const clock = { now: () => Date.now() + offset }
  const ran: number[] = []
  const tick = defineEffect({ name: 'tick', execute: (_, args) => void ran.push(Number(args)) })
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model: scripted(() => says('x')) })
  const agents = [defineAgent({ name: 'a', sideA: { prompt } })]
  const runtime = await createRuntime({ agents, effects: [tick], clock })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.effects.schedule(id, 'tick', 1, 200)
  await runtime.idle()
  offset = -HOUR
  // Other work of the thread reads the clock and sets timers anew.
  await runtime.threads.effects.schedule(id, 'tick', 2, 100)
  await expect.poll(() => ran, { timeout: 5000 }).toEqual([2, 1])
  const times = (await runtime.threads.events(id)).map(({ event }) => Date.parse(event.at))
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  await runtime.stop()
})

test('it shows the time of day, and never goes back', () => {
  const steps = fc.array(
    fc.record({
      elapsed: fc.nat(10_000),
      jump: fc.oneof(fc.constant(0), fc.integer({ min: -HOUR, max: HOUR })),
    }),
    { minLength: 1, maxLength: 50 },
  )
  fc.assert(
    fc.property(steps, (all) => {
      let [wall, monotonic] = [HOUR * 1000, 0]
      const clock = steadyClock({ now: () => wall }, () => monotonic)
      let before = clock.now()
      expect(before).toBe(wall)
      for (const { elapsed, jump } of all) {
        const wallBefore = wall
        wall += elapsed + jump
        monotonic += elapsed
        const now = clock.now()
        expect(now).toBeGreaterThanOrEqual(before)
        // It is the time of day, or as much later than before as time has passed.
        expect([wall, before + elapsed]).toContain(now)
        if (wall >= wallBefore && before === wallBefore) expect(now).toBe(wall)
        before = now
      }
    }),
  )
})

test('frequent readings lose no time', () => {
  let [wall, monotonic] = [HOUR, 0]
  const clock = steadyClock({ now: () => wall }, () => monotonic)
  wall = 0
  for (let n = 0; n < 10_000; n++) {
    monotonic += 0.3
    clock.now()
  }
  expect(Math.abs(clock.now() - HOUR - 3000)).toBeLessThan(2)
})

test('a timer of the process that has fired proves the time, but not against a clock set by hand', () => {
  const clock = steadyClock(systemClock, () => 0)
  const later = clock.now() + HOUR
  clock.reach(later)
  expect(clock.now()).toBe(later)
  const still = steadyClock({ now: () => 5 }, () => 0)
  still.reach(later)
  expect(still.now()).toBe(5)
})

test('timers of a fraction of a millisecond do not let the clock run ahead', async () => {
  const clock = steadyClock()
  const timers = systemTimers(clock)
  // Delays that are drawn at random have fractions.
  for (let n = 0; n < 200; n++) await new Promise<void>((resolve) => timers.set(1.9, resolve))
  const ahead = clock.now() - systemClock.now()
  expect(ahead).toBeLessThan(20)
  expect(Number.isInteger(clock.now())).toBe(true)
})
