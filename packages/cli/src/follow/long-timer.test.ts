import { afterEach, expect, test, vi } from 'vitest'
import { timeOf } from './show-run.ts'
import { afterMs } from './long-timer.ts'

afterEach(() => vi.useRealTimers())

test('a time of any length passes before the work begins', () => {
  vi.useFakeTimers()
  for (const text of ['500ms', '596h', '600h', '2000h']) {
    const ms = timeOf('timeout', text)!
    let runs = 0
    afterMs(ms, () => runs++)
    vi.advanceTimersByTime(ms - 1)
    expect([text, runs]).toEqual([text, 0])
    vi.advanceTimersByTime(1)
    expect([text, runs]).toEqual([text, 1])
  }
})

test('a timer that is cancelled never runs, whenever that happens', () => {
  vi.useFakeTimers()
  let runs = 0
  const cancel = afterMs(2 ** 33, () => runs++)
  vi.advanceTimersByTime(2 ** 32)
  cancel()
  vi.advanceTimersByTime(2 ** 34)
  expect(runs).toBe(0)
})
