import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  manualClock,
  randomIds,
  seededRandom,
  sequentialIds,
  timeOrderedIds,
  uuidV4,
  uuidV7,
} from '@skein/base'

const v4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const v7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const take = (count: number, source: () => string) => Array.from({ length: count }, source)
const timeOf = (id: string) => Number.parseInt(id.slice(0, 13).replace('-', ''), 16)

afterEach(() => vi.unstubAllGlobals())

describe('UUIDv4', () => {
  test('has version and variant, and does not repeat', () => {
    const ids = [...take(500, randomIds()), ...take(500, uuidV4)]
    for (const id of ids) expect(id).toMatch(v4)
    expect(new Set(ids).size).toBe(1000)
  })

  test('works where randomUUID is missing, as on insecure pages', () => {
    const { crypto } = globalThis
    vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) })
    const ids = [...take(50, randomIds()), ...take(50, uuidV4)]
    for (const id of ids) expect(id).toMatch(v4)
    expect(new Set(ids).size).toBe(100)
  })

  test('repeats with the seed', () => {
    const ids = take(100, randomIds({ random: seededRandom(1) }))
    expect(take(100, randomIds({ random: seededRandom(1) }))).toEqual(ids)
    expect(take(100, randomIds({ random: seededRandom(2) }))).not.toEqual(ids)
    for (const id of ids) expect(id).toMatch(v4)
  })
})

describe('UUIDv7', () => {
  test('carries the time, version and variant', () => {
    const clock = manualClock(0x0123456789ab)
    const id = timeOrderedIds({ clock })()
    expect(id).toMatch(v7)
    expect(id.slice(0, 13)).toBe('01234567-89ab')
    expect(uuidV7()).toMatch(v7)
    expect(Math.abs(timeOf(uuidV7()) - Date.now())).toBeLessThan(5000)
  })

  test('rises within a millisecond, past the end of the counter, and when the clock goes back', () => {
    const clock = manualClock(1_700_000_000_000)
    const source = timeOrderedIds({ clock, random: seededRandom(7) })
    const ids = take(10_000, source)
    clock.advance(-60_000)
    ids.push(...take(10_000, source))
    clock.advance(120_000)
    ids.push(source())
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(v7)
    // A burst borrows milliseconds, few of them: 2,048 ids at least fit into each.
    expect(timeOf(ids.at(-2)!)).toBeLessThanOrEqual(1_700_000_000_000 + 10)
    expect(timeOf(ids.at(-1)!)).toBe(clock.now())
  })

  test('takes the new time as soon as there is one', () => {
    const clock = manualClock(5)
    const source = timeOrderedIds({ clock })
    const times = take(3, () => {
      clock.advance(1)
      return source()
    }).map(timeOf)
    expect(times).toEqual([6, 7, 8])
  })

  test('starts each millisecond in the lower half of the counter, so that a burst has room', () => {
    const clock = manualClock(5)
    const source = timeOrderedIds({ clock })
    for (let i = 0; i < 100; i++) {
      clock.advance(1)
      expect(source().slice(14, 16)).toMatch(/^7[0-7]$/)
    }
  })

  test('repeats with clock and seed, and differs without', () => {
    const make = (seed: number) =>
      take(20, timeOrderedIds({ clock: manualClock(9), random: seededRandom(seed) }))
    expect(make(1)).toEqual(make(1))
    expect(make(1)).not.toEqual(make(2))
    expect(uuidV7()).not.toBe(uuidV7())
  })

  test('rises in one process', () => {
    const ids = take(5000, uuidV7)
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(5000)
  })
})

test('sequential ids count from one, each source for itself', () => {
  const [a, b] = [sequentialIds('call_'), sequentialIds()]
  expect([a(), a(), b(), a()]).toEqual(['call_1', 'call_2', '1', 'call_3'])
})
