import {
  Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client'
import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client'
import { type Message, Role, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { memoryStore } from '@skein/runtime'
import { KEYS, startKit, type Kit, type Who } from '../http/http-kit.ts'

let kit: Kit
beforeEach(async () => {
  kit = await startKit()
})
afterEach(() => kit.stop())

type Version = '1.0' | '0.3'

function fetchAs(who: Who): typeof fetch {
  return (url, init) => {
    const request = new Request(url, init)
    request.headers.set('authorization', `Bearer ${KEYS[who].key}`)
    return kit.http.fetch(request)
  }
}

async function connect(who: Who, version: Version = '1.0'): Promise<Client> {
  const fetchImpl = fetchAs(who)
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  })
  const factory = new ClientFactory(options)
  const client = await factory.createFromUrl('http://localhost/agents/desk/')
  if (version === '1.0') return client
  const endpoint = 'http://localhost/agents/desk/a2a'
  const card = await client.getAgentCard()
  return new Client(new LegacyJsonRpcTransport({ endpoint, fetchImpl }), card)
}

let count = 0
function message(text: string, more: Partial<Message> = {}): Message {
  return {
    messageId: `m-${++count}`,
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [part({ $case: 'text', value: text })],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  }
}

function part(content: Message['parts'][number]['content']): Message['parts'][number] {
  return { content, metadata: undefined, filename: '', mediaType: '' }
}

const request = (one: Message, returnImmediately = false) => ({
  tenant: '',
  message: one,
  metadata: undefined,
  configuration: {
    acceptedOutputModes: [],
    taskPushNotificationConfig: undefined,
    returnImmediately,
  },
})

async function ask(client: Client, one: Message, immediately = false): Promise<Task> {
  const given = request(one, immediately)
  const result = immediately
    ? await new Client(client.transport, await client.getAgentCard(), {
        polling: true,
      }).sendMessage(given)
    : await client.sendMessage(given)
  return result as Task
}

const textsOf = (parts: Message['parts'] = []): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
const answerOf = (task: Task): string => textsOf(task.artifacts[0]?.parts)

interface Waiting {
  readonly interruptId: string
  readonly digest: string
  readonly tool: string
  readonly kind: string
}

function waitingIn(task: Task): readonly Waiting[] {
  const data = task.status?.message?.parts.find(({ content }) => content?.$case === 'data')?.content
  return (data!.value as { waiting: readonly Waiting[] }).waiting
}

const decided = (task: Task, value: object): Message =>
  message('', {
    taskId: task.id,
    contextId: task.contextId,
    parts: [part({ $case: 'data', value })],
  })

async function waitFor(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 5000
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error('It did not happen in time.')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe.each(['1.0', '0.3'] as const)(
  'the client of @a2a-js/sdk 1.3.0, protocol %s',
  (version) => {
    test('a message is a task of a new context; the next one in the context another task', async () => {
      const client = await connect('ada', version)
      const first = await ask(client, message('Hello'))
      expect(first.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
      expect(answerOf(first)).toContain('You said: Hello.')
      expect(first.history.map(({ role }) => role)).toEqual([Role.ROLE_USER, Role.ROLE_AGENT])
      expect(textsOf(first.history[0]?.parts)).toBe('Hello')

      const second = await ask(client, message('Again', { contextId: first.contextId }))
      expect(second.contextId).toBe(first.contextId)
      expect(second.id).not.toBe(first.id)
      expect(answerOf(second)).toContain('You said: Again.')
      // The first task is what it was.
      expect(await client.getTask({ tenant: '', id: first.id })).toEqual(first)
      const short = await client.getTask({ tenant: '', id: first.id, historyLength: 1 })
      expect(short.history).toEqual(first.history.slice(-1))
      expect(
        (await client.getTask({ tenant: '', id: first.id, historyLength: 0 })).history,
      ).toEqual([])
      expect((await kit.runtime.threads.get(first.contextId)).owner).toBe('ada')
    })

    test('a stream gives the task, its text piece by piece, the whole artifact and the last status', async () => {
      const client = await connect('ada', version)
      const events: StreamResponse['payload'][] = []
      for await (const { payload } of client.sendMessageStream(request(message('Hello'))))
        events.push(payload)
      expect(events[0]?.$case).toBe('task')
      const last = events.at(-1)
      expect(last?.$case === 'statusUpdate' && last.value.status?.state).toBe(
        TaskState.TASK_STATE_COMPLETED,
      )
      let text = ''
      let pieces = 0
      for (const event of events) {
        if (event?.$case !== 'artifactUpdate') continue
        const { artifact, append } = event.value
        const words = textsOf(artifact?.parts)
        if (append) pieces++
        text = append ? text + words : words
      }
      expect(pieces).toBeGreaterThan(1)
      const [first] = events
      const id = first?.$case === 'task' ? first.value.id : ''
      expect(text).toBe(answerOf(await client.getTask({ tenant: '', id })))
    })

    test('an approval is input-required; it needs the digest, and the call runs once', async () => {
      const client = await connect('ada', version)
      const task = await ask(client, message('A refund please'))
      expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
      const [item] = waitingIn(task)
      expect(item).toMatchObject({ kind: 'approval', tool: 'refund', arguments: { amount: 5 } })
      const { interruptId, digest } = item!
      const decision = { interruptId, decision: 'approve' }
      await expect(ask(client, decided(task, decision))).rejects.toThrow(/digest/)
      await expect(ask(client, decided(task, { ...decision, digest: 'other' }))).rejects.toThrow()
      const words = message('approve', { taskId: task.id, contextId: task.contextId })
      await expect(ask(client, words)).rejects.toThrow(/waits for a decision/)
      const done = await ask(client, decided(task, { ...decision, digest }))
      expect(done.id).toBe(task.id)
      expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
      expect(answerOf(done)).toBe('That is done.')
      // A task that is over takes nothing more.
      await expect(ask(client, decided(task, { ...decision, digest }))).rejects.toThrow(/over/)
      const events = await kit.runtime.threads.events(task.contextId)
      expect(events.filter(({ event }) => event.type === 'interrupt_answered')).toHaveLength(1)
    })

    test('a call that is denied, and a question that is answered in words', async () => {
      const client = await connect('ada', version)
      const refund = await ask(client, message('A refund please'))
      const [{ interruptId } = { interruptId: '' }] = waitingIn(refund)
      const denied = await ask(client, decided(refund, { interruptId, decision: 'deny' }))
      expect(denied.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
      const asked = await ask(client, message('ask me'))
      expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
      const { id: taskId, contextId } = asked
      const answered = await ask(client, message('The blue one.', { taskId, contextId }))
      expect(answered.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
      const messages = await kit.runtime.threads.messages(contextId)
      expect(JSON.stringify(messages)).toContain('The blue one.')
    })

    test('a task that runs can be read, followed by another reader, and cancelled', async () => {
      const client = await connect('ada', version)
      const task = await ask(client, message('Please hang'), true)
      expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(
        task.status?.state,
      )
      const seen: string[] = []
      const following = (async () => {
        for await (const { payload } of client.resubscribeTask({ tenant: '', id: task.id }))
          seen.push(payload?.$case ?? '')
      })()
      await waitFor(() => seen.includes('artifactUpdate'))
      const { id } = task
      const stopped = await client.cancelTask({ tenant: '', id, metadata: undefined })
      expect(stopped.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
      await following
      expect([seen[0], seen.at(-1)]).toEqual(['task', 'statusUpdate'])
      await expect(client.cancelTask({ tenant: '', id, metadata: undefined })).rejects.toThrow(
        /over/,
      )
      const again = client.resubscribeTask({ tenant: '', id })
      await expect(again.next()).rejects.toThrow(/over/)
    })

    test('a task that waits for a person can be cancelled', async () => {
      const client = await connect('ada', version)
      const { id } = await ask(client, message('A refund please'))
      const stopped = await client.cancelTask({ tenant: '', id, metadata: undefined })
      expect(stopped.status?.state).toBe(TaskState.TASK_STATE_CANCELED)
    })

    test('what others own is as what never was', async () => {
      const client = await connect('ada', version)
      const task = await ask(client, message('A refund please'))
      for (const who of ['rival', 'bob'] as const) {
        const other = await connect(who, version)
        const none = async (id: string): Promise<readonly string[]> => {
          const tries = [
            other.getTask({ tenant: '', id }),
            other.cancelTask({ tenant: '', id, metadata: undefined }),
            ask(other, decided({ ...task, id }, { interruptId: 'x', decision: 'approve' })),
            other.resubscribeTask({ tenant: '', id }).next(),
          ]
          const settled = await Promise.allSettled(tries)
          return settled.map((one) => (one.status === 'rejected' ? String(one.reason) : 'found'))
        }
        const never = await none('task_nonsense')
        expect(await none(task.id)).toEqual(never)
        expect(never.every((text) => text.includes('There is no such task.'))).toBe(true)
      }
      expect((await client.getTask({ tenant: '', id: task.id })).status?.state).toBe(
        TaskState.TASK_STATE_INPUT_REQUIRED,
      )
    })
  },
)

test('a context that the client names is a thread under this name', async () => {
  const client = await connect('ada')
  const one = await ask(client, message('Hello', { contextId: 'my-context' }))
  expect(one.contextId).toBe('my-context')
  const two = await ask(client, message('Again', { contextId: 'my-context' }))
  expect(two.contextId).toBe('my-context')
  expect(await kit.runtime.threads.list({ tenant: 'acme' })).toHaveLength(1)
  // The same message is taken once.
  const again = message('Once', { contextId: 'my-context', messageId: 'once' })
  const first = await ask(client, again)
  expect(await ask(client, again)).toEqual(first)
  const other = message('x', { contextId: 'other', taskId: first.id })
  await expect(ask(client, other)).rejects.toThrow(/another context/)
})

test('a task outlives the server that began it', async () => {
  await kit.stop()
  const runtime = { store: memoryStore() }
  kit = await startKit({ runtime })
  const task = await ask(await connect('ada'), message('A refund please'))
  const old = kit
  kit = await startKit({ runtime })
  const client = await connect('ada')
  const now = await client.getTask({ tenant: '', id: task.id })
  expect(now).toEqual(task)
  const [{ interruptId, digest } = { interruptId: '', digest: '' }] = waitingIn(now)
  const done = await ask(client, decided(now, { interruptId, digest, decision: 'approve' }))
  expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
  await old.stop()
})

test('a reader that leaves stops nothing; a server that closes returns the task as it is', async () => {
  const client = await connect('ada')
  const abort = new AbortController()
  const stream = client.sendMessageStream(request(message('Hello')), { signal: abort.signal })
  const first = await stream.next()
  const payload = (first.value as StreamResponse).payload
  const task = payload?.$case === 'task' ? payload.value : undefined
  abort.abort()
  await stream.next().catch(() => undefined)
  await waitFor(async () => {
    const { status } = await client.getTask({ tenant: '', id: task!.id })
    return status?.state === TaskState.TASK_STATE_COMPLETED
  })
  const waiting = ask(client, message('Please hang'))
  await waitFor(async () => {
    const threads = await kit.runtime.threads.list({ tenant: 'acme', lifecycle: 'running' })
    return threads.length > 0
  })
  kit.http.endStreams()
  expect((await waiting).status?.state).toBe(TaskState.TASK_STATE_WORKING)
})

test('the card of 1.0 and of 0.3, its address, and who may read it', async () => {
  const read = async (path: string, headers: Record<string, string> = {}) => {
    const response = await kit.ask('reader', 'GET', path, undefined, headers)
    return [response.status, await response.json()] as const
  }
  const path = '/agents/desk/.well-known/agent-card.json'
  const [, card] = await read(path, { 'a2a-version': '1.0' })
  expect(card).toMatchObject({
    name: 'Desk',
    capabilities: { streaming: true },
    supportedInterfaces: [
      { url: 'http://localhost/agents/desk/a2a', protocolVersion: '1.0' },
      { protocolVersion: '0.3' },
    ],
    securitySchemes: { key: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
  })
  expect(card).not.toHaveProperty('url')
  const [, old] = await read(path)
  expect(old).toMatchObject({
    protocolVersion: '0.3.0',
    url: 'http://localhost/agents/desk/a2a',
    preferredTransport: 'JSONRPC',
    securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
  })
  expect((await kit.ask(undefined, 'GET', path)).status).toBe(401)
  // The desk has two workers, so the server has three agents.
  const [status, several] = await read('/.well-known/agent-card.json')
  expect([status, several]).toMatchObject([404, { error: { code: 'AGENT_NOT_FOUND' } }])

  await kit.stop()
  const a2a = { agent: 'desk', url: 'https://agents.example/api', isPublic: true }
  kit = await startKit({ http: { prefix: '/api', a2a } })
  for (const address of ['/.well-known/agent-card.json', '/api/.well-known/agent-card.json']) {
    const open = await kit.ask(undefined, 'GET', address)
    expect(await open.json()).toMatchObject({ url: 'https://agents.example/api/agents/desk/a2a' })
  }
  expect((await kit.ask(undefined, 'GET', '/api/agents')).status).toBe(401)
})

const post = (body: unknown, headers: Record<string, string> = {}, who: Who = 'ada') =>
  kit.ask(who, 'POST', '/agents/desk/a2a', body, headers)
const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params })

test('methods and versions that are none have the codes of the protocol', async () => {
  const code = async (body: object, headers?: Record<string, string>): Promise<number> =>
    ((await (await post(body, headers)).json()) as { error: { code: number } }).error.code
  expect(await code(rpc('Nothing'))).toBe(-32601)
  expect(await code(rpc('constructor'))).toBe(-32601)
  expect(await code(rpc('CreateTaskPushNotificationConfig'))).toBe(-32003)
  expect(await code(rpc('agent/getAuthenticatedExtendedCard'))).toBe(-32007)
  expect(await code(rpc('ListTasks'))).toBe(-32004)
  expect(await code(rpc('GetTask', { id: 'x' }))).toBe(-32001)
  expect(await code(rpc('SendMessage'), { 'a2a-version': '2.0' })).toBe(-32009)
  expect(await code(rpc('SendMessage'))).toBe(-32602)
  const empty = { message: { messageId: 'm', role: 'ROLE_USER', parts: [] } }
  expect(await code(rpc('SendMessage', empty))).toBe(-32602)
  expect(await kit.runtime.threads.list({ tenant: 'acme' })).toEqual([])
})

test('a decision needs the scope of approvals, and host and origin are checked', async () => {
  const client = await connect('ada')
  const task = await ask(client, message('A refund please'))
  const [{ interruptId, digest } = { interruptId: '', digest: '' }] = waitingIn(task)
  const parts = [{ data: { interruptId, digest, decision: 'approve' } }]
  const params = { message: { messageId: 'm', role: 'ROLE_USER', taskId: task.id, parts } }
  const key = { ...KEYS.ada, scopes: ['threads:read', 'threads:write'] } as const
  const { createHttp } = await import('../../src/index.ts')
  const weak = createHttp(kit.runtime, { auth: { keys: [key] } })
  const headers = { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' }
  const body = JSON.stringify(rpc('SendMessage', params))
  const init = { method: 'POST', headers, body }
  const refused = await weak.fetch(new Request('http://localhost/agents/desk/a2a', init))
  expect(refused.status).toBe(403)
  expect((await post(rpc('SendMessage', params), { origin: 'https://evil.example' })).status).toBe(
    403,
  )
  expect((await post(rpc('SendMessage', params), { host: 'evil.example' })).status).toBe(403)
  expect((await client.getTask({ tenant: '', id: task.id })).status?.state).toBe(
    TaskState.TASK_STATE_INPUT_REQUIRED,
  )
})

test('whatever JSON comes, the server answers and nothing breaks', async () => {
  const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>
  const waiting = await ask(await connect('ada'), message('A refund please'))
  const [{ interruptId } = { interruptId: '' }] = waitingIn(waiting)
  const parts = fc.array(
    fc.oneof(
      anyJson,
      fc.record({ data: anyJson }),
      fc.record({
        data: fc.record({
          interruptId: fc.constant(interruptId),
          decision: anyJson,
          with: anyJson,
        }),
      }),
      fc.record({ url: anyJson, mediaType: anyJson }),
      fc.record({ file: anyJson }),
    ),
    { maxLength: 3 },
  )
  const params = fc.oneof(
    anyJson,
    fc.record({ id: fc.oneof(anyJson, fc.constant(waiting.id)) }),
    fc.record({
      message: fc.record({
        messageId: anyJson,
        taskId: fc.oneof(anyJson, fc.constant(waiting.id)),
        contextId: anyJson,
        parts,
      }),
      configuration: fc.constant({ returnImmediately: true, blocking: false }),
    }),
  )
  const method = fc.constantFrom('SendMessage', 'GetTask', 'message/send', 'tasks/get', 'x')
  await fc.assert(
    fc.asyncProperty(method, params, anyJson, async (name, given, id) => {
      const response = await post({ jsonrpc: '2.0', id, method: name, params: given })
      await response.body?.cancel()
      expect(response.status).toBeLessThan(500)
    }),
    { numRuns: 300 },
  )
  const [still] = await kit.runtime.inbox.list({ tenant: 'acme', rootId: waiting.contextId })
  expect(still?.interruptId).toBe(interruptId)
})
