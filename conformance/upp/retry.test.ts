import {
  ExponentialBackoff,
  LinearBackoff,
  NoRetry,
  UPPError,
  UserMessage,
  type ErrorCode,
  type ProviderConfig,
  type RetryStrategy,
  type UPPErrorOptions,
} from '@skein/ai'
import { seededRandom, systemClock, uuidV4 } from '@skein/base'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { expectedOf, operations, type Operation } from './support/operations.ts'
import { hello, helloBody, stub, type Answer } from './support/stub.ts'
import { settlesWithin } from '../support/settles-within.ts'

const apiKey = 'sk-test-0123456789'
const anthropic = operations.find(({ name }) => name === 'anthropic: generate')!
const streaming = operations.find(({ name }) => name === 'anthropic: stream')!

afterEach(() => {
  vi.useRealTimers()
})

function failure(code: ErrorCode, options: Partial<UPPErrorOptions> = {}): UPPError {
  return new UPPError('failed', { code, provider: 'x', modality: 'llm', ...options })
}

/** Fails `times` times with the given response, then works. */
function failing(times: number, fail: () => Response): Answer {
  return (one, count) => (count <= times ? fail() : hello(one))
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
  (): Response =>
    new Response('{}', { status: code, headers })

/** Runs with fake time and gives the waits between attempts. */
async function waitsOf(
  operation: Operation,
  answer: Answer,
  config: ProviderConfig = {},
): Promise<number[]> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  const times: number[] = []
  const { fetch } = stub((one, count) => {
    times.push(Date.now())
    return answer(one, count)
  })
  const running = operation.run({ apiKey, fetch, ...config }).catch((error: unknown) => error)
  let settled = false
  void running.then(() => (settled = true))
  while (!settled) await vi.advanceTimersByTimeAsync(10)
  vi.useRealTimers()
  return times.slice(1).map((time, index) => time - times[index]!)
}

describe('a strategy of one’s own', () => {
  test('UPP-024 gives the delay, immediately or later; null ends it; attempts count from 1', async () => {
    const attempts: number[] = []
    const retryStrategy: RetryStrategy = {
      onRetry: async (_error, attempt) => {
        attempts.push(attempt)
        return attempt <= 2 ? attempt * 100 : null
      },
    }
    expect(await waitsOf(anthropic, failing(9, status(503)), { retryStrategy })).toEqual([100, 200])
    expect(attempts).toEqual([1, 2, 3])
  })

  test('UPP-024 sees the error with code, status, provider and what the vendor asks', async () => {
    const errors: UPPError[] = []
    const retryStrategy: RetryStrategy = {
      onRetry: (error) => {
        errors.push(error)
        return null
      },
    }
    const { fetch } = stub(status(429, { 'retry-after': '2' }))
    const thrown = await anthropic.run({ apiKey, fetch, retryStrategy }).catch((e: unknown) => e)
    expect(thrown).toBe(errors[0])
    expect(errors[0]).toMatchObject({
      code: 'RATE_LIMITED',
      statusCode: 429,
      provider: 'anthropic',
      modality: 'llm',
      retryAfterMs: 2000,
    })
  })

  test.each(operations)(
    'UPP-024 $name: it sees a lost connection as the caller would, with provider, modality and cause',
    async ({ provider, modality, run }) => {
      const errors: UPPError[] = []
      const retryStrategy: RetryStrategy = { onRetry: (error) => (errors.push(error), null) }
      const lost = new TypeError('fetch failed')
      const { fetch } = stub(() => Promise.reject(lost))
      const thrown = await run({ apiKey, fetch, retryStrategy }).catch((error: unknown) => error)
      expect(errors).toEqual([thrown])
      expect(errors[0]).toBeInstanceOf(UPPError)
      const { name } = provider
      expect(errors[0]).toMatchObject({
        code: 'NETWORK_ERROR',
        provider: name,
        modality,
        cause: lost,
      })
    },
  )

  test('UPP-024 one that throws is an error with its cause, not a hang', async () => {
    const retryStrategy: RetryStrategy = {
      onRetry: () => {
        throw new Error('my bug')
      },
    }
    const { fetch } = stub(status(503))
    await expect(anthropic.run({ apiKey, fetch, retryStrategy })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      cause: { message: 'my bug' },
    })
  })

  test('UPP-025 beforeRequest delays each attempt, reset follows a success only', async () => {
    const log: string[] = []
    const retryStrategy: RetryStrategy = {
      beforeRequest: () => {
        log.push('before')
        return 70
      },
      onRetry: () => {
        log.push('retry')
        return 30
      },
      reset: () => void log.push('reset'),
    }
    const waits = await waitsOf(anthropic, failing(1, status(503)), { retryStrategy })
    expect(waits).toEqual([100])
    expect(log).toEqual(['before', 'retry', 'before', 'reset'])
    log.length = 0
    await waitsOf(anthropic, status(400), { retryStrategy })
    expect(log).toEqual(['before'])
    log.length = 0
    await waitsOf(streaming, hello, { retryStrategy })
    expect(log).toEqual(['before', 'reset'])
  })

  test('UPP-025 beforeRequest may answer later; an abort ends its wait', async () => {
    const { fetch, seen } = stub()
    const controller = new AbortController()
    const retryStrategy: RetryStrategy = { beforeRequest: async () => 60_000, onRetry: () => null }
    const running = anthropic.run({ apiKey, fetch, retryStrategy }, controller.signal)
    setTimeout(() => controller.abort(), 10)
    expect(await settlesWithin(60, running)).toBe(true)
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(seen).toEqual([])
  })
})

describe('ExponentialBackoff', () => {
  test('UPP-026 doubles up to the maximum; jitter takes at most half of it away', () => {
    const options = fc.record({
      baseDelay: fc.integer({ min: 0, max: 5000 }),
      maxDelay: fc.integer({ min: 0, max: 20_000 }),
      seed: fc.integer(),
    })
    fc.assert(
      fc.property(
        options,
        fc.integer({ min: 1, max: 20 }),
        ({ baseDelay, maxDelay, seed }, attempt) => {
          const random = seededRandom(seed)
          const strategy = new ExponentialBackoff({ maxRetries: 20, baseDelay, maxDelay, random })
          const delay = strategy.onRetry(failure('RATE_LIMITED'), attempt)!
          const ceiling = Math.min(maxDelay, baseDelay * 2 ** (attempt - 1))
          expect(delay).toBeLessThanOrEqual(ceiling)
          expect(delay).toBeGreaterThanOrEqual(ceiling / 2)
        },
      ),
      { seed: 1, numRuns: 300 },
    )
  })

  test('UPP-026 without jitter the delays are exact', () => {
    const strategy = new ExponentialBackoff({
      maxRetries: 5,
      baseDelay: 100,
      maxDelay: 500,
      jitter: false,
    })
    const delays = [1, 2, 3, 4, 5, 6].map((attempt) =>
      strategy.onRetry(failure('TIMEOUT'), attempt),
    )
    expect(delays).toEqual([100, 200, 400, 500, 500, null])
  })

  test('UPP-026 jitter spreads', () => {
    const strategy = new ExponentialBackoff({ baseDelay: 1000, random: seededRandom(3) })
    const delays = Array.from({ length: 50 }, () => strategy.onRetry(failure('TIMEOUT'), 1))
    expect(new Set(delays).size).toBeGreaterThan(40)
  })

  test('UPP-026 waits as long as the vendor asks, up to a limit', () => {
    const strategy = new ExponentialBackoff({ baseDelay: 1, maxDelay: 10, maxRetryAfter: 5000 })
    const asked = (retryAfterMs: number): number | null =>
      strategy.onRetry(failure('RATE_LIMITED', { retryAfterMs }), 1)
    expect([asked(1500), asked(3_600_000)]).toEqual([1500, 5000])
  })

  const wrong = [
    ['maxRetries', -1],
    ['maxRetries', 1.5],
    ['baseDelay', Number.NaN],
    ['maxDelay', '10'],
    ['maxRetryAfter', Infinity],
    ['jitter', 'yes'],
  ] as const
  test.each(wrong)('UPP-026 the option %s: %s is refused with value and type', (name, value) => {
    expect(() => new ExponentialBackoff({ [name]: value })).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(new RegExp(`${name} is .*${value}.* \\(${typeof value}\\)`)),
      }),
    )
  })
})

test.each([
  ['ExponentialBackoff', (maxRetries: number) => new ExponentialBackoff({ maxRetries })],
  ['LinearBackoff', (maxRetries: number) => new LinearBackoff({ maxRetries, delay: 0 })],
])('UPP-026 UPP-027 %s repeats as often as it is asked to, also never', (_name, make) => {
  for (const maxRetries of [0, 1, 2, 5]) {
    const strategy = make(maxRetries)
    const answers = [1, 2, 3, 4, 5, 6].map((attempt) =>
      strategy.onRetry(failure('PROVIDER_ERROR'), attempt),
    )
    expect(answers.map((answer) => answer !== null)).toEqual(
      [1, 2, 3, 4, 5, 6].map((attempt) => attempt <= maxRetries),
    )
  }
})

test('UPP-027 the delay is the given one, also 0; 1000 ms by default', () => {
  const delays = [0, 1, 70_000, undefined].map((delay) =>
    new LinearBackoff(delay === undefined ? {} : { delay }).onRetry(failure('PROVIDER_ERROR'), 1),
  )
  expect(delays).toEqual([0, 1, 70_000, 1000])
})

describe('LinearBackoff and NoRetry', () => {
  test('UPP-027 the same delay each time', async () => {
    const retryStrategy = new LinearBackoff({ maxRetries: 3, delay: 250 })
    const waits = await waitsOf(anthropic, failing(9, status(503)), { retryStrategy })
    expect(waits).toEqual([250, 250, 250])
    expect(() => new LinearBackoff({ delay: -1 })).toThrow(/delay is -1 \(number\)/)
  })

  test('UPP-027 or longer, if the vendor asks', async () => {
    const retryStrategy = new LinearBackoff({ maxRetries: 1, delay: 250 })
    const fail = status(503, { 'retry-after': '0.4' })
    expect(await waitsOf(anthropic, failing(1, fail), { retryStrategy })).toEqual([400])
  })

  test.each(operations)('UPP-028 $name: NoRetry sends one request only', async (operation) => {
    const { fetch, seen } = stub(status(503))
    const running = operation.run({ apiKey, fetch, retryStrategy: new NoRetry() })
    await expect(running).rejects.toMatchObject({ code: 'PROVIDER_ERROR' })
    expect(seen).toHaveLength(1)
  })
})

describe('what is repeated', () => {
  const always = { onRetry: (): number => 0 }

  test.each(operations)('UPP-029 $name: 429 then 200', async (operation) => {
    const { fetch, seen } = stub(failing(1, status(429, { 'retry-after-ms': '1' })))
    const result = await operation.run({
      apiKey,
      fetch,
      retryStrategy: new ExponentialBackoff({ baseDelay: 1 }),
    })
    expect(result).toEqual(expectedOf(operation))
    expect(seen).toHaveLength(2)
  })

  test.each(operations)(
    'UPP-029 $name: 400 never, even if the strategy would',
    async (operation) => {
      const { fetch, seen } = stub(status(400))
      await expect(operation.run({ apiKey, fetch, retryStrategy: always })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
      })
      expect(seen).toHaveLength(1)
    },
  )

  test.each([
    [401, 1],
    [402, 1],
    [403, 1],
    [404, 1],
    [408, 3],
    [409, 3],
    [413, 1],
    [422, 1],
    [429, 3],
    [500, 3],
    [502, 3],
    [503, 3],
    [529, 3],
  ])('UPP-029 HTTP %i is sent %i times by default', async (code, count) => {
    const { fetch, seen } = stub(status(code, { 'retry-after-ms': '0' }))
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const waits = waitsOf(anthropic, (one) => fetch(one.url, {}) as Promise<Response>)
    await waits
    vi.restoreAllMocks()
    expect(seen).toHaveLength(count)
  })

  test('UPP-029 a spent quota is not, though its status is 429', async () => {
    const openai = operations.find(({ name }) => name === 'openai: generate')!
    const body = { error: { message: 'You exceeded your quota', code: 'insufficient_quota' } }
    const { fetch, seen } = stub(() => Response.json(body, { status: 429 }))
    await expect(openai.run({ apiKey, fetch, retryStrategy: always })).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
    })
    expect(seen).toHaveLength(1)
    const headers = { 'x-should-retry': 'true' }
    const insisting = stub(() => Response.json(body, { status: 429, headers }))
    await openai.run({ apiKey, fetch: insisting.fetch, retryStrategy: always }).catch(() => {})
    expect(insisting.seen).toHaveLength(1)
  })

  test.each([
    ['true', 400, 2],
    ['false', 503, 1],
  ])('UPP-029 x-should-retry: %s on HTTP %i is obeyed', async (word, code, count) => {
    const { fetch, seen } = stub(failing(1, status(code, { 'x-should-retry': word })))
    const retryStrategy = new ExponentialBackoff({ baseDelay: 1 })
    await anthropic.run({ apiKey, fetch, retryStrategy }).catch(() => {})
    expect(seen).toHaveLength(count)
  })

  test('UPP-029 a lost connection is, by default; the caller’s own time limit is not', async () => {
    const { fetch, seen } = stub((one, count) => {
      if (count === 1) throw new TypeError('fetch failed')
      return hello(one)
    })
    expect(await anthropic.run({ apiKey, fetch })).toBe('Hello')
    expect(seen).toHaveLength(2)
    const hanging = stub(() => new Promise<Response>(() => {}))
    await expect(
      anthropic.run({ apiKey, fetch: hanging.fetch, timeout: 20 }),
    ).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(hanging.seen).toHaveLength(1)
  })

  test.each(operations)(
    'UPP-029 $name: an abort during the wait ends it immediately',
    async (operation) => {
      const { fetch, seen } = stub(status(503))
      const controller = new AbortController()
      const running = operation.run(
        { apiKey, fetch, retryStrategy: { onRetry: () => 60_000 } },
        controller.signal,
      )
      const inTime = new Promise<boolean>((resolve) =>
        setTimeout(() => {
          controller.abort()
          resolve(settlesWithin(50, running))
        }, 15),
      )
      await expect(running).rejects.toMatchObject({
        code: 'CANCELLED',
        modality: operation.modality,
        provider: operation.provider.name,
      })
      expect(await inTime).toBe(true)
      expect(seen).toHaveLength(1)
    },
  )
})

test.each<[string, RetryStrategy, number]>([
  ['after a failure', { onRetry: () => 60_000 }, 1],
  ['before a request', { beforeRequest: () => 60_000, onRetry: () => null }, 0],
])(
  'UPP-029 UPP-025 the vendor’s own call stops waiting %s, not only the one who asked',
  async (_name, retryStrategy, sent) => {
    vi.useFakeTimers()
    const { fetch, seen } = stub(status(503))
    const controller = new AbortController()
    const request = {
      messages: [new UserMessage('Hi')],
      params: {},
      tools: [],
      config: { apiKey, fetch, retryStrategy },
      signal: controller.signal,
      clock: systemClock,
      ids: uuidV4,
    }
    const { provider } = anthropic
    const failed = provider.handlers
      .llm!.bind(provider('m'))
      .complete(request)
      .catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(1000)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort()
    expect(await failed).toMatchObject({ code: 'CANCELLED' })
    expect(vi.getTimerCount()).toBe(0)
    expect(seen).toHaveLength(sent)
  },
)

describe('streams', () => {
  const { text } = helloBody('https://x.test/v1/messages', '"stream":true')
  const frames = text.split(/(?<=\n\n)/)
  const overloaded = `event: error\ndata: ${JSON.stringify({
    type: 'error',
    error: { type: 'overloaded_error', message: 'Overloaded' },
  })}\n\n`
  const events =
    (...parts: string[]) =>
    (): Response =>
      new Response(parts.join(''), { headers: { 'content-type': 'text/event-stream' } })
  const always: RetryStrategy = { onRetry: () => 0 }

  test('UPP-029 an overload inside the stream is repeated before the first content', async () => {
    for (const before of [0, 1, 2, 3]) {
      const fail = events(...frames.slice(0, before), overloaded)
      const { fetch, seen } = stub(failing(2, fail))
      expect(await streaming.run({ apiKey, fetch, retryStrategy: always })).toBe('Hello')
      expect(seen, `after ${before} frames`).toHaveLength(3)
    }
  })

  test('UPP-029 and never after it: what came is handed out, then the error', async () => {
    const { llm } = await import('@skein/ai')
    for (const answer of [
      events(...frames.slice(0, 4), overloaded),
      cutAfter(frames.slice(0, 4)),
    ]) {
      const { fetch, seen } = stub(answer)
      const config = { apiKey, fetch, retryStrategy: always }
      const stream = llm({ model: streaming.provider('m'), config }).stream('Hi')
      const types: string[] = []
      const reading = (async () => {
        for await (const event of stream) types.push(event.type)
      })()
      await expect(reading).rejects.toMatchObject({
        code: expect.stringMatching(/PROVIDER_ERROR|NETWORK_ERROR/),
      })
      expect(types).toEqual(['message_start', 'content_block_start', 'text_delta'])
      expect(seen).toHaveLength(1)
    }
  })

  test('UPP-029 a repeated stream shows one beginning', async () => {
    const { llm } = await import('@skein/ai')
    const { fetch } = stub(failing(1, events(...frames.slice(0, 2), overloaded)))
    const config = { apiKey, fetch, retryStrategy: always }
    const types: string[] = []
    for await (const { type } of llm({ model: streaming.provider('m'), config }).stream('Hi')) {
      types.push(type)
    }
    expect(types.filter((type) => type === 'message_start')).toHaveLength(1)
    expect(types.at(-1)).toBe('message_stop')
  })

  /** Sends the frames, then breaks the connection. */
  function cutAfter(parts: readonly string[]): Answer {
    return () => {
      const rest = [...parts]
      const pull = (controller: ReadableStreamDefaultController): void => {
        const part = rest.shift()
        if (part === undefined) controller.error(new TypeError('terminated'))
        else controller.enqueue(new TextEncoder().encode(part))
      }
      return new Response(new ReadableStream({ pull }), {
        headers: { 'content-type': 'text/event-stream' },
      })
    }
  }
})
