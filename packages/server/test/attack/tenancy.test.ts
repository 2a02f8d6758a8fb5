import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pathParams, type OperationRoute } from '../../src/operations/operation.ts'
import { threadPartId } from '../../src/protocols/thread-part-id.ts'
import { startKit, type Kit, type Who } from '../http/http-kit.ts'
import { buildWorld, fillPath, type World } from '../http/world.ts'

// Beside `http/tenancy.test.ts`, which compares answers about threads: here every operation is asked, also
// those that name no thread, and everything that comes back is searched for what is ada's.
let kit: Kit
let world: World
let before: unknown
/** Texts that only ada, or who sees all of acme, may read. */
const canaries: string[] = []

beforeAll(async () => {
  const limits = { requestsPerMinute: Infinity, requestsPerMinutePerAddress: Infinity }
  kit = await startKit({ http: { limits } })
  world = await buildWorld(kit)
  const { threads } = kit.runtime
  const { threadId, childId } = world
  await threads.update(threadId, { title: 'canary-title', tags: ['canary-tag'] })
  await threads.send(threadId, 'canary-message')
  await threads.effects.schedule(threadId, 'remind', { what: 'canary-effect' }, 3_600_000)
  await kit.json('ada', 'POST', '/threads', { agent: 'desk', clientId: 'canary-client' })
  const ids = Object.entries(world.params).flatMap(([name, id]) =>
    ['requestId', 'interruptId', 'effectId', 'logId', 'messageId', 'queueId'].includes(name)
      ? id
      : [],
  )
  canaries.push('canary', 'Please work.', threadId, childId, ...ids)
  await kit.runtime.idle()
  before = await picture()
})
afterAll(() => kit.stop())

/** All of ada's, as the operator sees it. */
async function picture(): Promise<unknown> {
  const { threads, inbox } = kit.runtime
  const all = await threads.list({ tenant: 'acme', owner: 'ada', limit: 1000 })
  return {
    heads: all,
    logs: await Promise.all(all.map(({ id }) => threads.events(id))),
    files: await threads.files.list(world.threadId),
    values: await threads.values.list(world.threadId),
    env: await threads.env.list(world.threadId),
    waiting: (await inbox.list({ tenant: 'acme' })).length,
  }
}

interface Attempt {
  readonly path: string
  readonly body: unknown
  readonly sent: string
}

/** Requests to an operation that name ada's things wherever a name fits. */
function attemptsOf(route: OperationRoute): Attempt[] {
  const names = pathParams(route.path)
  const bodies: unknown[] = [route.probe?.body]
  if (route.id === 'provideVariables') bodies.push({ VAULT_CODE: '1234' })
  if (route.body && 'bytes' in route.body) bodies.push('x')
  const places = [
    world.params,
    { ...world.params, threadId: world.childId },
    { ...world.params, threadId: 'canary-client' },
    { ...world.params, threadId: `${world.threadId}%2f..` },
    { ...world.params, threadId: world.threadId.toUpperCase() },
  ].slice(0, names.includes('threadId') ? 5 : 1)
  const { threadId } = world
  const queries = [
    route.probe?.query ?? {},
    { rootId: threadId },
    { parentId: threadId },
    { owner: 'ada' },
    { clientId: 'canary-client' },
    { search: 'canary' },
    { tenant: 'acme' },
  ].slice(0, names.length > 0 ? 1 : 7)
  return places.flatMap((params) =>
    queries.flatMap((query) =>
      bodies.map((body): Attempt => {
        const path = `${fillPath(route.path, { ...params, ...route.probe?.params })}?${new URLSearchParams(query)}`
        return { path, body, sent: `${path} ${JSON.stringify(body)}` }
      }),
    ),
  )
}

async function textOf(response: Response): Promise<string> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response.text()
  // A stream of somebody's own run ends by itself; one that should not be there does not.
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const timer = setTimeout(() => void reader.cancel(), 2000)
  let text = ''
  for (let step = await reader.read(); !step.done; step = await reader.read()) text += step.value
  clearTimeout(timer)
  return text
}

/** Ada's texts in an answer. What the request itself said may be repeated. */
function leaks(answer: string, sent: string): string[] {
  return canaries.filter((text) => answer.includes(text) && !sent.includes(text))
}

const strangers: readonly (Who | undefined)[] = ['rival', 'bob', undefined]

describe('every operation of the server, asked by a stranger', () => {
  test.each(strangers)(
    '%s reads nothing of ada and changes nothing',
    { timeout: 120_000 },
    async (who) => {
      const statuses: Record<string, readonly number[]> = {}
      for (const route of kit.http.routes) {
        const seen = new Set<number>()
        for (const { path, body, sent } of attemptsOf(route)) {
          const response = await kit.ask(who, route.method, path, body)
          seen.add(response.status)
          const headers = JSON.stringify([...response.headers])
          const answer = `${await textOf(response)} ${headers}`
          expect(leaks(answer, sent), `${route.id} ${path}: ${answer.slice(0, 500)}`).toEqual([])
          expect(response.status, `${route.id} ${path}`).toBeLessThan(500)
          if (who === undefined && route.scope !== 'public')
            expect(response.status, `${route.id} ${path}`).toBe(401)
        }
        statuses[route.id] = [...seen]
        // Nothing about a foreign thread succeeds.
        if (route.addresses === 'thread')
          expect(
            statuses[route.id]!.every((status) => status >= 400),
            `${route.id} ${[...seen]}`,
          ).toBe(true)
      }
      expect(Object.keys(statuses)).toHaveLength(kit.http.routes.length)
      expect(await picture()).toEqual(before)
    },
  )

  test('ada herself is answered, so the requests are right ones', async () => {
    const reads = kit.http.routes.filter(
      ({ method, scope, addresses }) =>
        method === 'GET' && addresses === 'thread' && scope !== 'metrics:read',
    )
    for (const route of reads) {
      const [{ path }] = attemptsOf(route) as [Attempt]
      const response = await kit.ask('ada', 'GET', path)
      expect(response.status, `${route.id} ${path}`).toBeLessThan(300)
      await response.body?.cancel()
    }
    expect(reads.length).toBeGreaterThan(15)
  })
})

describe('doors that name threads in their bodies', () => {
  const asked = (): readonly (readonly [string, object])[] => {
    const { threadId, childId, params } = world
    const interrupt = params['interruptId'] ?? ''
    const output = { type: 'function_call_output', output: 'absent' }
    const part = { type: 'tool-refund', toolCallId: interrupt, input: {} }
    const approval = { id: interrupt, approved: true }
    const messages = [
      { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello' }] },
      { id: 'a', role: 'assistant', parts: [{ ...part, state: 'approval-responded', approval }] },
      {
        id: 'b',
        role: 'assistant',
        parts: [{ ...part, state: 'output-available', output: 'absent' }],
      },
    ]
    return [threadId, childId, 'canary-client'].flatMap((id): (readonly [string, object])[] => [
      ['/v1/responses', { model: 'desk', input: 'x', conversation: threadPartId('conv', id) }],
      [
        '/v1/responses',
        { model: 'desk', input: 'x', conversation: { id: threadPartId('conv', id) } },
      ],
      [
        '/v1/responses',
        { model: 'desk', input: 'x', previous_response_id: threadPartId('resp', id, '1') },
      ],
      [
        '/v1/responses',
        {
          model: 'desk',
          input: 'x',
          previous_response_id: threadPartId('resp', id, params['queueId']),
        },
      ],
      [
        '/v1/responses',
        { model: 'desk', input: [{ ...output, call_id: threadPartId('call', id, interrupt) }] },
      ],
      [
        '/v1/chat/completions',
        {
          model: 'desk',
          messages: [
            { role: 'tool', tool_call_id: threadPartId('call', id, interrupt), content: 'absent' },
          ],
        },
      ],
      [
        '/v1/messages',
        {
          model: 'desk',
          max_tokens: 9,
          messages: [
            {
              role: 'user',
              content: [
                {
                  type: 'tool_result',
                  tool_use_id: threadPartId('call', id, interrupt),
                  content: 'absent',
                },
              ],
            },
          ],
        },
      ],
      ...messages.map((message): readonly [string, object] => [
        '/agents/desk/chat',
        { id, messages: [message], trigger: 'submit-message' },
      ]),
      ['/threads', { agent: 'desk', parentId: id }],
      ['/threads', { agent: 'desk', rootId: id, message: 'x' }],
    ])
  }

  test.each(strangers)('%s gets nothing of ada through them', { timeout: 60_000 }, async (who) => {
    for (const [path, body] of asked()) {
      const response = await kit.ask(who, 'POST', path, body)
      const answer = await textOf(response)
      expect(leaks(answer, JSON.stringify(body)), `${path} ${JSON.stringify(body)}`).toEqual([])
      // A chat under an id that is taken by nobody of one's own may begin; it is then one's own.
      if (who === undefined) expect(response.status).toBe(401)
      else expect(response.status, answer).toBeLessThan(500)
    }
    expect(await picture()).toEqual(before)
  })
})

test('an id of another tenant is no oracle: taken and free ids answer alike', async () => {
  const ask = async (id: string): Promise<unknown> => {
    const response = await kit.ask('rival', 'POST', '/v1/responses', {
      model: 'desk',
      input: 'x',
      conversation: threadPartId('conv', id),
    })
    return [response.status, await response.text()]
  }
  expect(await ask(world.threadId)).toEqual(await ask('01890000-0000-7000-8000-000000000000'))
})
