import { defaultInputLimits } from '@skein/base'
import { expect, test, vi } from 'vitest'
import { limitsOf, sleep } from './time-limits.ts'

const context = { provider: 'some', modality: 'llm' } as const
const defaults = {
  totalMs: undefined,
  connectMs: undefined,
  headersMs: 600_000,
  firstByteMs: 300_000,
  idleMs: 300_000,
  ...defaultInputLimits,
}
const longest = 2 ** 31 - 1

test.each([
  [{}, {}],
  [{ timeout: 5 }, { totalMs: 5 }],
  [{ timeouts: { totalMs: 5 } }, { totalMs: 5 }],
  [{ timeout: 4, timeouts: { totalMs: 5 } }, { totalMs: 4 }],
  [{ timeouts: { connectMs: 5 } }, { connectMs: 5 }],
  [{ timeouts: { headersMs: 5 } }, { headersMs: 5 }],
  [{ timeouts: { firstByteMs: 5 } }, { firstByteMs: 5 }],
  [{ timeouts: { idleMs: 5 } }, { idleMs: 5, firstByteMs: 5 }],
  [{ timeouts: { idleMs: 5, firstByteMs: 6 } }, { idleMs: 5, firstByteMs: 6 }],
  [{ timeout: 1e12, timeouts: { idleMs: Infinity } }, { totalMs: longest, idleMs: longest, firstByteMs: longest }], // prettier-ignore
  [
    { maxResponseBytes: 7, maxEvents: 8 },
    { maxResponseBytes: 7, maxEvents: 8 },
  ],
])('UPP-154 UPP-164 UPP-162 the limits of %j', (config, changed) => {
  expect(limitsOf(config, context)).toEqual({ ...defaults, ...changed })
})

test.each([
  [5, 5],
  [longest, longest],
  [longest + 1, longest],
  [1e15, longest],
  [Infinity, longest],
])('UPP-155 UPP-024 UPP-025 a wait of %d ms is not over before %d ms', async (ms, expected) => {
  vi.useFakeTimers()
  try {
    let isOver = false
    const waited = sleep(ms, new AbortController().signal).then(() => (isOver = true))
    await vi.advanceTimersByTimeAsync(expected - 1)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await waited
  } finally {
    vi.useRealTimers()
  }
})
