/**
 * Our client against the vendor server: every vendor, every way of cutting a stream, every fault.
 * The traffic is generated from the vendors' documentation, not recorded.
 */
import {
  embedding,
  image,
  isUPPError,
  LinearBackoff,
  llm,
  NoRetry,
  type LLMInstance,
  type StreamEvent,
  type Tool,
} from '@skein/ai'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import {
  calls,
  cuts,
  fails,
  reasons,
  says,
  startVendorServer,
  stops,
  vendorServer,
  waits,
  type Fault,
  type ScriptStep,
  type VendorServer,
} from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import type { VendorServerOptions } from '../../src/testing/vendor-server/vendor-server.ts'
import { vendors, type VendorUnderTest } from './vendors.ts'

const clock = manualClock(0)

const tricky = 'Grüße, 世界! 🧵 "quoted" \\ back\r\nslash \u2028 end'

const add: Tool = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  run: ({ a, b }: { a: number; b: number }) => a + b,
}

/** Reasoning, text and two calls; then an answer. */
const conversation: readonly ScriptStep[] = [
  [
    reasons('Let me add.'),
    says(tricky),
    calls('add', { a: 1, b: 2 }),
    calls('add', { a: 3, b: 4 }),
  ],
  says('3 and 7.'),
]

function client(vendor: VendorUnderTest, server: VendorServer, more: object = {}): LLMInstance {
  return llm({
    model: vendor.model,
    config: {
      fetch: server.fetch,
      baseUrl: `http://vendor.test${vendor.prefix}`,
      apiKey: 'sk-test',
      retryStrategy: new NoRetry(),
    },
    ...more,
  })
}

async function streamTexts(model: LLMInstance): Promise<{ text: string; events: StreamEvent[] }> {
  const events: StreamEvent[] = []
  for await (const event of model.stream('What is 1+2?')) events.push(event)
  const texts = events.map((event) => (event.type === 'text_delta' ? event.delta.text : ''))
  return { text: texts.join(''), events }
}

describe.each(vendors)('$name', (vendor) => {
  test('UPP-145 UPP-146 streams a tool round; waiting gives the same turn', async () => {
    const streamed = client(vendor, vendorServer(conversation), { tools: [add] }).stream(
      '1+2, 3+4?',
    )
    for await (const event of streamed) void event
    const turn = await streamed.turn
    const waited = await client(vendor, vendorServer(conversation), { tools: [add] }).generate(
      '1+2, 3+4?',
    )
    expect(turn.messages.map((message) => message.text)).toEqual(
      waited.messages.map((message) => message.text),
    )
    expect(turn.messages[1]?.text).toBe(tricky)
    expect(turn.response.text).toBe('3 and 7.')
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual([3, 7])
    expect(waited.toolExecutions.map(({ result }) => result)).toEqual([3, 7])
    // Mistral tells usage unasked; the server plays OpenAI, which has to be asked.
    if (vendor.name !== 'mistral') expect(turn.usage.outputTokens).toBe(waited.usage.outputTokens)
    expect(waited.usage.inputTokens).toBeGreaterThan(0)
  })

  test('UPP-095 every size of network reads and every line end give the same events', async () => {
    const whole = await streamTexts(client(vendor, vendorServer([says(tricky)], { clock })))
    expect(whole.text).toBe(tricky)
    for (const chunkBytes of [1, 2, 7]) {
      for (const lineEnd of ['\n', '\r\n', '\r'] as const) {
        if (lineEnd === '\r' && vendor.prefix === '/api') continue // NDJSON knows no bare CR
        const server = vendorServer([says(tricky)], { chunkBytes, lineEnd, clock })
        const { events } = await streamTexts(client(vendor, server))
        expect(events).toEqual(whole.events)
      }
    }
  })

  test('UPP-147 structured output comes back as data', async () => {
    const structure = {
      type: 'object',
      properties: { n: { type: 'number' } },
      required: ['n'],
      additionalProperties: false,
    }
    const server = vendorServer([says('{"n":7}')])
    const turn = await client(vendor, server, { structure }).generate('A number, please.')
    expect(turn.data).toEqual({ n: 7 })
  })

  test.each(faultCases)('$title', async ({ fault, code, status }) => {
    const server = vendorServer([says('one two three four'), says('again')], { faults: [fault] })
    const error = await client(vendor, server)
      .stream('Hi')
      .turn.catch((thrown: unknown) => thrown)
    if (!isUPPError(error)) throw new Error(`Not a UPPError: ${String(error)}`)
    expect(error.code).toBe(code)
    if (status !== undefined) expect(error.statusCode).toBe(status)
    expect(error.provider).toBe(vendor.model.provider.name)
    // The next request is served as if nothing had happened.
    expect((await client(vendor, server).generate('Hi')).response.text).not.toBe('')
  })

  test('a wait that the vendor asks for is obeyed, and the retry succeeds', async () => {
    const fault: Fault = {
      kind: 'error',
      code: 'RATE_LIMITED',
      status: 429,
      headers: { 'retry-after': '0.02' },
    }
    const server = vendorServer([says('Hello')], { faults: [fault] })
    const delays: number[] = []
    const retryStrategy = {
      onRetry: (error: { retryAfterMs?: number | undefined }) => {
        delays.push(error.retryAfterMs ?? -1)
        return error.retryAfterMs ?? null
      },
    }
    const config = {
      fetch: server.fetch,
      baseUrl: `http://vendor.test${vendor.prefix}`,
      apiKey: 'sk-test',
      retryStrategy,
    }
    const turn = await llm({ model: vendor.model, config }).stream('Hi').turn
    expect(turn.response.text).toBe('Hello')
    expect(delays).toEqual([20])
    expect(server.requests).toHaveLength(2)
  })

  test('an overload told inside a 200 stream is repeated before the first token, not after', async () => {
    const fault = (afterEvents: number): Fault => ({
      kind: 'error_event',
      code: 'PROVIDER_ERROR',
      status: 529,
      afterEvents,
    })
    const config = (server: VendorServer): object => ({
      config: {
        fetch: server.fetch,
        baseUrl: `http://vendor.test${vendor.prefix}`,
        apiKey: 'sk-test',
        retryStrategy: new LinearBackoff({ maxRetries: 2, delay: 1 }),
      },
    })
    const early = vendorServer([says('x'), says('Hello')], { faults: [fault(0)] })
    expect((await client(vendor, early, config(early)).stream('Hi').turn).response.text).toBe(
      'Hello',
    )
    const late = vendorServer([says('one two three four five six'), says('never')], {
      faults: [fault(4)],
    })
    await expect(client(vendor, late, config(late)).stream('Hi').turn).rejects.toMatchObject({
      code: 'PROVIDER_ERROR',
    })
    expect(late.requests).toHaveLength(1)
  })
})

interface FaultCase {
  readonly title: string
  readonly fault: Fault
  readonly code: string
  readonly status?: number
}

const faultCases: readonly FaultCase[] = [
  {
    title: '429',
    fault: { kind: 'error', code: 'RATE_LIMITED' },
    code: 'RATE_LIMITED',
    status: 429,
  },
  {
    title: '529',
    fault: { kind: 'error', code: 'PROVIDER_ERROR', status: 529 },
    code: 'PROVIDER_ERROR',
    status: 529,
  },
  {
    title: '500',
    fault: { kind: 'error', code: 'PROVIDER_ERROR', status: 500 },
    code: 'PROVIDER_ERROR',
    status: 500,
  },
  {
    title: 'a page of a proxy',
    fault: { kind: 'html', status: 502 },
    code: 'PROVIDER_ERROR',
    status: 502,
  },
  {
    title: 'a page with status 200',
    fault: { kind: 'html', status: 200 },
    code: 'INVALID_RESPONSE',
  },
  { title: 'cut before the headers', fault: { kind: 'cut' }, code: 'NETWORK_ERROR' },
  { title: 'cut in the body', fault: { kind: 'cut', afterBytes: 300 }, code: 'NETWORK_ERROR' },
  {
    title: 'malformed JSON',
    fault: { kind: 'malformed', afterEvents: 3 },
    code: 'INVALID_RESPONSE',
  },
  {
    title: 'an error event',
    fault: { kind: 'error_event', code: 'PROVIDER_ERROR', afterEvents: 3 },
    code: 'PROVIDER_ERROR',
  },
]

test.each(vendors)('$name: a script that fails or is cut shows as such', async (vendor) => {
  const ask = (step: ScriptStep, more: VendorServerOptions = {}): Promise<unknown> =>
    client(vendor, vendorServer([step], more))
      .stream('Hi')
      .turn.catch((error: unknown) => error)
  expect(await ask(fails({ code: 'CONTEXT_LENGTH_EXCEEDED', message: 'Too long.' }))).toMatchObject(
    {
      code: vendor.name === 'ollama' ? 'INVALID_REQUEST' : 'CONTEXT_LENGTH_EXCEEDED',
    },
  )
  expect(await ask([says('part'), cuts()])).toMatchObject({ code: 'INVALID_RESPONSE' })
  expect(await ask([says('part'), stops('max_tokens')])).toMatchObject({ stopReason: 'max_tokens' })
})

describe.each([
  ['before the headers', { kind: 'stall' }],
  ['in the body', { kind: 'stall', afterBytes: 40 }],
] as const)('a vendor that stalls %s', (_, fault) => {
  test.each(vendors)(
    '$name: the timeout ends it, and the server sees the client leave',
    async (vendor) => {
      const server = vendorServer([says('never heard')], { faults: [fault] })
      const config = {
        fetch: server.fetch,
        baseUrl: `http://vendor.test${vendor.prefix}`,
        apiKey: 'sk-test',
        timeout: 30,
        retryStrategy: new NoRetry(),
      }
      await expect(llm({ model: vendor.model, config }).generate('Hi')).rejects.toMatchObject({
        code: 'TIMEOUT',
      })
      await expect.poll(() => server.requests[0]?.isAborted).toBe(true)
    },
  )
})

describe('over a socket', () => {
  test.each(vendors)('$name: byte by byte, tools, faults, no connection left', async (vendor) => {
    await using server = await startVendorServer([...conversation, says('Hi')], {
      chunkBytes: 23,
      faults: [undefined, undefined, { kind: 'cut', afterBytes: 100 }],
    })
    const config = {
      baseUrl: server.url + vendor.prefix,
      apiKey: 'sk-test',
      retryStrategy: new NoRetry(),
    }
    const model = llm({ model: vendor.model, config, tools: [add] })
    const stream = model.stream('1+2, 3+4?')
    for await (const event of stream) void event
    expect((await stream.turn).response.text).toBe('3 and 7.')
    await expect(model.stream('Hi').turn).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
    expect(server.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST'])
  })

  test('an abort reaches the server', async () => {
    await using server = await startVendorServer([[says('a b c'), waits(Infinity)]])
    const config = { baseUrl: server.baseUrls.openai, apiKey: 'sk-test' }
    for await (const event of llm({ model: openai('gpt-5'), config }).stream('Hi'))
      if (event.type === 'text_delta') break
    await expect.poll(() => server.requests[0]?.isAborted).toBe(true)
    await expect.poll(() => server.openConnections).toBe(0)
  })
})

test('a wrong key is refused in the words of each vendor, and never repeated in the error', async () => {
  for (const vendor of vendors) {
    const server = vendorServer([says('Hi')], { apiKey: 'sk-right' })
    const error = await client(vendor, server)
      .generate('Hi')
      .catch((thrown: unknown) => thrown)
    const statusCode = vendor.name === 'bedrock' ? 403 : 401
    expect(error).toMatchObject({ code: 'AUTHENTICATION_FAILED', statusCode })
    expect(String(error)).not.toContain('sk-test')
    expect(server.model.requests).toHaveLength(0)
  }
})

test('a request that breaks a rule is refused with its name', async () => {
  const server = vendorServer([says('Hi')])
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
  const response = await server.fetch('http://vendor.test/v1/messages', { method: 'POST', body })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain('max-tokens')
})

describe('other modalities', () => {
  const configOf = (server: VendorServer, prefix: string): object => ({
    config: { fetch: server.fetch, baseUrl: `http://vendor.test${prefix}`, apiKey: 'sk-test' },
  })

  test.each([
    ['openai', openai('text-embedding-3-small'), '/v1'],
    ['google', google('gemini-embedding-001'), '/v1beta'],
    ['ollama', ollama('nomic'), '/api'],
  ] as const)('UPP-149 %s: embeddings are the same for the same text', async (_, model, prefix) => {
    const server = vendorServer([])
    const embedder = embedding({ model, ...configOf(server, prefix) })
    const { embeddings } = await embedder.embed(['one', 'two', 'one'])
    expect(embeddings).toHaveLength(3)
    expect(embeddings[0]?.vector).toEqual(embeddings[2]?.vector)
    expect(embeddings[0]?.vector).not.toEqual(embeddings[1]?.vector)
  })

  test('UPP-150 images are made, edited and streamed with previews', async () => {
    const server = vendorServer([])
    const painter = image({
      model: openai('gpt-image-1'),
      params: { partial_images: 2 },
      ...configOf(server, '/v1'),
    })
    const { images } = await painter.generate('A thread.')
    expect(images).toHaveLength(1)
    const types: string[] = []
    for await (const event of painter.stream!('A thread.')) types.push(event.type)
    expect(types.filter((type) => type === 'preview')).toHaveLength(2)
    const imagen = image({ model: google('imagen-4'), ...configOf(server, '/v1beta') })
    expect((await imagen.generate('A thread.')).images).toHaveLength(1)
  })
})
