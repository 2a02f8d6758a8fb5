import { expect, test } from 'vitest'
import { manualClock, systemClock } from '@skein/base'

test('the manual clock stands still until it is moved', () => {
  const clock = manualClock(100)
  expect([clock.now(), clock.now()]).toEqual([100, 100])
  clock.advance(25)
  expect(clock.now()).toBe(125)
  expect(manualClock().now()).toBe(0)
})

test('the system clock is the time of the machine', () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000)
})
