import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { gateway } from '@skein/ai/gateway'
import { KEYS, startKit, type Kit } from '../http/http-kit.ts'
import { countOf } from '../../../../conformance/support/counts.ts'

const RUNS = countOf({ fast: 100, all: 400, deep: 5000 })
const SEED = Number(process.env['SKEIN_SEED'] ?? 77)
/** No answer takes longer; one that does hangs. */
const LIMIT_MS = 10_000

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Vendor = 'openai' | 'anthropic'

interface Endpoint {
  readonly path: string
  readonly vendor: Vendor
  readonly body: Json
  /** Whether an answer without stream is one of this endpoint. */
  readonly isAnswer: (value: Record<string, unknown>) => boolean
}

const image = { url: 'data:image/png;base64,iVBORw0KGgo=' }
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const endpoints: readonly Endpoint[] = [
  {
    path: '/v1/chat/completions',
    vendor: 'openai',
    body: {
      model: 'desk',
      messages: [
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello' },
            { type: 'image_url', image_url: image },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'c1',
              type: 'function',
              function: { name: 'weather', arguments: '{"city":"Graz"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
        { role: 'user', content: 'And now?' },
      ],
      tools: [
        { type: 'function', function: { name: 'weather', description: 'Weather.', parameters } },
      ],
      tool_choice: 'auto',
      temperature: 0.5,
      max_tokens: 100,
      stop: ['x'],
      n: 1,
      stream: false,
      stream_options: { include_usage: true },
      response_format: { type: 'text' },
    },
    isAnswer: (value) => value['object'] === 'chat.completion' && Array.isArray(value['choices']),
  },
  {
    path: '/v1/responses',
    vendor: 'openai',
    body: {
      model: 'desk',
      instructions: 'Be kind.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
        { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: 'sunny' },
        { role: 'user', content: 'And now?' },
      ],
      tools: [{ type: 'function', name: 'weather', parameters, strict: false }],
      previous_response_id: null,
      conversation: null,
      store: true,
      stream: false,
      max_output_tokens: 100,
      text: { format: { type: 'text' } },
      reasoning: { effort: 'low' },
    },
    isAnswer: (value) => value['object'] === 'response' && Array.isArray(value['output']),
  },
  {
    path: '/v1/messages',
    vendor: 'anthropic',
    body: {
      model: 'desk',
      max_tokens: 100,
      system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello' },
            {
              type: 'image',
              source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
            },
          ],
        },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Graz' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'sunny' }] },
      ],
      tools: [{ name: 'weather', description: 'Weather.', input_schema: parameters }],
      tool_choice: { type: 'auto' },
      thinking: { type: 'disabled' },
      stop_sequences: ['x'],
      stream: false,
      metadata: { user_id: 'u' },
    },
    isAnswer: (value) => value['type'] === 'message' && Array.isArray(value['content']),
  },
]

const errors: unknown[] = []
let kit: Kit
let handlers: Readonly<Record<'the runtime' | 'a gateway', (request: Request) => Promise<Response>>>

beforeAll(async () => {
  const onError = (error: unknown): void => void errors.push(error)
  const limits = { requestsPerMinute: Infinity, requestsPerMinutePerAddress: Infinity }
  kit = await startKit({ http: { onError, limits }, runtime: { onError } })
  const models = { desk: scripted(() => says('Words of a model.')) }
  handlers = {
    'the runtime': (request) => kit.http.fetch(request),
    'a gateway': gateway({ models }),
  }
})
afterAll(() => kit.stop())

// What stands in the place of something right.
const junk: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    '',
    ' ',
    '\0',
    '\ud800',
    '__proto__',
    '../../etc/passwd',
    'conv_!!!',
    'resp_e30',
    'call_WyJhIiwiYiJd',
    'data:image/png;base64,!!!',
    'file:///etc/passwd',
    'http://127.0.0.1:1/x',
    'x'.repeat(20_000),
    [],
    {},
    [[]],
    [null],
    { type: 'unknown' },
    { type: 'text' },
    { role: 'user' },
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.jsonValue({ maxDepth: 3 }).map((value) => value as Json),
)

/** Every place in a value, as a path. */
function places(
  value: Json,
  path: readonly (string | number)[] = [],
): (readonly (string | number)[])[] {
  const inner = Array.isArray(value)
    ? value.flatMap((item, index) => places(item, [...path, index]))
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, item]) => places(item, [...path, key]))
      : []
  return path.length === 0 ? inner : [path, ...inner]
}

type Change =
  | { readonly do: 'put'; readonly value: Json }
  | { readonly do: 'remove' }
  | { readonly do: 'double' }
  | { readonly do: 'bury'; readonly depth: number }
  | { readonly do: 'name'; readonly key: string; readonly value: Json }

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 5, arbitrary: junk.map((value): Change => ({ do: 'put', value })) },
  fc.constant<Change>({ do: 'remove' }),
  fc.constant<Change>({ do: 'double' }),
  fc.nat(200).map((depth): Change => ({ do: 'bury', depth })),
  fc.record({
    do: fc.constant('name' as const),
    key: fc.constantFrom('__proto__', 'constructor', 'toString', 'stream', 'type', 'x'),
    value: junk,
  }),
)

function changed(body: Json, path: readonly (string | number)[], what: Change): Json {
  const copy = structuredClone(body)
  let parent = copy as Record<string | number, Json>
  for (const key of path.slice(0, -1)) {
    const next = parent[key]
    if (typeof next !== 'object' || next === null) return copy // an earlier change removed the place
    parent = next as Record<string | number, Json>
  }
  const key = path.at(-1)!
  const old = parent[key] ?? null
  if (what.do === 'put') parent[key] = what.value
  else if (what.do === 'remove') delete parent[key]
  else if (what.do === 'double') parent[key] = [old, old]
  else if (what.do === 'bury')
    parent[key] = Array.from({ length: what.depth }).reduce<Json>((inner) => [inner], old)
  else if (typeof old === 'object' && old !== null)
    Object.defineProperty(old, what.key, {
      value: what.value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return copy
}

const headers = fc.dictionary(
  fc.constantFrom(
    'anthropic-version',
    'anthropic-beta',
    'openai-beta',
    'openai-organization',
    'accept',
    'idempotency-key',
    'x-stainless-retry-count',
    'content-encoding',
    'x-http-method-override',
    'cookie',
    'range',
    'traceparent',
    'expect',
  ),
  fc.oneof(
    fc.constantFrom('2023-06-01', '*', 'gzip', '0', 'text/event-stream', '00-x-y-01'),
    fc.string({ unit: 'grapheme-ascii', maxLength: 40 }),
  ),
  { maxKeys: 3 },
)

interface Sent {
  readonly endpoint: Endpoint
  readonly path: string
  readonly body: string | Uint8Array<ArrayBuffer>
  readonly headers: Record<string, string>
  readonly type: string
}

const requests: fc.Arbitrary<Sent> = fc.constantFrom(...endpoints).chain((endpoint) => {
  const mutated = fc
    .array(fc.tuple(fc.constantFrom(...places(endpoint.body)), change), {
      minLength: 0,
      maxLength: 4,
    })
    .map((list) => list.reduce((body, [path, what]) => changed(body, path, what), endpoint.body))
    .chain((body) =>
      fc
        .boolean()
        .map((isStream): Json =>
          isStream && typeof body === 'object' && body !== null && !Array.isArray(body)
            ? { ...body, stream: true }
            : body,
        ),
    )
    .map((body) => JSON.stringify(body))
  const raw = fc.oneof(
    fc.string({ unit: 'binary' }),
    junk.map((value) => JSON.stringify(value)),
    fc.constantFrom(
      '{"a":'.repeat(3000),
      '['.repeat(100_000),
      '',
      '{}',
      'null',
      '{"model":"desk"}',
      '{"model":"desk","model":"none"}',
    ),
    fc
      .nat(JSON.stringify(endpoint.body).length)
      .map((at) => JSON.stringify(endpoint.body).slice(0, at)),
    fc.uint8Array({ maxLength: 100 }).map((bytes) => new Uint8Array(bytes)),
  )
  const path = fc.oneof(
    { weight: 8, arbitrary: fc.constant(endpoint.path) },
    fc.constantFrom(
      `${endpoint.path}/`,
      `${endpoint.path}?beta=true&x=%00`,
      `${endpoint.path}?key=${'x'.repeat(3000)}`,
      endpoint.path.replace('/v1/', '/v1//'),
      endpoint.path.toUpperCase(),
      `${endpoint.path}%2f`,
      `/v1/models/${'%2e'.repeat(20)}`,
    ),
  )
  return fc.record({
    endpoint: fc.constant(endpoint),
    path,
    body: fc.oneof({ weight: 5, arbitrary: mutated }, { weight: 1, arbitrary: raw }),
    headers,
    type: fc.oneof(
      { weight: 9, arbitrary: fc.constant('application/json') },
      fc.constantFrom('text/plain', 'application/json; charset=utf-16', ''),
    ),
  })
})

/** An error in the form that clients of the vendor read. */
function isErrorOf(vendor: Vendor, value: unknown): boolean {
  const body = value as { type?: unknown; error?: { type?: unknown; message?: unknown } }
  const { type, message } = body.error ?? {}
  const isRead = typeof message === 'string' && message !== '' && typeof type === 'string'
  return vendor === 'openai' ? isRead : isRead && body.type === 'error'
}

const INTERNALS =
  /node_modules|\.[mc]?[tj]s:\d|\/(?:home|Users|root)\/|at \w+ \(|Cannot read prop|is not a function|is not iterable|of undefined|\[object/

async function inTime<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} hangs`)), LIMIT_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** Checks one answer; returns its status. */
async function check(sent: Sent, response: Response): Promise<number> {
  const { endpoint, path } = sent
  const text = await inTime(response.text(), 'the body')
  const what = `${path} ${response.status} ${text.slice(0, 300)}`
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('text/event-stream')) {
    const events = text.split('\n\n').filter(Boolean)
    expect(events.length, what).toBeGreaterThan(0)
    for (const event of events)
      for (const line of event.split('\n')) {
        if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
        expect(() => JSON.parse(line.slice(6)) as unknown, line).not.toThrow()
      }
    expect(text).not.toMatch(/node_modules|at \w+ \(/)
    return response.status
  }
  const body = JSON.parse(text) as Record<string, unknown>
  if (response.ok) {
    if (!path.startsWith('/v1/models')) expect(endpoint.isAnswer(body), what).toBe(true)
    return response.status
  }
  // What is no address of the vendor has no form of the vendor.
  const isAddress = path.split('?')[0] === endpoint.path
  if (isAddress) expect(isErrorOf(endpoint.vendor, body) ? '' : what).toBe('')
  else
    expect(typeof (body['error'] as { message?: unknown } | undefined)?.message, what).toBe(
      'string',
    )
  const { message } = body['error'] as { message: string }
  expect(message.replaceAll(/"[^"]*"/g, '""'), what).not.toMatch(INTERNALS)
  return response.status
}

describe.each(['the runtime', 'a gateway'] as const)(
  '%s, asked in the formats of vendors',
  (name) => {
    test(
      `${RUNS} mutated requests: a right answer or an error of the vendor, never a failure inside`,
      { timeout: 600_000 },
      async () => {
        const statuses = new Map<number, number>()
        await fc.assert(
          fc.asyncProperty(requests, async (sent) => {
            const plain = Object.entries(sent.headers).map(([key, value]) => [
              key,
              value.replace(/[^\x20-\x7e]/g, ''),
            ])
            const init = {
              method: 'POST',
              headers: {
                ...Object.fromEntries(plain),
                ...(sent.type && { 'content-type': sent.type }),
                authorization: `Bearer ${KEYS.acme.key}`,
              },
              body: sent.body,
            }
            const response = await inTime(
              handlers[name](new Request(`http://localhost${sent.path}`, init)),
              'the answer',
            )
            const status = await check(sent, response)
            statuses.set(status, (statuses.get(status) ?? 0) + 1)
            expect(({} as { x?: unknown }).x).toBeUndefined()
          }),
          { numRuns: RUNS, seed: SEED, endOnFailure: true },
        )
        expect(errors).toEqual([])
        // Enough of them were right ones, and enough were not.
        expect(statuses.get(200) ?? 0).toBeGreaterThan(RUNS / 50)
        expect(
          [...statuses].reduce((sum, [status, count]) => sum + (status >= 400 ? count : 0), 0),
        ).toBeGreaterThan(RUNS / 5)
        expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([])
      },
    )

    test.each(endpoints)('$path: every plain mistake is an error in its form', async (endpoint) => {
      const mistakes: readonly [string, RequestInit][] = [
        ['no JSON', { body: '{' }],
        ['no object', { body: '[]' }],
        ['no model', { body: '{}' }],
        [
          'another model',
          { body: JSON.stringify({ ...(endpoint.body as object), model: 'nobody' }) },
        ],
        ['no messages', { body: JSON.stringify({ model: 'desk' }) }],
        [
          'another media type',
          { body: JSON.stringify(endpoint.body), headers: { 'content-type': 'text/plain' } },
        ],
        ...['__proto__', 'constructor', 'toString'].map((type): [string, RequestInit] => {
          const content = [{ type, text: 'x' }]
          const messages = [{ role: 'user', content }]
          const all = { model: 'desk', max_tokens: 9, messages, input: messages }
          return [`content of type ${type}`, { body: JSON.stringify(all) }]
        }),
        ['invalid UTF-8', { body: new Uint8Array([0x7b, 0xff, 0x7d]) }],
        [
          'nested too deep',
          { body: `{"model":"desk","messages":${'['.repeat(500)}${']'.repeat(500)}}` },
        ],
      ]
      for (const [what, init] of mistakes) {
        const all = {
          'content-type': 'application/json',
          authorization: `Bearer ${KEYS.acme.key}`,
          ...(init.headers as Record<string, string>),
        }
        const request = new Request(`http://localhost${endpoint.path}`, {
          method: 'POST',
          ...init,
          headers: all,
        })
        const response = await inTime(handlers[name](request), what)
        if (response.ok) continue // a gateway does not look at the media type
        const body: unknown = await response.json()
        expect([what, isErrorOf(endpoint.vendor, body) ? 'right' : body]).toEqual([what, 'right'])
        expect(JSON.stringify(body)).not.toMatch(INTERNALS)
      }
    })
  },
)

test('without a key, the error is in the form of the vendor', async () => {
  for (const { path, vendor, body } of endpoints) {
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    }
    const response = await kit.http.fetch(new Request(`http://localhost${path}`, init))
    expect(response.status).toBe(401)
    const answer: unknown = await response.json()
    expect(isErrorOf(vendor, answer) ? 'right' : answer).toBe('right')
  }
})
