import {
  AssistantMessage,
  Audio,
  embedding,
  ErrorCode,
  Image,
  image,
  isUPPError,
  llm,
  NoRetry,
  ToolResultMessage,
  UPPError,
  UserMessage,
  type ProviderConfig,
} from '@skein/ai'
import { describe, expect, test } from 'vitest'
import { expectedOf, operations, type Operation } from './support/operations.ts'
import {
  EVENT_STREAM,
  brokenFrame,
  bytesOf,
  hello,
  helloBody,
  stub,
  type Answer,
} from './support/stub.ts'
import { llmVendors } from './support/vendors.ts'
import { countOf } from '../support/counts.ts'
import { settlesWithin } from '../support/settles-within.ts'

const apiKey = 'sk-test-0123456789'

async function errorOf(
  operation: Operation,
  answer: Answer,
  config: ProviderConfig = {},
  signal?: AbortSignal,
): Promise<UPPError> {
  const { fetch } = stub(answer)
  const settings = { apiKey, fetch, retryStrategy: new NoRetry(), ...config }
  const outcome = await operation.run(settings, signal).then(
    (value) => new Error(`no error, but ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  expect(outcome).toBeInstanceOf(UPPError)
  return outcome as UPPError
}

const refused = Object.assign(new TypeError('fetch failed'), {
  cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
})
const json =
  (text: string, type = 'application/json') =>
  (): Response =>
    new Response(text, { headers: { 'content-type': type } })
const broken = (): Response => {
  const pull = (controller: ReadableStreamDefaultController): void =>
    controller.error(new TypeError('terminated'))
  return new Response(new ReadableStream({ pull }), {
    headers: { 'content-type': 'application/json' },
  })
}

const failures: readonly (readonly [name: string, answer: Answer, code: string])[] = [
  ['connection refused', () => Promise.reject(refused), 'NETWORK_ERROR'],
  ['a thrown string', () => Promise.reject('boom'), 'NETWORK_ERROR'],
  ['a fetch that answers nothing', () => undefined as unknown as Response, 'NETWORK_ERROR'],
  ['a connection that breaks', broken, 'NETWORK_ERROR'],
  ['an empty body', json(''), 'INVALID_RESPONSE'],
  ['no JSON', json('{"a":'), 'INVALID_RESPONSE'],
  ['null', json('null'), 'INVALID_RESPONSE'],
  ['a list', json('[]'), 'INVALID_RESPONSE'],
  ['a text', json('"hello"'), 'INVALID_RESPONSE'],
  ['an empty object', json('{}'), 'INVALID_RESPONSE'],
  ['a web page', json('<!doctype html><title>Login</title>', 'text/html'), 'INVALID_RESPONSE'],
  ['an error with HTTP 200', json('{"error":{"message":"it broke down"}}'), 'PROVIDER_ERROR'],
  ['a redirect', () => redirect('https://elsewhere.test/login?token=1'), 'INVALID_RESPONSE'],
  [
    'a page of a proxy',
    () => new Response('<html><title>502 Bad Gateway</title></html>', { status: 502 }),
    'PROVIDER_ERROR',
  ],
]

function redirect(location: string): Response {
  return new Response(null, { status: 307, headers: { location } })
}

describe.each(failures)('%s', (_name, answer, code) => {
  test.each(operations)('UPP-030 UPP-034 UPP-060 $name', async (operation) => {
    const error = await errorOf(operation, answer)
    expect(error.code).toBe(code)
    expect([error.provider, error.modality]).toEqual([operation.provider.name, operation.modality])
    expect(error.message.length).toBeGreaterThan(8)
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code, message: error.message })
  })
})

describe('fields', () => {
  test.each(operations)(
    'UPP-031 $name: message, code, provider, modality, status, cause',
    async (operation) => {
      const body = { error: { message: 'No such thing', type: 'not_found_error', code: 404 } }
      const answer = (): Response =>
        Response.json(body, {
          status: 404,
          headers: { 'x-request-id': 'req-7', 'x-ratelimit-remaining-requests': '9' },
        })
      const error = await errorOf(operation, answer)
      expect(error).toMatchObject({
        name: 'UPPError',
        message: 'No such thing',
        code: 'MODEL_NOT_FOUND',
        provider: operation.provider.name,
        modality: operation.modality,
        statusCode: 404,
        requestId: 'req-7',
        rateLimit: { 'x-ratelimit-remaining-requests': '9' },
        body: JSON.stringify(body),
      })
      expect(error.cause).toBeUndefined()
      expect(await errorOf(operation, () => Promise.reject(refused))).toMatchObject({
        code: 'NETWORK_ERROR',
        statusCode: undefined,
        cause: refused,
      })
    },
  )

  const whole = operations.filter(({ modality, isStream }) => modality !== 'llm' && !isStream)

  test.each(whole)('UPP-031 $name: an error inside HTTP 200 has that status', async (operation) => {
    const body = { error: { message: 'It broke down', type: 'x_new' } }
    expect(await errorOf(operation, json(JSON.stringify(body)))).toMatchObject({
      message: 'It broke down',
      code: 'PROVIDER_ERROR',
      provider: operation.provider.name,
      modality: operation.modality,
      statusCode: 200,
      body: JSON.stringify(body),
    })
  })

  test.each(operations)(
    'UPP-031 $name: a redirect has its status and its place',
    async (operation) => {
      expect(
        await errorOf(operation, () => redirect('https://elsewhere.test/login?token=1')),
      ).toMatchObject({
        code: 'INVALID_RESPONSE',
        statusCode: 307,
        message: expect.stringContaining('https://elsewhere.test/login (HTTP 307)'),
      })
    },
  )

  test('UPP-032 the twelve codes', () => {
    expect(Object.values(ErrorCode).toSorted()).toEqual([
      'AUTHENTICATION_FAILED',
      'CANCELLED',
      'CONTENT_FILTERED',
      'CONTEXT_LENGTH_EXCEEDED',
      'INVALID_REQUEST',
      'INVALID_RESPONSE',
      'MODEL_NOT_FOUND',
      'NETWORK_ERROR',
      'PROVIDER_ERROR',
      'QUOTA_EXCEEDED',
      'RATE_LIMITED',
      'TIMEOUT',
    ])
  })
})

const statuses = [
  [400, 'INVALID_REQUEST'],
  [401, 'AUTHENTICATION_FAILED'],
  [402, 'QUOTA_EXCEEDED'],
  [403, 'AUTHENTICATION_FAILED'],
  [404, 'MODEL_NOT_FOUND'],
  [408, 'TIMEOUT'],
  [409, 'PROVIDER_ERROR'],
  [413, 'INVALID_REQUEST'],
  [422, 'INVALID_REQUEST'],
  [429, 'RATE_LIMITED'],
  [500, 'PROVIDER_ERROR'],
  [502, 'PROVIDER_ERROR'],
  [503, 'PROVIDER_ERROR'],
  [504, 'PROVIDER_ERROR'],
  [529, 'PROVIDER_ERROR'],
] as const

describe.each(statuses)('HTTP %i is %s', (status, code) => {
  test.each(operations)('UPP-033 $name', async (operation) => {
    const unknown = {
      message: 'An error of a new kind',
      type: 'x_new',
      code: 'x_new',
      status: 'X_NEW',
    }
    const bodies = ['', 'plain text', '<html>page</html>', '{"unknown":"shape"}']
    const words = [{ error: unknown }, [{ error: unknown }], { error: unknown.message }, { type: 'error', error: unknown }] // prettier-ignore
    for (const body of [...bodies, ...words.map((one) => JSON.stringify(one))]) {
      const error = await errorOf(operation, () => new Response(body, { status }))
      expect([error.code, error.statusCode], body).toEqual([code, status])
    }
  })
})

describe('cause', () => {
  test.each(operations)(
    'UPP-035 $name: the network error itself, the parse error',
    async (operation) => {
      expect((await errorOf(operation, () => Promise.reject(refused))).cause).toBe(refused)
      for (const name of ['AbortError', 'TimeoutError']) {
        const stopped = new DOMException('by the fetch in use', name)
        const { cause, code } = await errorOf(operation, () => Promise.reject(stopped))
        expect(cause, name).toBe(stopped)
        expect(code).toBe(name === 'AbortError' ? 'CANCELLED' : 'TIMEOUT')
      }
      const { cause } = await errorOf(operation, json('{"a":'))
      expect(cause).toBeInstanceOf(SyntaxError)
      const reason = new Error('the user left')
      const controller = new AbortController()
      controller.abort(reason)
      const cancelled = await errorOf(operation, hello, {}, controller.signal)
      expect(cancelled.code).toBe('CANCELLED')
      expect(causesOf(cancelled)).toContain(reason)
    },
  )

  test.each(operations.filter(({ isStream }) => isStream))(
    'UPP-035 $name: a frame that is not JSON has the parse error as its cause',
    async (operation) => {
      const types: Record<string, string> = {
        ollama: 'application/x-ndjson',
        bedrock: EVENT_STREAM,
      }
      const type = types[operation.vendor] ?? 'text/event-stream'
      const answer = () => new Response(brokenFrame(type), { headers: { 'content-type': type } })
      const error = await errorOf(operation, answer)
      expect(error).toMatchObject({ code: 'INVALID_RESPONSE', modality: operation.modality })
      expect(error.cause).toBeInstanceOf(SyntaxError)
    },
  )

  function causesOf(error: unknown): unknown[] {
    const { cause } = error as { cause?: unknown }
    return cause === undefined ? [] : [cause, ...causesOf(cause)]
  }
})

describe('codes beyond the status', () => {
  const network = [
    ['ECONNREFUSED', /nothing listens/i, /baseUrl/],
    ['ENOTFOUND', /host name/i, /baseUrl/],
    ['EAI_AGAIN', /name server/i, /network/],
    ['ECONNRESET', /closed by the other side/i, /retries/],
    ['UND_ERR_SOCKET', /closed by the other side/i, /retries/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /certificate/i, /NODE_EXTRA_CA_CERTS/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /certificate/i, /authority/],
    ['EPROTO', /TLS/i, /http rather than https/],
    ['HPE_INVALID_CONSTANT', /not HTTP/i, /https rather than http/],
  ] as const

  test.each(network)(
    'UPP-036 %s is a NETWORK_ERROR that says what to do',
    async (code, message, hint) => {
      const cause = Object.assign(new Error(`low level ${code}`), { code })
      const aggregate = new AggregateError([cause], '')
      for (const thrown of [cause, new TypeError('fetch failed', { cause }), aggregate]) {
        const error = await errorOf(operations[0]!, () => Promise.reject(thrown))
        expect(error).toMatchObject({ code: 'NETWORK_ERROR', cause: thrown })
        expect(error.message).toMatch(message)
        expect(error.hint).toMatch(hint)
      }
    },
  )

  const kinds = ['llm', 'embedding', 'image'].map((modality) =>
    operations.find((operation) => operation.modality === modality)!,
  )
  test.each(kinds)(
    'UPP-036 $name: a timeout is TIMEOUT, a malformed body INVALID_RESPONSE',
    async (operation) => {
      const never: Answer = () => new Promise(() => {})
      expect(await errorOf(operation, never, { timeout: 10 })).toMatchObject({ code: 'TIMEOUT' })
      for (const body of ['', '{"a":'])
        expect(await errorOf(operation, json(body))).toMatchObject({ code: 'INVALID_RESPONSE' })
    },
  )

  test.each(operations)(
    'UPP-036 $name: abort while waiting is CANCELLED within 50 ms',
    async (operation) => {
      const controller = new AbortController()
      // A fetch that ignores its signal must not hold the caller.
      const answer = (): Promise<Response> => new Promise(() => {})
      const failing = errorOf(operation, answer, {}, controller.signal)
      await new Promise((resolve) => setTimeout(resolve, 15))
      controller.abort()
      expect(await settlesWithin(50, failing)).toBe(true)
      const error = await failing
      expect(error.code).toBe('CANCELLED')
    },
  )

  test.each(operations)(
    'UPP-036 $name: abort in the body is CANCELLED and ends it',
    async (operation) => {
      const controller = new AbortController()
      let cancelled = false
      const answer: Answer = ({ url, body }) => {
        const { type, text } = helloBody(url, body)
        const stream = new ReadableStream<Uint8Array>({
          start: (stream) => stream.enqueue(new TextEncoder().encode(text.slice(0, 10))),
          cancel: () => void (cancelled = true),
        })
        setTimeout(() => controller.abort(), 10)
        return new Response(stream, { headers: { 'content-type': type } })
      }
      const error = await errorOf(operation, answer, {}, controller.signal)
      expect(error.code).toBe('CANCELLED')
      expect(cancelled).toBe(true)
    },
  )

  const openai = (message: string, code: string, status: number) => (): Response =>
    Response.json(
      { error: { message, type: 'invalid_request_error', code, param: null } },
      { status },
    )
  const anthropic = (type: string, message: string, status: number) => (): Response =>
    Response.json({ type: 'error', error: { type, message }, request_id: 'r' }, { status })
  const google = (status: string, message: string, code: number) => (): Response =>
    Response.json({ error: { code, message, status } }, { status: code })

  const told: readonly (readonly [vendor: string, code: string, answer: Answer])[] = [
    ['openai', 'CONTEXT_LENGTH_EXCEEDED', openai('Too long', 'context_length_exceeded', 400)],
    ['openai', 'QUOTA_EXCEEDED', openai('No money', 'insufficient_quota', 429)],
    ['openai', 'CONTENT_FILTERED', openai('Blocked', 'content_policy_violation', 400)],
    ['openai', 'MODEL_NOT_FOUND', openai('No model', 'model_not_found', 400)],
    ['azure-openai', 'CONTENT_FILTERED', openai('Filtered', 'content_filter', 400)],
    [
      'anthropic',
      'CONTEXT_LENGTH_EXCEEDED',
      anthropic('invalid_request_error', 'prompt is too long: 250000 tokens > 200000 maximum', 400),
    ],
    [
      'anthropic',
      'QUOTA_EXCEEDED',
      anthropic('billing_error', 'Your credit balance is too low', 403),
    ],
    ['anthropic', 'RATE_LIMITED', anthropic('rate_limit_error', 'Slow down', 429)],
    [
      'google',
      'CONTEXT_LENGTH_EXCEEDED',
      google(
        'INVALID_ARGUMENT',
        'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
        400,
      ),
    ],
    ['google', 'AUTHENTICATION_FAILED', google('PERMISSION_DENIED', 'No access', 403)],
    [
      'google',
      'CONTENT_FILTERED',
      json('{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{}}'),
    ],
    [
      'ollama',
      'MODEL_NOT_FOUND',
      () => Response.json({ error: 'model "m" not found, try pulling it first' }, { status: 404 }),
    ],
  ]

  test.each(told)('UPP-036 %s: %s is recognised from its payload', async (vendor, code, answer) => {
    const operation = operations.find(({ name }) => name === `${vendor}: generate`)!
    expect(await errorOf(operation, answer)).toMatchObject({ code, provider: vendor })
  })
})

describe('waiting time', () => {
  const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1000)
  const told: readonly {
    readonly name: string
    readonly headers: () => Record<string, string>
    readonly ms: number | undefined
  }[] = [
    { name: 'seconds', headers: () => ({ 'retry-after': '3' }), ms: 3000 },
    { name: 'part of a second', headers: () => ({ 'retry-after': '0.25' }), ms: 250 },
    { name: 'a date', headers: () => ({ 'retry-after': inSeconds(30).toUTCString() }), ms: 30_000 },
    { name: 'a past date', headers: () => ({ 'retry-after': new Date(0).toUTCString() }), ms: 0 },
    { name: 'no date', headers: () => ({ 'retry-after': 'soon' }), ms: undefined },
    {
      name: 'milliseconds before seconds',
      headers: () => ({ 'retry-after-ms': '1250.4', 'retry-after': '9' }),
      ms: 1251,
    },
    { name: 'minutes', headers: () => openaiReset('tokens', '0', '6m0s'), ms: 360_000 },
    { name: 'Groq seconds', headers: () => openaiReset('requests', '0', '1.5s'), ms: 1500 },
    { name: 'ms', headers: () => openaiReset('requests', '0', '120ms'), ms: 120 },
    { name: 'a limit not reached', headers: () => openaiReset('tokens', '7', '9s'), ms: undefined },
    {
      name: 'RFC 3339 of the limit that is reached',
      headers: () => ({
        'anthropic-ratelimit-tokens-remaining': '0',
        'anthropic-ratelimit-tokens-reset': inSeconds(30).toISOString(),
        'anthropic-ratelimit-requests-remaining': '5',
        'anthropic-ratelimit-requests-reset': inSeconds(900).toISOString(),
      }),
      ms: 30_000,
    },
    {
      name: 'a moment in milliseconds',
      headers: () => ({
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': `${inSeconds(30).getTime()}`,
      }),
      ms: 30_000,
    },
  ]

  function openaiReset(kind: string, remaining: string, reset: string): Record<string, string> {
    return {
      [`x-ratelimit-remaining-${kind}`]: remaining,
      [`x-ratelimit-reset-${kind}`]: reset,
    }
  }

  test.each(told)('UPP-036 $name', async ({ headers, ms }) => {
    const answer = (): Response => new Response('{}', { status: 429, headers: headers() })
    const { retryAfterMs } = await errorOf(operations[0]!, answer)
    if (ms === undefined) return expect(retryAfterMs).toBeUndefined()
    // Exact, except for moments: dates have whole seconds, and time passes.
    expect(retryAfterMs).toBeGreaterThanOrEqual(ms === 30_000 ? ms - 2000 : ms)
    expect(retryAfterMs).toBeLessThanOrEqual(ms)
  })

  test('UPP-036 RetryInfo of Google', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '17.5s' }]
    const body = { error: { code: 429, message: 'Slow', status: 'RESOURCE_EXHAUSTED', details } }
    const operation = operations.find(({ name }) => name === 'google: generate')!
    const error = await errorOf(operation, () => Response.json(body, { status: 429 }))
    expect(error.retryAfterMs).toBe(17_500)
  })
})

describe('decoding', () => {
  const streamOf = (parts: readonly Uint8Array[], type: string): Response => {
    const rest = [...parts]
    const pull = (controller: ReadableStreamDefaultController): void => {
      const part = rest.shift()
      if (part) controller.enqueue(part)
      else controller.close()
    }
    return new Response(new ReadableStream({ pull }), { headers: { 'content-type': type } })
  }
  const streams = operations.filter(({ isStream }) => isStream)
  const EVERY = countOf({ fast: 7, all: 1, deep: 1 })

  /** Each format at every byte once, in `npm test` at every seventh; vendors that share it at fewer. */
  const paths = new Set<string>()

  test.each(streams)(`UPP-095 $name: cut at every byte of ${EVERY}`, async (operation) => {
    let length = Infinity
    let step = 1
    for (let cut = 1; cut < length; cut += step) {
      const { fetch } = stub(({ url, body }) => {
        const { type, text } = helloBody(url, body)
        if (cut === 1) step = paths.has(text) ? 9 * EVERY : EVERY
        paths.add(text)
        const bytes = bytesOf(type, text.replaceAll('Hel', 'Hél'))
        length = Math.min(bytes.length, 1200)
        return streamOf([bytes.subarray(0, cut), bytes.subarray(cut)], type)
      })
      const expected = operation.modality === 'llm' ? 'Héllo' : expectedOf(operation)
      expect(await operation.run({ apiKey, fetch }), `cut at ${cut}`).toEqual(expected)
    }
  })

  /** The data of each event in two lines. */
  const inLines = (text: string): string => text.replaceAll(/^data: ?\{/gm, 'data: {\ndata: ')

  test.each(streams)(
    'UPP-095 $name: byte by byte, with CRLF, CR, comments, data in lines and no last blank line',
    async (operation) => {
      const shapes = [
        (text: string) => text,
        (text: string) => text.replaceAll('\n', '\r\n'),
        (text: string) => (text.includes('data:') ? text.replaceAll('\n', '\r') : text),
        (text: string) => (text.includes('data:') ? `: hi\n\n${text}: bye\n\n` : text),
        (text: string) => text.trimEnd(),
        (text: string) => `\ufeff${text}`,
        inLines,
        (text: string) => inLines(text).replaceAll('\n', '\r\n'),
      ]
      // A binary stream has no lines.
      const isBinary = operation.vendor === 'bedrock'
      for (const shape of isBinary ? shapes.slice(0, 1) : shapes) {
        const { fetch } = stub(({ url, body }) => {
          const { type, text } = helloBody(url, body)
          const bytes = bytesOf(type, shape(text))
          return streamOf(
            [...bytes].map((byte) => new Uint8Array([byte])),
            type,
          )
        })
        expect(await operation.run({ apiKey, fetch }), String(shape)).toEqual(expectedOf(operation))
      }
    },
  )

  test.each(streams)('UPP-095 $name: an end that never came is an error', async (operation) => {
    const error = await errorOf(operation, ({ url, body }) => {
      const { type, text } = helloBody(url, body)
      const frames = text.split(type === 'text/event-stream' ? /(?<=\n\n)/ : /(?<=\n)/)
      const kept = frames.length === 1 ? [] : frames.slice(0, 1)
      return streamOf([bytesOf(type, kept.join(''))], type)
    })
    expect(error).toMatchObject({ code: 'INVALID_RESPONSE', provider: operation.provider.name })
  })

  test.each(llmVendors)(
    'UPP-095 $name: an event that is not JSON is an error, not silence',
    async ({ name }) => {
      const operation = operations.find((one) => one.name === `${name}: stream`)!
      const error = await errorOf(operation, ({ url, body }) => {
        const { type } = helloBody(url, body)
        return streamOf([brokenFrame(type)], type)
      })
      expect(error).toMatchObject({ code: 'INVALID_RESPONSE' })
      expect(error.cause).toBeInstanceOf(SyntaxError)
    },
  )

  test('UPP-095 a server that does not stream is read all the same', async () => {
    for (const operation of streams) {
      const { fetch } = stub(
        ({ url }) =>
        hello({ url: url.replace('streamGenerateContent?alt=sse', 'generateContent').replace('converse-stream', 'converse'), body: '' }), // prettier-ignore
      )
      expect(await operation.run({ apiKey, fetch }), operation.name).toEqual(expectedOf(operation))
    }
  })

  test('UPP-095 content in the same read as an error is handed out first', async () => {
    const { provider } = operations.find(({ name }) => name === 'anthropic: stream')!
    const { text } = helloBody('https://x.test/messages', '"stream":true')
    const head = text.slice(0, text.indexOf('event: content_block_stop'))
    const failure =
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"Oh"}}\n\n'
    const { fetch } = stub(json(head + failure, 'text/event-stream'))
    let got = ''
    const reading = (async () => {
      for await (const event of llm({ model: provider('m'), config: { apiKey, fetch } }).stream(
        'Hi',
      )) {
        if (event.type === 'text_delta') got += event.delta.text
      }
    })()
    await expect(reading).rejects.toMatchObject({ code: 'PROVIDER_ERROR', message: 'Oh' })
    expect(got).toBe('Hello')
  })
})

test('UPP-030 what callers without types get wrong is a UPPError, too', () => {
  const nothing = undefined as never
  const wrong: Record<string, () => unknown> = {
    llm: () => llm(nothing),
    embedding: () => embedding(nothing),
    image: () => image(nothing),
    user: () => new UserMessage(nothing),
    assistant: () => new AssistantMessage(null as never),
    calls: () => new AssistantMessage('x', {} as never),
    results: () => new ToolResultMessage(nothing),
    bytes: () => Image.fromBytes(nothing),
    sound: () => Audio.fromBytes('RIFF' as never, 'audio/wav'),
  }
  for (const [name, make] of Object.entries(wrong)) {
    let error: unknown
    try {
      make()
    } catch (thrown) {
      error = thrown
    }
    expect(isUPPError(error) && error.code, name).toBe('INVALID_REQUEST')
  }
})
