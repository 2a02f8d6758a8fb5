import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/http/routes.ts'
import { threadPartId } from '../../src/protocols/thread-part-id.ts'
import { errorsOf } from '../../src/http/openapi.ts'
import { STATUS, type ApiErrorCode } from '../../src/operations/http-error.ts'
import { KEYS, startKit, type Kit, type Who } from './http-kit.ts'
import { OpenApiClient, type Operation } from './openapi-client.ts'
import { buildWorld, type World } from './world.ts'

let kit: Kit
let small: Kit
let poor: Kit
let client: OpenApiClient
const seen = new Set<string>()

beforeAll(async () => {
  kit = await startKit({ http: { prefix: '/api', a2a: { agent: 'desk' }, playground: true } })
  // The same with limits that are soon reached.
  small = await startKit({
    runtime: { limits: { maxFileBytes: 50, variablesTtlMs: 0 } },
    http: {
      prefix: '/api',
      limits: { maxBodyBytes: 100, maxFileBytes: 100, maxImportBytes: 100, maxStreams: 0 },
    },
  })
  const spending = [{ per: 'tenant', periodMs: 3_600_000, maxInferences: 0 }] as const
  poor = await startKit({ runtime: { spending }, http: { prefix: '/api' } })
  const response = await kit.ask(undefined, 'GET', '/api/openapi.json')
  client = new OpenApiClient(await response.json())
})
afterAll(() => Promise.all([kit.stop(), small.stop(), poor.stop()]))

interface Changes {
  readonly who?: Who | undefined
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly kit?: Kit
}

/** Sends what the document says, with changes, and checks the answer against the document. */
async function send(
  operation: Operation,
  world: World,
  changes: Changes = {},
): Promise<{ status: number; code?: string; text: string }> {
  const params = { ...world.params, ...special(operation, world).params, ...changes.params }
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]!
    return operation.rest.includes(name)
      ? value.split('/').map(encodeURIComponent).join('/')
      : encodeURIComponent(value)
  })
  const query = new URLSearchParams({ ...special(operation, world).query, ...changes.query })
  const body =
    'body' in changes ? changes.body : (special(operation, world).body ?? operation.body?.example)
  const type: Record<string, string> =
    operation.body && operation.body.type !== '*/*' && body !== undefined
      ? { 'content-type': operation.body.type }
      : {}
  const who =
    'who' in changes
      ? changes.who
      : operation.scope === 'public'
        ? undefined
        : (special(operation, world).who ?? 'acme')
  const response = await (changes.kit ?? kit).ask(who, operation.method, `${path}?${query}`, body, {
    ...type,
    ...special(operation, world).headers,
    ...changes.headers,
  })
  const copy = response.headers.get('content-type')?.startsWith('text/event-stream')
    ? undefined
    : response.clone()
  expect(await client.problems(operation, response), `${operation.id} ${response.status}`).toEqual(
    [],
  )
  const text = (await copy?.text()) ?? ''
  const code =
    response.status >= 400
      ? (JSON.parse(text) as { error: { code: string } }).error.code
      : undefined
  if (code !== undefined) seen.add(`${operation.id} ${code}`)
  return { status: response.status, text, ...(code !== undefined && { code }) }
}

/** What the document cannot know: names that only this world has. */
function special(
  { id }: Operation,
  { threadId }: World,
): {
  body?: unknown
  params?: Record<string, string>
  query?: Record<string, string>
  headers?: Record<string, string>
  who?: Who
} {
  if (id === 'createThread')
    return { body: { agent: 'desk', message: { text: 'Hello' }, tags: ['a'] } }
  if (id === 'importThread') return { body: '' }
  if (id === 'createStudioSession') return { body: { key: KEYS.ada.key } }
  if (id === 'provideVariables') return { body: { VAULT_CODE: '1' } }
  if (id.endsWith('Endpoint')) return { params: { path: 'example' } }
  if (id === 'streamThread') return { query: { until: 'parked' } }
  if (id === 'resumeMcp') {
    const part = JSON.stringify({ id: 1, asked: [] })
    return { headers: { 'last-event-id': threadPartId('event', threadId, part) } }
  }
  if (id === 'decide') return { who: 'ada', params: { threadId } }
  return {}
}

const ids = ROUTES.map(({ id }) => id)

test('the document has every route, once, and every schema that it refers to', () => {
  expect(client.operations.map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect(new Set(ids).size).toBe(ids.length)
  const document = kit.http.openapi() as { components: { schemas: object } }
  for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(document.components.schemas).toHaveProperty(name!)
})

test.each(ids.filter((id) => id !== 'importThread'))(
  '%s answers as the document says',
  async (id) => {
    const { status, text } = await send(client.operation(id), await buildWorld(kit))
    expect(status, text).toBeLessThan(300)
  },
)

test('importThread takes what exportThread gives, and both forms are as the document says', async () => {
  const world = await buildWorld(kit)
  const lines = await send(client.operation('exportThread'), world)
  const document = await send(client.operation('exportThread'), world, {
    query: { format: 'thread' },
  })
  expect(JSON.parse(document.text)).toMatchObject({ version: '2.0.0', thread_id: world.threadId })
  const byAccept = await send(client.operation('exportThread'), world, {
    headers: { accept: 'application/json' },
  })
  expect(byAccept.text).toBe(document.text)
  await kit.runtime.threads.remove(world.threadId)
  const { status, text } = await send(client.operation('importThread'), world, { body: lines.text })
  expect(status, text).toBe(201)
})

describe('errors that every route has are as the document says', () => {
  let world: World
  beforeAll(async () => {
    world = await buildWorld(kit)
  })

  test.each(ids)('%s', async (id) => {
    const operation = client.operation(id)
    const code = async (changes: Changes): Promise<string | undefined> =>
      (await send(operation, world, changes)).code
    expect(await code({ headers: { host: 'evil.example' } })).toBe('HOST_NOT_ALLOWED')
    expect(await code({ headers: { origin: 'https://evil.example' } })).toBe('ORIGIN_NOT_ALLOWED')
    expect(await code({ query: { x: 'x'.repeat(9000) } })).toBe('URL_TOO_LONG')
    if (operation.scope !== 'public') {
      expect(await code({ who: undefined })).toBe('UNAUTHENTICATED')
      if (operation.scope !== 'threads:read')
        expect(await code({ who: 'reader' })).toBe('SCOPE_MISSING')
    }
    if (operation.params.includes('threadId'))
      expect(await code({ params: { threadId: 'nobody' } })).toBe('THREAD_NOT_FOUND')
    for (const [name, schema] of Object.entries(operation.query)) {
      const wrong = 'maxLength' in schema ? 'x'.repeat(Number(schema['maxLength']) + 1) : 'wrong'
      if (wrong.length < 8000)
        expect(await code({ query: { [name]: wrong } }), name).toBe('INPUT_INVALID')
    }
    if (operation.body?.type === 'application/json') {
      expect(await code({ body: '{"a":' })).toBe('BODY_INVALID')
      expect(await code({ body: `${'['.repeat(100)}${']'.repeat(100)}` })).toBe('BODY_INVALID')
      expect(await code({ body: '[]' })).toBe('INPUT_INVALID')
      expect(await code({ body: 'a=b', headers: { 'content-type': 'text/plain' } })).toBe(
        'MEDIA_TYPE_UNSUPPORTED',
      )
    }
  })

  test('too large a body', async () => {
    const own = await buildWorld(small)
    for (const operation of client.operations.filter(({ body }) => body)) {
      const { code } = await send(operation, own, { kit: small, body: `"${'x'.repeat(200)}"` })
      expect(code, operation.id).toBe('BODY_TOO_LARGE')
    }
    expect((await send(client.operation('streamThread'), own, { kit: small })).code).toBe(
      'STREAM_LIMIT',
    )
  })
})

describe('errors of one route are as the document says', () => {
  const cases: readonly [
    id: string,
    code: ApiErrorCode,
    changes: (world: World) => Changes | Promise<Changes>,
  ][] = [
    ['createThread', 'AGENT_NOT_FOUND', () => ({ body: { agent: 'nobody' } })],
    [
      'createThread',
      'CLIENT_ID_TAKEN',
      async () => {
        await kit.ask('ada', 'POST', '/api/threads', { agent: 'desk', clientId: 'taken' })
        return { who: 'ada', body: { agent: 'worker', clientId: 'taken' } }
      },
    ],
    ['postEndpoint', 'STATE_CONFLICT', () => ({ params: { path: 'stale' } })],
    ['getAgent', 'AGENT_NOT_FOUND', () => ({ params: { agent: 'nobody' } })],
    ['tryTool', 'TOOL_NOT_FOUND', () => ({ params: { tool: 'none' } })],
    ['tryTool', 'PLAYGROUND_OFF', () => ({ kit: poor })],
    ['getApproval', 'INTERRUPT_NOT_FOUND', () => ({ params: { interruptId: 'none' } })],
    ['createStudioSession', 'UNAUTHENTICATED', () => ({ body: { key: 'wrong' } })],
    ['sendMessage', 'FILE_NOT_FOUND', () => ({ body: { text: 'x', attachments: ['/none'] } })],
    ['sendMessage', 'FILE_PATH_INVALID', () => ({ body: { text: 'x', attachments: ['../x'] } })],
    ['sendMessage', 'INPUT_INVALID', () => ({ body: {} })],
    ['sendMessage', 'INPUT_INVALID', () => ({ body: { content: [{ type: 'nonsense' }] } })],
    ['updateMessage', 'MESSAGE_NOT_FOUND', () => ({ params: { messageId: 'none' } })],
    ['updateMessage', 'INPUT_INVALID', () => ({ body: { message: { type: 'nonsense' } } })],
    ['deleteMessage', 'MESSAGE_NOT_FOUND', () => ({ params: { messageId: 'none' } })],
    ['unsendMessage', 'MESSAGE_NOT_FOUND', () => ({ params: { queueId: 'none' } })],
    ['forkThread', 'MESSAGE_NOT_FOUND', () => ({ body: { upTo: 'none' } })],
    ['streamThread', 'INPUT_INVALID', () => ({ query: { after: 'nonsense' } })],
    ['streamThread', 'INPUT_INVALID', () => ({ headers: { 'last-event-id': '1(2)' } })],
    ['importThread', 'INPUT_INVALID', () => ({ body: 'nonsense' })],
    ['importThread', 'BODY_INVALID', () => ({ body: new Uint8Array([0xff, 0xfe]) })],
    ['readFile', 'FILE_NOT_FOUND', () => ({ params: { path: 'none' } })],
    ['readFile', 'FILE_PATH_INVALID', () => ({ params: { path: 'a\\b' } })],
    ['writeFile', 'FILE_PATH_INVALID', () => ({ params: { path: 'a/' } })],
    ['deleteFile', 'FILE_NOT_FOUND', () => ({ params: { path: 'none' } })],
    ['deleteFile', 'FILE_PATH_INVALID', () => ({ params: { path: 'a\\b' } })],
    ['getValue', 'VALUE_NOT_FOUND', () => ({ params: { key: 'none' } })],
    ['setEnv', 'ENV_INVALID', () => ({ params: { name: 'not a name' } })],
    ['getVariablesRequest', 'REQUEST_NOT_FOUND', () => ({ params: { requestId: 'none' } })],
    ['provideVariables', 'REQUEST_NOT_FOUND', () => ({ params: { requestId: 'none' } })],
    ['provideVariables', 'VARIABLES_MISSING', () => ({ body: {} })],
    [
      'provideVariables',
      'ALREADY_ANSWERED',
      async ({ threadId, params }) => {
        await kit.ask('acme', 'POST', `/api/threads/${threadId}/variables/${params['requestId']}`, {
          VAULT_CODE: '1',
        })
        return {}
      },
    ],
    [
      'sendMessage',
      'THREAD_BUSY',
      async ({ threadId }) => {
        await kit.runtime.threads.send(threadId, 'hang')
        return { body: { text: 'Hello', ifBusy: 'reject' } }
      },
    ],
    ['decide', 'INTERRUPT_NOT_FOUND', () => ({ params: { interruptId: 'none' } })],
    [
      'decide',
      'ALREADY_ANSWERED',
      async ({ threadId, params }) => {
        const path = `/api/approvals/${threadId}/${encodeURIComponent(params['interruptId']!)}`
        expect((await kit.ask('ada', 'POST', path, { type: 'deny', reason: 'no' })).status).toBe(
          204,
        )
        return {}
      },
    ],
    ['decide', 'ANSWER_INVALID', () => ({ body: { type: 'result', value: 1 } })],
    ['scheduleEffect', 'EFFECT_NOT_FOUND', () => ({ body: { name: 'none', delayMs: 1 } })],
    ['scheduleEffect', 'EFFECT_INVALID', () => ({ body: { name: 'remind', cron: 'nonsense' } })],
    ['makeGrant', 'ANSWER_INVALID', () => ({ body: { tool: 'none', forMs: 60_000 } })],
    ['revokeGrant', 'GRANT_NOT_FOUND', () => ({ params: { grantId: 'none' } })],
    ['runEffect', 'EFFECT_NOT_FOUND', () => ({ params: { effectId: 'none' } })],
    ['deleteEffect', 'EFFECT_NOT_FOUND', () => ({ params: { effectId: 'none' } })],
    ['getLog', 'LOG_NOT_FOUND', () => ({ params: { logId: 'none' } })],
    ['setValue', 'VALUE_INVALID', () => ({ params: { key: 'x'.repeat(2000) } })],
    [
      'chat',
      'HISTORY_FIXED',
      () => ({ body: { id: 'c', messages: [], trigger: 'regenerate-message' } }),
    ],
    ['chat', 'INPUT_INVALID', () => ({ body: { id: 'c', messages: [], trigger: 'none' } })],
    ['chat', 'AGENT_NOT_FOUND', () => ({ params: { agent: 'nobody' } })],
    [
      'chatCompletions',
      'APPROVAL_REQUIRED',
      () => ({ body: { model: 'desk', messages: [{ role: 'user', content: 'refund' }] } }),
    ],
    ['getEndpoint', 'ROUTE_NOT_FOUND', () => ({ params: { path: 'none' } })],
    ['getEndpoint', 'METHOD_NOT_ALLOWED', () => ({ params: { path: 'orders' } })],
  ]

  test.each(cases)('%s: %s', async (id, code, changes) => {
    const world = await buildWorld(kit)
    expect((await send(client.operation(id), world, await changes(world))).code).toBe(code)
  })

  test('a file that is too large for the runtime, and variables that come too late', async () => {
    const world = await buildWorld(small)
    const file = { kit: small, body: 'x'.repeat(60) }
    expect((await send(client.operation('writeFile'), world, file)).code).toBe('FILE_TOO_LARGE')
    const late = await send(client.operation('provideVariables'), world, { kit: small })
    expect(late.code).toBe('REQUEST_EXPIRED')
  })

  test('a tenant that has used up its limit', async () => {
    const world = await buildWorld(kit)
    const body = { agent: 'desk', message: { text: 'Hello' } }
    const { code } = await send(client.operation('createThread'), world, { kit: poor, body })
    expect(code).toBe('SPENDING_LIMIT')
  })

  test('a thread that is over', async () => {
    for (const route of ROUTES.filter(({ errors }) => errors?.includes('THREAD_TERMINATED'))) {
      const world = await buildWorld(kit)
      await kit.runtime.threads.terminate(world.threadId)
      const { code } = await send(client.operation(route.id), world)
      if (code !== undefined) expect(code, route.id).toBe('THREAD_TERMINATED')
    }
  })
})

test('every error that a route may answer was seen, or is one that only a broken server gives', () => {
  const rare: readonly ApiErrorCode[] = [
    'INTERNAL',
    'RUNTIME_STOPPED',
    'RATE_LIMITED',
    'BODY_TIMEOUT',
    'NOT_READY',
  ]
  const documented = new Set(ROUTES.flatMap(errorsOf))
  const codes = new Set([...seen].map((entry) => entry.split(' ')[1]))
  const missing = [...documented].filter((code) => !codes.has(code) && !rare.includes(code))
  expect(missing).toEqual([])
  for (const code of documented) expect(STATUS[code]).toBeGreaterThanOrEqual(400)
})
