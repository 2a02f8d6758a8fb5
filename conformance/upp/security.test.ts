import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import {
  createProvider,
  embedding,
  image,
  loggingMiddleware,
  llm,
  NoRetry,
  type Middleware,
  type ProviderConfig,
  type UPPError,
} from '@skein/ai'
import { calls as callsTool, says, scripted } from '@skein/ai/testing'
import { encodeBase64 } from '@skein/base'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { operations, type Operation } from './support/operations.ts'
import { selfSignedCertificate } from './support/self-signed.ts'
import { EVENT_STREAM, bytesOf, hello, stub, type Answer } from './support/stub.ts'
import { vendors } from './support/vendors.ts'

const canary = 'sk-canary/Zq7+Wx42==pq"9'
const forms = [
  canary,
  encodeURIComponent(canary),
  JSON.stringify(canary).slice(1, -1),
  encodeBase64(new TextEncoder().encode(canary)),
]

afterEach(() => {
  vi.restoreAllMocks()
})

/** Everything a log could print of an error. */
function printed(error: unknown): string {
  const chain: unknown[] = []
  for (let link = error; link; link = (link as { cause?: unknown }).cause) {
    const { message, stack, body } = link as UPPError
    chain.push(message, stack, body, JSON.stringify(link))
  }
  return [inspect(error, { depth: 12, showHidden: true }), String(error), ...chain].join('\n')
}

function expectClean(text: string): void {
  for (const form of forms) expect(text).not.toContain(form)
}

async function thrownBy(
  operation: Operation,
  answer: Answer,
  config: ProviderConfig = {},
): Promise<unknown> {
  const { fetch } = stub(answer)
  const settings = { apiKey: canary, fetch, retryStrategy: new NoRetry(), ...config }
  return operation.run(settings).then(
    () => expect.fail('no error'),
    (error: unknown) => error,
  )
}

describe('the key', () => {
  test.each(operations)(
    'UPP-037 $name: nothing is logged, in success and in failure',
    async (operation) => {
      const lines: unknown[] = []
      for (const method of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const) {
        vi.spyOn(console, method).mockImplementation((...parts) => void lines.push(...parts))
      }
      vi.spyOn(process, 'emitWarning').mockImplementation((warning) => void lines.push(warning))
      const { fetch } = stub()
      await operation.run({ apiKey: canary, fetch })
      await operation.run({ apiKey: canary, fetch, baseUrl: 'http://127.0.0.1:1/plain' })
      await thrownBy(operation, echo(500))
      expect(lines).toEqual([])
    },
  )

  test('UPP-037 the logging middleware does not print it, whatever the level', async () => {
    const lines: unknown[] = []
    const logging = loggingMiddleware({
      level: 'debug',
      logger: (...parts: unknown[]) => void lines.push(...parts),
    })
    const { provider } = operations[0]!
    for (const answer of [hello, echo(401)]) {
      const { fetch } = stub(answer)
      const config = { apiKey: canary, fetch, headers: { 'x-secret-token': `${canary}2` } }
      const model = llm({ model: provider('m'), config, middleware: [logging] })
      await model.generate('Hi').catch(() => {})
      await model.stream('Hi').turn.catch(() => {})
    }
    expect(lines.length).toBeGreaterThan(4)
    expectClean(inspect(lines, { depth: 12 }) + JSON.stringify(lines))
  })

  test('UPP-037 nor as a part of something else that it prints', async () => {
    const lines: unknown[] = []
    const logger = (...parts: unknown[]): void => void lines.push(...parts)
    const model = scripted([callsTool(`tool-${canary}`, {}), says('Done.')])
    const tool = { name: `tool-${canary}`, description: '', parameters: {}, run: () => 1 }
    await llm({
      model,
      tools: [tool],
      config: { apiKey: canary },
      middleware: [loggingMiddleware({ level: 'debug', logger })],
    }).generate('Hi')
    const log = JSON.stringify(lines)
    expect(log).toContain('tool tool-[redacted] called')
    expect(log).toContain('"toolName":"tool-[redacted]"')
    expectClean(log)
  })

  const echoes: readonly (readonly [name: string, answer: Answer])[] = [
    ['in the error body', echo(401)],
    ['in the error body of a success', echo(200)],
    ['in a page', () => new Response(`<html><title>${canary}</title></html>`, { status: 502 })],
    ['in a body that is not JSON', () => new Response(`{"key": ${canary}`)],
    ['in a header', () => new Response('{}', { status: 429, headers: headersWithKey() })],
    [
      'in a redirect',
      () =>
        new Response(null, {
          status: 302,
          headers: { location: `https://x.test/${encodeURIComponent(canary)}` },
        }),
    ],
    [
      'in a network error',
      () => Promise.reject(new TypeError(`bad ${canary}`, { cause: new Error(`deep ${canary}`) })),
    ],
    [
      'in the properties of a network error',
      () =>
        Promise.reject(
          Object.assign(new Error('x'), { request: { headers: new Headers({ a: canary }) } }),
        ),
    ],
    ['in an aggregate', () => Promise.reject(new AggregateError([new Error(canary)], 'all'))],
  ]

  describe.each(echoes)('echoed %s', (_name, answer) => {
    test.each(operations)('UPP-038 $name: is in no part of the error', async (operation) => {
      const error = await thrownBy(operation, answer)
      expectClean(printed(error))
    })
  })

  test('UPP-038 an echo inside a stream is cleaned as well', async () => {
    const operation = operations.find(({ name }) => name === 'anthropic: stream')!
    const frame = { type: 'error', error: { type: 'api_error', message: `no ${canary}` } }
    const answer = (): Response =>
      new Response(`event: error\ndata: ${JSON.stringify(frame)}\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      })
    const error = await thrownBy(operation, answer)
    expect(error).toMatchObject({ code: 'PROVIDER_ERROR', message: 'no [redacted]' })
    expectClean(printed(error))
  })

  test('UPP-038 keys of earlier attempts, custom credentials and Basic pairs are cleaned', async () => {
    const keys = ['first-key-111', 'second-key-222']
    const basic = `Basic ${encodeBase64(new TextEncoder().encode('me:hunter2222'))}`
    const answer = (): Response =>
      new Response(`${keys.join()} ${basic} x-token-333`, { status: 503 })
    const { fetch } = stub(answer)
    const error = await operations[0]!
      .run({
        apiKey: () => keys[Math.min(attempt++, 1)]!,
        fetch,
        headers: { 'Proxy-Authorization': basic, 'X-Auth-Token': 'x-token-333' },
        retryStrategy: { onRetry: (_error, count) => (count < 2 ? 0 : null) },
      })
      .catch((thrown: unknown) => thrown)
    const text = printed(error)
    for (const secret of [...keys, basic.slice(6), 'x-token-333'])
      expect(text).not.toContain(secret)
  })
  let attempt = 0

  test.each(operations)('UPP-038 $name: never in the address', async (operation) => {
    const { fetch, seen } = stub()
    await operation.run({ apiKey: canary, fetch })
    expectClean(seen[0]!.url)
  })

  test('UPP-038 a key with a line break in it is refused without being shown', async () => {
    const error = await thrownBy(operations[0]!, hello, { apiKey: 'sk-one\nsk-two-222' })
    expect(error).toMatchObject({ code: 'INVALID_REQUEST' })
    expect(printed(error)).not.toContain('sk-two')
  })

  function echo(status: number): Answer {
    return () => {
      const error = { message: `Incorrect API key provided: ${canary}`, code: 'invalid_api_key' }
      return Response.json({ error }, { status })
    }
  }

  function headersWithKey(): Record<string, string> {
    return { 'x-request-id': canary, 'x-ratelimit-limit-requests': canary }
  }
})

describe('limits', () => {
  test.each(operations)(
    'UPP-162 $name: a response over the limit is refused, and its body closed',
    async (operation) => {
      let cancelled = false
      // Bytes that are no message of a binary stream are refused before any limit.
      const isBinary = operation.vendor === 'bedrock' && operation.isStream
      const text = isBinary
        ? `${JSON.stringify({ type: 'x', p: 'x'.repeat(900) })}\n`
        : 'x'.repeat(1000)
      const chunk = bytesOf(isBinary ? EVENT_STREAM : '', text)
      const answer = (): Response => {
        const pull = (controller: ReadableStreamDefaultController): void =>
          controller.enqueue(chunk)
        const body = new ReadableStream({ pull, cancel: () => void (cancelled = true) })
        const type = operation.isStream ? 'text/event-stream' : 'application/json'
        return new Response(body, { headers: { 'content-type': type } })
      }
      const error = await thrownBy(operation, answer, { maxResponseBytes: 5000 })
      expect(error).toMatchObject({ code: 'INVALID_RESPONSE', modality: operation.modality })
      expect(inspect(error)).toMatch(/5000 bytes/)
      expect(cancelled).toBe(true)
    },
  )

  test('UPP-162 a declared length over the limit is refused before it is read', async () => {
    let pulled = false
    const answer = (): Response => {
      const body = new ReadableStream({ pull: () => void (pulled = true) }, { highWaterMark: 0 })
      return new Response(body, { headers: { 'content-length': '999999' } })
    }
    const error = await thrownBy(operations[0]!, answer, { maxResponseBytes: 5000 })
    expect(error).toMatchObject({
      code: 'INVALID_RESPONSE',
      hint: expect.stringContaining('maxResponseBytes'),
    })
    expect(pulled).toBe(false)
  })

  test('UPP-162 an endless error body does not fill the memory', async () => {
    let sent = 0
    const answer = (): Response => {
      const pull = (controller: ReadableStreamDefaultController): void => {
        sent += 65_536
        controller.enqueue(new Uint8Array(65_536).fill(97))
      }
      return new Response(new ReadableStream({ pull }), { status: 500 })
    }
    const error = (await thrownBy(operations[0]!, answer)) as UPPError
    expect(sent).toBeLessThan(1_000_000)
    expect(error.body!.length).toBeLessThan(5000)
  })
})

describe('redirects', () => {
  test('UPP-038 are not followed by any client: the key stays with the host it was given for', async () => {
    const paths: (string | undefined)[] = []
    const server = createServer((request, response) => {
      paths.push(request.url)
      request.resume()
      response.writeHead(307, { location: '/elsewhere?token=1' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    for (const config of [{}, { fetch: globalThis.fetch as never }]) {
      await expect(
        operations[0]!.run({ apiKey: canary, baseUrl, ...config }),
      ).rejects.toMatchObject({
        code: 'INVALID_RESPONSE',
        statusCode: 307,
        message: expect.stringMatching(/redirects .* to \/elsewhere \(HTTP 307\)/),
        hint: expect.stringContaining('baseUrl'),
      })
    }
    server.closeAllConnections()
    server.close()
    expect(paths).toHaveLength(2)
  })
})

describe('TLS', () => {
  test.each(vendors)('UPP-163 $name: the built-in address is https', async ({ name, provider }) => {
    const { fetch, seen } = stub()
    const mine = operations.filter((one) => one.provider === provider)
    expect(mine.length).toBeGreaterThan(0)
    for (const operation of mine) await operation.run({ apiKey: canary, fetch })
    // Ollama's own server speaks plain HTTP, and only on this machine.
    const expected = name === 'ollama' ? /^http:\/\/127\.0\.0\.1:11434\// : /^https:\/\//
    for (const { url } of seen) expect(url).toMatch(expected)
  })

  test('UPP-163 a certificate no one vouches for ends the call before the key is sent', async () => {
    let requests = 0
    const server = createSecureServer(selfSignedCertificate('localhost'), () => (requests += 1))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseUrl = `https://localhost:${(server.address() as AddressInfo).port}`
    const config = { apiKey: canary, baseUrl, retryStrategy: new NoRetry() }
    await expect(operations[0]!.run(config)).rejects.toMatchObject({
      code: 'NETWORK_ERROR',
      message: expect.stringContaining('certificate'),
      hint: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    })
    expect(requests).toBe(0)
    server.close()
  })
})

describe('code that is not ours', () => {
  /** Fails like a client library that prints what it was given. */
  const leaky = (config: ProviderConfig): never => {
    const cause = new Error(`headers: { authorization: 'Bearer ${config.apiKey as string}' }`)
    throw new Error(`401 for ${config.apiKey as string}`, { cause })
  }
  const capabilities = {
    streaming: true,
    tools: true,
    structuredOutput: true,
    imageInput: true,
    documentInput: true,
    videoInput: true,
    audioInput: true,
  }
  const made = { modelId: 'm', provider: 'leaky' }
  const provider = createProvider({
    name: 'leaky',
    llm: {
      capabilities,
      bind: () => ({
        ...made,
        capabilities,
        complete: async ({ config }) => leaky(config),
        stream: ({ config }) => leaky(config),
      }),
    },
    embedding: {
      maxBatchSize: 1,
      imageInput: false,
      bind: () => ({ ...made, embed: async ({ config }) => leaky(config) }),
    },
    image: {
      bind: () => ({
        ...made,
        capabilities: { generate: true, streaming: false, edit: false },
        generate: async ({ config }) => leaky(config),
      }),
    },
  })
  const model = provider('m')
  const config = { apiKey: canary }
  const calls: Record<string, (middleware: Middleware[]) => Promise<unknown>> = {
    generate: (middleware) => llm({ model, config, middleware }).generate('x'),
    stream: (middleware) => llm({ model, config, middleware }).stream('x').turn,
    embed: (middleware) => embedding({ model, config, middleware }).embed('x'),
    image: (middleware) => image({ model, config, middleware }).generate('x'),
  }

  test.each(Object.entries(calls))(
    'UPP-038 UPP-034 UPP-030 %s: a provider that prints its key',
    async (name, call) => {
      let told = ''
      const onError = (error: Error): void => void (told += printed(error))
      const error: unknown = await call([{ name: 'ears', onError }]).catch(
        (thrown: unknown) => thrown,
      )
      expect(printed(error)).toContain('401 for [redacted]')
      const modality = { embed: 'embedding', image: 'image' }[name] ?? 'llm'
      expect(error).toMatchObject({ provider: 'leaky', modality, code: 'PROVIDER_ERROR' })
      expectClean(printed(error))
      expect(told).not.toBe('')
      expectClean(told)
    },
  )

  test.each(Object.entries(calls))('UPP-038 %s: a hook that does', async (_, call) => {
    const onRequest: Middleware['onRequest'] = ({ request }) => leaky(request.config)
    const error: unknown = await call([{ name: 'mouth', onRequest }]).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', cause: { cause: expect.any(Error) } })
    expectClean(printed(error))
  })
})
