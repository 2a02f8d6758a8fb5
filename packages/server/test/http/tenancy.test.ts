import { afterAll, beforeAll, expect, test } from 'vitest'
import { pathParams, type OperationRoute } from '../../src/operations/operation.ts'
import { ROUTES } from '../../src/http/routes.ts'
import { KEYS, startKit, type Kit, type Who } from './http-kit.ts'
import { buildWorld, fillPath, type World } from './world.ts'

let kit: Kit
let world: World
beforeAll(async () => {
  kit = await startKit()
  world = await buildWorld(kit)
})
afterAll(() => kit.stop())

const aboutThreads = ROUTES.filter(({ addresses }) => addresses === 'thread')
/** The stream has two forms. */
const matrix = aboutThreads.flatMap((route): [string, OperationRoute, Record<string, string>][] => {
  const query = route.probe?.query ?? {}
  const plain: [string, OperationRoute, Record<string, string>] = [route.id, route, query]
  return route.id === 'streamThread'
    ? [plain, ['streamThread as tree', route, { tree: 'true' }]]
    : [plain]
})

/** Bodies that a probe of the table cannot know. */
const bodies: Record<string, unknown> = { provideVariables: { VAULT_CODE: '1234' } }

async function probe(
  who: Who | undefined,
  route: OperationRoute,
  query: Record<string, string>,
  params: Readonly<Record<string, string>>,
): Promise<{ status: number; body: string; headers: Record<string, string> }> {
  const path = fillPath(route.path, { ...params, ...route.probe?.params })
  const isBytes = route.body && 'bytes' in route.body
  const body = bodies[route.id] ?? route.probe?.body ?? (isBytes ? 'x' : undefined)
  const search = new URLSearchParams(query)
  const response = await kit.ask(who, route.method, `${path}?${search}`, body)
  const headers = Object.fromEntries(response.headers)
  if (headers['content-type']?.startsWith('text/event-stream')) {
    await response.body?.cancel()
    return { status: response.status, body: '', headers }
  }
  return { status: response.status, body: await response.text(), headers }
}

test('every route with a thread in its path is looked up before it is answered, and can be probed', () => {
  for (const route of ROUTES) {
    const params = pathParams(route.path)
    expect(params.includes('threadId'), route.id).toBe(route.addresses === 'thread')
    const others = params.filter((name) => name !== 'threadId')
    if (route.addresses === 'nothing')
      // The values of users have tests of their own: user-values.test.ts.
      expect(
        others.filter((name) => name !== 'agent' && name !== 'tool' && route.tag !== 'users'),
        route.id,
      ).toEqual([])
    else expect(route.probe, route.id).toBeDefined()
    for (const name of params) expect(world.params, `${route.id} {${name}}`).toHaveProperty(name)
  }
})

test.each(matrix)(
  '%s: a thread of another tenant, or its child, is as one that never was',
  async (_, route, query) => {
    const nobody = { ...world.params, threadId: '01890000-0000-7000-8000-000000000000' }
    const none = await probe('rival', route, query, nobody)
    expect(none).toMatchObject({ status: 404, body: expect.stringContaining('THREAD_NOT_FOUND') })
    expect(await probe('rival', route, query, world.params)).toEqual(none)
    expect(
      await probe('rival', route, query, { ...world.params, threadId: world.childId }),
    ).toEqual(none)
  },
)

test.each(matrix)(
  '%s: a thread of another user of the tenant is as one that never was',
  async (_, route, query) => {
    const nobody = { ...world.params, threadId: 'nobody' }
    const none = await probe('bob', route, query, nobody)
    expect(none.status).toBe(404)
    expect(await probe('bob', route, query, world.params)).toEqual(none)
    expect(await probe('bob', route, query, { ...world.params, threadId: world.childId })).toEqual(
      none,
    )
  },
)

test.each(matrix)('%s: without a key nothing can be told apart', async (_, route, query) => {
  const none = await probe(undefined, route, query, { ...world.params, threadId: 'nobody' })
  expect(none.status).toBe(401)
  expect(await probe(undefined, route, query, world.params)).toEqual(none)
})

test.each(matrix)('%s: its owner gets an answer', async (_, route, query) => {
  // Some of them end the thread: each has its own.
  const own = await buildWorld(kit)
  const { status, body } = await probe('ada', route, query, own.params)
  expect(status, body).toBeLessThan(300)
})

test('lists show nothing of another tenant, whatever is asked for', async () => {
  const { threadId, childId } = world
  for (const query of [
    '',
    `?rootId=${threadId}`,
    `?parentId=${threadId}`,
    '?owner=ada',
    '?search=ada',
    '?waiting=true',
  ])
    expect(await kit.json('rival', 'GET', `/threads${query}`), query).toEqual({ threads: [] })
  for (const query of ['', `?rootId=${threadId}`])
    expect(await kit.json('rival', 'GET', `/approvals${query}`), query).toEqual({ waiting: [] })
  expect(await kit.json('bob', 'GET', '/approvals')).toEqual({ waiting: [] })
  expect(await kit.json('bob', 'GET', '/threads?owner=ada')).toEqual({ threads: [] })
  const ofAda = await kit.json<{ threads: { id: string }[] }>('ada', 'GET', '/threads?limit=1000')
  expect(ofAda.threads.map(({ id }) => id)).toEqual(expect.arrayContaining([threadId, childId]))
})

test('a client id of another tenant or user finds nothing and takes nothing away', async () => {
  const { id } = await kit.json<{ id: string }>('ada', 'POST', '/threads', {
    agent: 'desk',
    clientId: 'mine',
  })
  expect(await kit.json('ada', 'GET', '/threads?clientId=mine')).toMatchObject({
    threads: [{ id }],
  })
  expect(await kit.json('bob', 'GET', '/threads?clientId=mine')).toEqual({ threads: [] })
  expect(await kit.json('rival', 'GET', '/threads?clientId=mine')).toEqual({ threads: [] })
  const body = { agent: 'desk', clientId: 'mine' }
  // The same answer as for an id that nobody has: a refusal would tell that somebody has it.
  const ofBob = await kit.json<{ id: string }>('bob', 'POST', '/threads', body)
  expect(ofBob).toMatchObject({ tenant: 'acme', owner: 'bob', clientId: 'mine' })
  expect(ofBob.id).not.toBe(id)
  expect(await kit.json('ada', 'GET', '/threads?clientId=mine')).toMatchObject({
    threads: [{ id }],
  })
  const other = await kit.json<{ id: string; tenant: string }>('rival', 'POST', '/threads', body)
  expect(other).toMatchObject({ tenant: 'rival' })
  expect(other.id).not.toBe(id)
})

test('tenant, owner and author are those of the key, not of the body', async () => {
  const refused = await kit.ask('ada', 'POST', '/threads', { agent: 'desk', tenant: 'rival' })
  expect(refused.status).toBe(400)
  const thread = await kit.json<{ id: string; owner: string }>('ada', 'POST', '/threads', {
    agent: 'desk',
    owner: 'bob',
  })
  expect(thread.owner).toBe('ada')
  const forged = await kit.ask('ada', 'POST', `/threads/${thread.id}/messages`, {
    text: 'x',
    userId: 'bob',
  })
  expect(forged.status).toBe(400)
})

test('a scope that is missing is refused before anything is looked up', async () => {
  for (const route of aboutThreads.filter(({ scope }) => scope !== 'threads:read')) {
    const { status, body } = await probe(
      'reader',
      route,
      {},
      { ...world.params, threadId: 'nobody' },
    )
    expect([status, body], route.id).toEqual([403, expect.stringContaining(route.scope)])
  }
})

test('a thread that is removed while its request arrives is as one that never was', async () => {
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  const body = new ReadableStream({
    async pull(controller) {
      await kit.runtime.threads.remove(id)
      controller.enqueue(new TextEncoder().encode('{"text":"Hello"}'))
      controller.close()
    },
  })
  const headers = { authorization: `Bearer ${KEYS.acme.key}`, 'content-type': 'application/json' }
  const init = { method: 'POST', body, duplex: 'half', headers } as RequestInit
  const late = await kit.http.fetch(new Request(`http://localhost/threads/${id}/messages`, init))
  const never = await kit.ask('acme', 'POST', '/threads/nobody/messages', { text: 'Hello' })
  expect([late.status, await late.text()]).toEqual([404, await never.text()])
})

test('a forged log that names a thread of another tenant as its child opens nothing of it', async () => {
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'rival' })
  const lines = (await (await kit.ask('rival', 'GET', `/threads/${id}/export`)).text())
    .trimEnd()
    .split('\n')
  const header = JSON.parse(lines[0]!) as { events: number }
  const last = JSON.parse(lines.at(-1)!) as { seq: number }
  const at = new Date().toISOString()
  const link = { relation: 'worker', description: '', parentCommunication: 'implicit' }
  const forged = {
    type: 'subagent_created',
    at,
    reference: world.threadId,
    name: 'worker',
    ...link,
  }
  const all = [
    JSON.stringify({ ...header, events: header.events + 1 }),
    ...lines.slice(1),
    JSON.stringify({ seq: last.seq + 1, event: forged }),
  ]
  const taken = await kit.ask('rival', 'POST', '/threads/import', `${all.join('\n')}\n`)
  expect(taken.status, await taken.clone().text()).toBe(201)
  const { id: copy, seq } = (await taken.json()) as { id: string; seq: number }
  for (const after of ['0', `${seq}`, `${seq}(0)`, `${seq}(1)`]) {
    const abort = new AbortController()
    const url = `http://localhost/threads/${copy}/stream?tree=true&after=${encodeURIComponent(after)}`
    const headers = { authorization: `Bearer ${KEYS.rival.key}` }
    const response = await kit.http.fetch(new Request(url, { headers, signal: abort.signal }))
    const text = response.text()
    // Enough turns of the loop for a child to be read.
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    expect(await text).not.toContain('Please work.')
  }
})
