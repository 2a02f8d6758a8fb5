import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { llm, NoRetry, type KeyStrategy, type ProviderConfig, type RetryStrategy } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { afterEach, describe, expect, test } from 'vitest'
import { expectedOf, operations, type Operation } from './support/operations.ts'
import { bytesOf, hello, helloBody, stub } from './support/stub.ts'
import { vendors } from './support/vendors.ts'
import { settlesWithin } from '../support/settles-within.ts'

const key = 'sk-test-0123456789'

test('every shipped vendor is in the table', () => {
  expect(vendors.length).toBeGreaterThanOrEqual(13)
  expect(operations.length).toBeGreaterThan(35)
})

describe('apiKey', () => {
  test.each(operations)('UPP-012 $name: a string, a function and a strategy', async (operation) => {
    let asked = 0
    const strategy: KeyStrategy = { getKey: async () => `${key}-${++asked}` }
    const forms: ProviderConfig['apiKey'][] = [key, () => key, async () => key, strategy, strategy]
    const { fetch, seen } = stub()
    for (const apiKey of forms) await operation.run({ apiKey: apiKey!, fetch })
    const sent = seen.map(({ headers }) => credentialOf(headers))
    expect(sent).toEqual([key, key, key, `${key}-1`, `${key}-2`])
  })

  test('UPP-012 the environment variable of the vendor is the default', async () => {
    const operation = operations.find(({ vendor }) => vendor === 'anthropic')!
    process.env['ANTHROPIC_API_KEY'] = key
    try {
      const { fetch, seen } = stub()
      await operation.run({ fetch })
      expect(credentialOf(seen[0]!.headers)).toBe(key)
    } finally {
      delete process.env['ANTHROPIC_API_KEY']
    }
  })

  test('UPP-012 the first of the vendor’s environment variables that is set is the default', async () => {
    const operation = operations.find(({ name }) => name === 'google: generate')!
    const names = ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY']
    const { fetch, seen } = stub()
    try {
      for (const name of names.toReversed()) {
        process.env[name] = `key-of-${name}`
        await operation.run({ fetch })
      }
    } finally {
      for (const name of names) delete process.env[name]
    }
    const sent = seen.map(({ headers }) => credentialOf(headers))
    expect(sent).toEqual(names.toReversed().map((name) => `key-of-${name}`))
  })

  test('UPP-012 a missing, empty or failing key is AUTHENTICATION_FAILED, and nothing is sent', async () => {
    const operation = operations.find(({ vendor }) => vendor === 'anthropic')!
    const { fetch, seen } = stub()
    const broken = (): never => {
      throw new Error('vault is sealed')
    }
    const config = { fetch, retryStrategy: new NoRetry() }
    const failed = { code: 'AUTHENTICATION_FAILED', provider: 'anthropic' }
    await expect(operation.run(config)).rejects.toMatchObject({
      ...failed,
      hint: expect.stringContaining('ANTHROPIC_API_KEY'),
    })
    await expect(operation.run({ ...config, apiKey: ' ' })).rejects.toMatchObject(failed)
    await expect(operation.run({ ...config, apiKey: broken })).rejects.toMatchObject({
      ...failed,
      cause: expect.objectContaining({ message: 'vault is sealed' }),
    })
    expect(seen).toEqual([])
  })
})

/** Whatever header the vendor wants it in. */
function credentialOf(headers: Headers): string | undefined {
  const bearer = headers.get('authorization')?.replace('Bearer ', '')
  return (
    bearer ??
    headers.get('x-api-key') ??
    headers.get('x-goog-api-key') ??
    headers.get('api-key') ??
    undefined
  )
}

describe('baseUrl', () => {
  test.each(operations)('UPP-013 UPP-152 $name: prefix and trailing slashes', async (operation) => {
    const { fetch, seen } = stub()
    for (const end of ['', '/', '//']) {
      await operation.run({ apiKey: key, fetch, baseUrl: `http://127.0.0.1:8080/a/proxy${end}` })
    }
    const [first, ...rest] = seen.map(({ url }) => url)
    expect(first).toMatch(/^http:\/\/127\.0\.0\.1:8080\/a\/proxy\/[^/]/)
    expect(rest).toEqual([first, first])
  })

  test.each(operations)(
    'UPP-013 UPP-152 $name: a server on another port is reached',
    async (operation) => {
      const server = await listen()
      const config = { apiKey: key, baseUrl: `${server.url}/v9/` }
      expect(await operation.run(config)).toEqual(expectedOf(operation))
      expect(server.paths[0]).toMatch(/^\/v9\//)
    },
  )

  test('UPP-013 addresses that differ only in scheme, port, prefix or query are distinguished', async () => {
    const { fetch, seen } = stub()
    const bases = ['https://x.test/a', 'https://x.test/b', 'http://x.test/a', 'https://x.test:1/a', 'https://x.test/a?t=1'] // prettier-ignore
    for (const baseUrl of [...bases, ...bases])
      await operations[0]!.run({ apiKey: key, fetch, baseUrl })
    const expected = bases.map((base) => base.replace(/(?=\?|$)/, '/messages'))
    expect(seen.map(({ url }) => url)).toEqual([...expected, ...expected])
  })

  test('UPP-013 its query is kept next to that of the request', async () => {
    const { fetch, seen } = stub()
    const google = operations.find(({ name }) => name === 'google: stream')!
    await google.run({ apiKey: key, fetch, baseUrl: 'https://proxy.test/v1beta?tenant=7' })
    const url = new URL(seen[0]!.url)
    expect([...url.searchParams]).toEqual([
      ['tenant', '7'],
      ['alt', 'sse'],
    ])
    expect(url.pathname).toBe('/v1beta/models/m:streamGenerateContent')
  })

  test.each(['not a url', 'ftp://example.com', 'https://user:hunter22@example.com'])(
    'UPP-013 %s is refused before anything is sent',
    async (baseUrl) => {
      const { fetch, seen } = stub()
      const error = await operations[0]!
        .run({ apiKey: key, fetch, baseUrl })
        .catch((e: unknown) => e)
      expect(error).toMatchObject({ code: 'INVALID_REQUEST' })
      expect(String(error)).not.toContain('hunter22')
      expect(seen).toEqual([])
    },
  )
})

describe('timeout', () => {
  const never = (): Promise<Response> => new Promise(() => {})

  test.each(operations)('UPP-014 UPP-154 $name: no headers', async (operation) => {
    const { fetch } = stub(never)
    await expectTimeout(operation, { apiKey: key, fetch, timeout: 40 })
  })

  test.each(operations)(
    'UPP-014 UPP-154 UPP-164 $name: a body that never ends',
    async (operation) => {
      let cancelled = false
      const { fetch } = stub((seen) => {
        const { type, text } = helloBody(seen.url, seen.body)
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(new TextEncoder().encode(text.slice(0, 20))),
          cancel: () => void (cancelled = true),
        })
        return new Response(body, { headers: { 'content-type': type } })
      })
      await expectTimeout(operation, { apiKey: key, fetch, timeout: 40 })
      expect(cancelled).toBe(true)
    },
  )

  /** Answers with a failure whose body begins and never ends. */
  const unfinished = (): Response => {
    const start = (controller: ReadableStreamDefaultController): void =>
      controller.enqueue(new TextEncoder().encode('{"error":'))
    return new Response(new ReadableStream({ start }), { status: 500 })
  }

  test.each(operations)('UPP-014 $name: an error that never ends', async (operation) => {
    const { fetch } = stub(unfinished)
    const retryStrategy = new NoRetry()
    await expectTimeout(operation, { apiKey: key, fetch, timeout: 40, retryStrategy })
    await expectTimeout(operation, { apiKey: key, fetch, timeouts: { idleMs: 40 }, retryStrategy })
  })

  test('a call that is cancelled while an error arrives is CANCELLED', async () => {
    const { fetch } = stub(unfinished)
    const controller = new AbortController()
    const config = { apiKey: key, fetch, retryStrategy: new NoRetry() }
    const asking = llm({ model: anthropic('m'), config, signal: controller.signal }).generate('x')
    setTimeout(() => controller.abort(), 40)
    await expect(asking).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  const phases = [
    ['headersMs', never],
    ['firstByteMs', () => new Response(new ReadableStream())],
    [
      'idleMs',
      () => {
        const start = (controller: ReadableStreamDefaultController): void =>
          controller.enqueue(new TextEncoder().encode('{'))
        return new Response(new ReadableStream({ start }))
      },
    ],
    ['totalMs', never],
  ] as const

  test.each(phases)('UPP-014 timeouts.%s is a limit of its own', async (name, answer) => {
    const { fetch } = stub(answer)
    const error = await expectTimeout(operations[0]!, {
      apiKey: key,
      fetch,
      timeouts: { [name]: 40 },
    })
    expect(error).toMatchObject({
      hint: expect.stringMatching(name === 'totalMs' ? /timeout/ : name),
    })
  })

  test('UPP-014 timeouts.idleMs limits the wait for the first byte, unless firstByteMs does', async () => {
    const { fetch } = stub(() => new Response(new ReadableStream()))
    const config = { apiKey: key, fetch }
    for (const timeouts of [{ idleMs: 40 }, { idleMs: 60_000, firstByteMs: 40 }])
      await expectTimeout(operations[0]!, { ...config, timeouts })
  })

  test('UPP-014 a stream that keeps coming is not idle', async () => {
    const { text } = helloBody('https://x.test/messages', '"stream":true')
    const frames = text.split('\n\n').map((frame) => `${frame}\n\n`)
    const { fetch } = stub(() => {
      const pull = async (controller: ReadableStreamDefaultController): Promise<void> => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        const frame = frames.shift()
        if (frame) controller.enqueue(new TextEncoder().encode(frame))
        else controller.close()
      }
      return new Response(new ReadableStream({ pull }), {
        headers: { 'content-type': 'text/event-stream' },
      })
    })
    const operation = operations.find(({ name }) => name === 'anthropic: stream')!
    expect(await operation.run({ apiKey: key, fetch, timeouts: { idleMs: 100 } })).toBe('Hello')
  })

  test.each([[-1], [0], [Number.NaN], ['100']])(
    'UPP-014 %s is refused by name',
    async (timeout) => {
      const { fetch } = stub()
      const running = operations[0]!.run({ apiKey: key, fetch, timeout: timeout as number })
      await expect(running).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining(typeof timeout),
      })
    },
  )

  async function expectTimeout(operation: Operation, config: ProviderConfig): Promise<unknown> {
    const running = operation.run(config).then(
      () => 'no error',
      (thrown: unknown) => thrown,
    )
    expect(await settlesWithin(400, running)).toBe(true)
    const error = await running
    expect(error).toMatchObject({ code: 'TIMEOUT', modality: operation.modality })
    return error
  }
})

describe('fetch', () => {
  test.each(operations)(
    'UPP-015 UPP-153 $name: used for every request, retries too',
    async (operation) => {
      const { fetch, seen } = stub((one, count) =>
        count < 3 ? new Response('busy', { status: 503 }) : hello(one),
      )
      const retryStrategy = { onRetry: () => 0 }
      expect(await operation.run({ apiKey: key, fetch, retryStrategy })).toEqual(
        expectedOf(operation),
      )
      expect(seen).toHaveLength(3)
      expect(seen.every(({ method }) => method === 'POST')).toBe(true)
    },
  )

  test('UPP-015 a global fetch that was replaced is used', async () => {
    const original = globalThis.fetch
    const { fetch, seen } = stub()
    globalThis.fetch = fetch as typeof globalThis.fetch
    try {
      expect(await operations[0]!.run({ apiKey: key })).toEqual('Hello')
    } finally {
      globalThis.fetch = original
    }
    expect(seen).toHaveLength(1)
  })
})

describe('retryStrategy', () => {
  test.each(operations)('UPP-016 UPP-155 $name: asked about each failure', async (operation) => {
    const asked: unknown[] = []
    const retryStrategy: RetryStrategy = {
      onRetry(error, attempt) {
        asked.push([error.code, error.statusCode, attempt])
        return attempt < 3 ? 0 : null
      },
    }
    const { fetch, seen } = stub(() => new Response('{}', { status: 503 }))
    const running = operation.run({ apiKey: key, fetch, retryStrategy })
    await expect(running).rejects.toMatchObject({ code: 'PROVIDER_ERROR', statusCode: 503 })
    expect(seen).toHaveLength(3)
    expect(asked).toEqual([1, 2, 3].map((attempt) => ['PROVIDER_ERROR', 503, attempt]))
  })
})

describe('headers', () => {
  test.each(operations)(
    'UPP-017 UPP-018 $name: merged with those the vendor needs',
    async (operation) => {
      const { fetch, seen } = stub()
      await operation.run({ apiKey: key, fetch, headers: { 'X-Team': 'blue' } })
      const { headers } = seen[0]!
      expect(headers.get('x-team')).toBe('blue')
      expect(headers.get('content-type')).toBe('application/json')
      expect(credentialOf(headers)).toBe(key)
    },
  )

  test.each(operations)(
    'UPP-019 $name: the custom one wins, whatever its case',
    async (operation) => {
      const { fetch, seen } = stub()
      const headers = {
        'Content-Type': 'application/json; charset=utf-8',
        Authorization: 'Bearer other',
        'X-API-Key': 'other',
        'X-Goog-Api-Key': 'other',
        'API-KEY': 'other',
      }
      await operation.run({ apiKey: key, fetch, headers })
      const sent = seen[0]!.headers
      expect(sent.get('content-type')).toBe('application/json; charset=utf-8')
      expect([...sent].filter(([, value]) => value.includes(key))).toEqual([])
    },
  )

  test('UPP-019 a custom authorization needs no key', async () => {
    const { fetch, seen } = stub()
    const operation = operations.find(({ vendor }) => vendor === 'openai')!
    await operation.run({ fetch, headers: { Authorization: 'Bearer mine' } })
    expect(seen[0]!.headers.get('authorization')).toBe('Bearer mine')
  })

  test('UPP-017 one that cannot be sent is refused by name, without its value', async () => {
    const { fetch } = stub()
    const error = await operations[0]!
      .run({ apiKey: key, fetch, headers: { 'x-bad': 'top\r\nsecret: 1' } })
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('x-bad'),
    })
    expect(String(error)).not.toContain('secret')
  })
})

describe('params', () => {
  const params = { temperature: 0.123, x_unknown: { deep: [1, null, 'ü'] }, user: 'u-1' }

  test.each(operations)(
    'UPP-151 UPP-004 $name: in the body as they are, and nothing else changes with them',
    async (operation) => {
      const { fetch, seen } = stub()
      const model = operation.provider('m')
      const options = { model, config: { apiKey: key, fetch } }
      await runWith(operation, { ...options, params })
      const body = seen[0]!.body
      for (const [name, value] of Object.entries(params)) {
        expect(body.split(`"${name}":`)).toHaveLength(2)
        expect(body).toContain(`"${name}":${JSON.stringify(value)}`)
      }
      expect(params).toEqual({
        temperature: 0.123,
        x_unknown: { deep: [1, null, 'ü'] },
        user: 'u-1',
      })

      await runWith(operation, options)
      expect(without(params, JSON.parse(body))).toEqual(JSON.parse(seen.at(-1)!.body))
    },
  )
})

/** The body without the parameters, wherever they are, and without what only they had made. */
function without(params: object, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => without(params, item))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => !(name in params))
  const isLeft = ([, item]: [string, unknown]): boolean => JSON.stringify(item) !== '{}'
  const entries = kept.map(([name, item]): [string, unknown] => [name, without(params, item)])
  return Object.fromEntries(kept.length === 0 ? [] : entries.filter(isLeft))
}

async function runWith(
  { modality, isStream }: Operation,
  options: Parameters<typeof llm>[0],
): Promise<void> {
  const { embedding, image } = await import('@skein/ai')
  if (modality === 'embedding') await embedding(options).embed('Hello')
  else if (modality === 'image') {
    await (isStream ? image(options).stream('A dot').result : image(options).generate('A dot'))
  } else await (isStream ? llm(options).stream('Hi').turn : llm(options).generate('Hi'))
}

const servers: { close(): void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** The stub as a server, for the clients that do not go through `fetch`. */
async function listen(): Promise<{ url: string; paths: string[] }> {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url!)
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      const { type, text } = helloBody(`http://x${request.url}`, body)
      response.writeHead(200, { 'content-type': type }).end(bytesOf(type, text))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push({
    close() {
      server.closeAllConnections()
      server.close()
    },
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}
