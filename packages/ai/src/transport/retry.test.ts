import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { llm, UPPError, type UPPErrorOptions } from '@skein/ai'
import anthropic from '@skein/ai/anthropic'
import { ExponentialBackoff, judgeRetry, LinearBackoff } from './retry.ts'

function failure(options: Partial<UPPErrorOptions> = {}): UPPError {
  return new UPPError('no', { code: 'RATE_LIMITED', provider: 'x', modality: 'llm', ...options })
}

describe('judgeRetry', () => {
  test.each([
    [0, 'wait'],
    [60_000, 'wait'],
    [60_001, 'park'],
    [900_000, 'park'],
    [900_001, 'fail'],
    [86_400_000, 'fail'],
    [Infinity, 'fail'],
  ])('a vendor that asks for %i ms: %s', (retryAfterMs, type) => {
    expect(judgeRetry(failure({ retryAfterMs }), 1).type).toBe(type)
  })

  test('four requests in all', () => {
    expect([1, 2, 3, 4].map((made) => judgeRetry(failure(), made).type)).toEqual([
      'wait',
      'wait',
      'wait',
      'fail',
    ])
  })

  test('only what may pass is repeated', () => {
    const codes = ['TIMEOUT', 'NETWORK_ERROR', 'PROVIDER_ERROR', 'RATE_LIMITED'] as const
    for (const code of codes) expect(judgeRetry(failure({ code }), 1).type).toBe('wait')
    for (const code of ['QUOTA_EXCEEDED', 'INVALID_REQUEST', 'INVALID_RESPONSE'] as const)
      expect(judgeRetry(failure({ code }), 1).type).toBe('fail')
    const odd = failure({ code: 'INVALID_RESPONSE' })
    expect(judgeRetry(odd, 1, { retryInvalidResponse: true }).type).toBe('wait')
    expect(judgeRetry(failure({ shouldRetry: false }), 1).type).toBe('fail')
    expect(judgeRetry(failure({ code: 'CANCELLED', shouldRetry: true }), 1).type).toBe('fail')
  })

  test('law: whatever a vendor asks, the wait is finite and bounded', () => {
    const asked = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(NaN, Infinity, undefined))
    fc.assert(
      fc.property(asked, fc.integer({ min: 1, max: 5000 }), (retryAfterMs, made) => {
        const verdict = judgeRetry(failure({ retryAfterMs }), made, { maxRequests: Infinity })
        if (verdict.type === 'fail') return
        expect(verdict.ms).toBeGreaterThanOrEqual(0)
        expect(verdict.ms).toBeLessThanOrEqual(900_000)
      }),
      { seed: 3, numRuns: 500 },
    )
  })

  test('a strategy within a call gives up where it cannot wait; a caller may shorten the wait', () => {
    const long = failure({ retryAfterMs: 61_000 })
    expect(new ExponentialBackoff().onRetry(long, 1)).toBeNull()
    expect(new LinearBackoff().onRetry(long, 1)).toBeNull()
    expect(new ExponentialBackoff({ maxRetryAfter: 10_000 }).onRetry(long, 1)).toBe(10_000)
  })
})

test.each([
  '86400',
  '99999999999999',
  '1e400',
  '-5',
  'soon',
  '61.5',
  '',
  'Fri, 31 Dec 9999 23:59:59 GMT',
])('a vendor that sends Retry-After %j is asked a bounded number of times', async (header) => {
  let requests = 0
  const fetch = async (): Promise<Response> => {
    requests++
    const body = JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: '' } })
    return new Response(body, { status: 429, headers: { 'retry-after': header } })
  }
  const retryStrategy = new ExponentialBackoff({ baseDelay: 1 })
  const model = llm({
    model: anthropic('claude-sonnet-4-5'),
    config: { apiKey: 'k', fetch, retryStrategy },
  })
  const error: unknown = await model.generate('hi').catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'RATE_LIMITED' })
  const { retryAfterMs = 0 } = error as UPPError
  expect(new Date(Date.now() + retryAfterMs).getTime()).not.toBeNaN()
  expect(requests).toBe(retryAfterMs > 60_000 ? 1 : 3)
})

test('UPP-026 UPP-027 any number of retries from 0, also without end', () => {
  for (const maxRetries of [0, 3, Infinity]) {
    expect(() => new ExponentialBackoff({ maxRetries })).not.toThrow()
    expect(() => new LinearBackoff({ maxRetries })).not.toThrow()
  }
  for (const maxRetries of [-1, 1.5, Number.NaN]) {
    expect(() => new ExponentialBackoff({ maxRetries })).toThrow(/maxRetries/)
    expect(() => new LinearBackoff({ maxRetries })).toThrow(/maxRetries/)
  }
})

test('UPP-155 LinearBackoff waits as long as maxRetryAfter at most, and at least its own delay', () => {
  const error = failure({ retryAfterMs: 90_000 })
  expect(new LinearBackoff({ delay: 5, maxRetryAfter: 40 }).onRetry(error, 1)).toBe(40)
  expect(new LinearBackoff({ delay: 50, maxRetryAfter: 40 }).onRetry(error, 1)).toBe(50)
  expect(new LinearBackoff({ delay: 5 }).onRetry(error, 1)).toBeNull()
})
