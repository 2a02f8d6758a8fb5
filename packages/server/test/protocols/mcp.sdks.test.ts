import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema, type ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { memoryStore } from '@skein/runtime'
import { type Http } from '../../src/index.ts'
import { KEYS, startKit, type Kit, type KitOptions, type Who } from '../http/http-kit.ts'

let kit: Kit
const clients: Client[] = []
beforeEach(async () => {
  kit = await startKit()
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  await kit.stop()
})

interface Result {
  readonly content: readonly { readonly text: string }[]
  readonly isError?: boolean
  readonly structuredContent?: {
    readonly threadId: string
    readonly status: string
    readonly text: string
    readonly waiting: readonly { readonly interruptId: string; readonly digest: string }[]
  }
}

/** Sends the client's requests to a server without a socket. */
function fetchTo(http: () => Http) {
  return (url: string | URL, init?: RequestInit): Promise<Response> =>
    http().fetch(new Request(url, init))
}

async function connect(
  who: Who,
  {
    onAsk,
    fetch = fetchTo(() => kit.http),
  }: {
    readonly onAsk?: (message: string, schema: object) => ElicitResult | Promise<ElicitResult>
    readonly fetch?: (url: string | URL, init?: RequestInit) => Promise<Response>
  } = {},
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: onAsk ? { elicitation: {} } : {} },
  )
  if (onAsk)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) =>
      onAsk(params.message, 'requestedSchema' in params ? params.requestedSchema : {}),
    )
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/agents/desk/mcp'), {
    fetch,
    requestInit: { headers: { authorization: `Bearer ${KEYS[who].key}` } },
    reconnectionOptions: {
      initialReconnectionDelay: 5,
      maxReconnectionDelay: 10,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 20,
    },
  })
  await client.connect(transport)
  clients.push(client)
  return client
}

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown>,
  options?: Parameters<Client['callTool']>[2],
): Promise<Result> {
  return (await client.callTool({ name, arguments: args }, undefined, options)) as unknown as Result
}

const approve = (): ElicitResult => ({ action: 'accept', content: { decision: 'approve' } })

async function waitFor(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 5000
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error('It did not happen in time.')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe('the real client of @modelcontextprotocol/sdk 1.32.2', () => {
  test('lists three tools, asks, continues in the same thread, and reads the status', async () => {
    const client = await connect('ada')
    expect(client.getServerVersion()).toMatchObject({ name: 'desk', title: 'Desk' })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['ask', 'continue', 'status'])
    await client.ping()

    const first = await call(client, 'ask', { message: 'Hello' })
    expect(first.isError).toBe(false)
    expect(first.content[0]?.text).toContain('You said: Hello.')
    const { threadId, status } = first.structuredContent!
    expect(status).toBe('completed')
    const second = await call(client, 'continue', { threadId, message: 'Again' })
    expect(second.structuredContent).toMatchObject({ threadId, status: 'completed' })
    expect(second.structuredContent?.text).toContain('You said: Again.')
    const now = await call(client, 'status', { threadId })
    expect(now.structuredContent).toEqual(second.structuredContent)
    expect((await kit.runtime.threads.get(threadId)).owner).toBe('ada')
  })

  test('an approval is a form; the call runs once when it is accepted', async () => {
    const asked: [string, object][] = []
    const client = await connect('ada', {
      onAsk: (message, schema) => {
        asked.push([message, schema])
        return approve()
      },
    })
    const { structuredContent } = await call(client, 'ask', { message: 'A refund please' })
    expect(structuredContent).toMatchObject({ status: 'completed', text: 'That is done.' })
    expect(asked).toHaveLength(1)
    expect(asked[0]![0]).toBe('desk asks for approval of the call refund {"amount":5}.')
    const events = await kit.runtime.threads.events(structuredContent!.threadId)
    const answers = events.flatMap(({ event }) =>
      event.type === 'interrupt_answered' ? [event.answer.type] : [],
    )
    expect(answers).toEqual(['approve'])
  })

  test('a form that is declined denies the call; one that is closed leaves it waiting', async () => {
    let action: ElicitResult['action'] = 'decline'
    const client = await connect('ada', { onAsk: () => ({ action }) })
    const denied = await call(client, 'ask', { message: 'A refund please' })
    expect(denied.structuredContent).toMatchObject({ status: 'completed', waiting: [] })
    action = 'cancel'
    const closed = await call(client, 'ask', { message: 'A refund please' })
    expect(closed.structuredContent).toMatchObject({
      status: 'waiting',
      waiting: [{ kind: 'approval', tool: 'refund', arguments: { amount: 5 } }],
    })
    expect(closed.content[0]?.text).toContain('A person has to answer')
    // The person may still decide, and `continue` without a message waits for the answer.
    const { threadId, waiting } = closed.structuredContent!
    const { interruptId, digest } = waiting[0]!
    await kit.runtime.inbox.approve({ threadId, interruptId, digest, by: 'ada' })
    const after = await call(client, 'continue', { threadId })
    expect(after.structuredContent).toMatchObject({ status: 'completed', text: 'That is done.' })
  })

  test('a question of a tool is a form, and its answer is the result of the call', async () => {
    const client = await connect('ada', {
      onAsk: () => ({ action: 'accept', content: { answer: 'The blue one.' } }),
    })
    const { structuredContent } = await call(client, 'ask', { message: 'ask me' })
    expect(structuredContent).toMatchObject({ status: 'completed' })
    const messages = await kit.runtime.threads.messages(structuredContent!.threadId)
    expect(JSON.stringify(messages)).toContain('The blue one.')
  })

  test('a client without forms, or without the scope of approvals, is told what waits', async () => {
    const plain = await connect('ada')
    const { structuredContent } = await call(plain, 'ask', { message: 'A refund please' })
    expect(structuredContent).toMatchObject({ status: 'waiting', waiting: [{ tool: 'refund' }] })
    const { threadId } = structuredContent!
    expect((await call(plain, 'status', { threadId })).structuredContent).toEqual(structuredContent)

    await kit.stop()
    const key = { ...KEYS.ada, scopes: ['threads:read', 'threads:write'] } as const
    kit = await startKit({ http: { auth: { keys: [key] } } })
    let asked = 0
    const client = await connect('ada', { onAsk: () => (asked++, approve()) })
    const other = await call(client, 'ask', { message: 'A refund please' })
    expect(other.structuredContent).toMatchObject({ status: 'waiting' })
    expect(asked).toBe(0)
  })

  test('what the model can mend is the result of the call', async () => {
    const client = await connect('ada')
    for (const [name, args, text] of [
      ['ask', {}, 'arguments.message is missing.'],
      ['ask', { message: 'x', extra: 1 }, 'arguments.extra is not a known field.'],
      ['continue', { threadId: 'nobody', message: 'x' }, 'There is no such thread.'],
      ['status', { threadId: '../../x' }, 'There is no such thread.'],
    ] as const) {
      const { isError, content } = await call(client, name, args)
      expect([isError, content[0]?.text]).toEqual([true, expect.stringContaining(text)])
    }
    await expect(call(client, 'none', {})).rejects.toThrow(/no such tool/)
  })

  test('a cancelled request stops the thread; the thread can be continued', async () => {
    const client = await connect('ada')
    const abort = new AbortController()
    const asked = call(client, 'ask', { message: 'Please hang' }, { signal: abort.signal })
    asked.catch(() => undefined)
    let id = ''
    await waitFor(async () => {
      const [thread] = await kit.runtime.threads.list({ tenant: 'acme', lifecycle: 'running' })
      id = thread?.id ?? ''
      return thread !== undefined
    })
    abort.abort()
    await expect(asked).rejects.toThrow()
    await waitFor(async () => (await kit.runtime.threads.get(id)).lifecycle === 'stopped')
    const { structuredContent } = await call(client, 'continue', { threadId: id, message: 'Hi' })
    expect(structuredContent).toMatchObject({ threadId: id, status: 'completed' })
  })

  test('progress keeps a client waiting that would give up', async () => {
    await kit.stop()
    kit = await startKit({ http: { limits: { heartbeatMs: 20 } } })
    const client = await connect('ada', {
      onAsk: async () => {
        await new Promise((resolve) => setTimeout(resolve, 200))
        return approve()
      },
    })
    const seen: number[] = []
    const { structuredContent } = await call(
      client,
      'ask',
      { message: 'A refund please' },
      {
        onprogress: ({ progress }) => seen.push(progress),
        resetTimeoutOnProgress: true,
        timeout: 120,
      },
    )
    expect(structuredContent).toMatchObject({ status: 'completed' })
    expect(seen.length).toBeGreaterThan(2)
    expect(seen).toEqual(seen.map((_, index) => index + 1))
  })

  test('a connection that breaks off is resumed, without asking the person twice', async () => {
    let asked = 0
    let isCut = false
    let isResumed = false
    const client = await connect('ada', {
      onAsk: async () => {
        asked++
        // The person is still thinking when the client is back.
        await waitFor(() => isResumed)
        await new Promise((resolve) => setTimeout(resolve, 100))
        return approve()
      },
      fetch: async (url, init) => {
        const request = new Request(url, init)
        const response = await kit.http.fetch(request)
        isResumed ||= request.headers.has('last-event-id')
        if (isCut || !response.headers.get('content-type')?.startsWith('text/event-stream'))
          return response
        // Breaks off after the question has arrived.
        let text = ''
        const cut = new TransformStream<string, string>({
          transform(part, controller) {
            text += part
            controller.enqueue(part)
            if (!text.includes('elicitation/create')) return
            isCut = true
            controller.terminate()
          },
        })
        const body = response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(cut)
        return new Response(body.pipeThrough(new TextEncoderStream()), response)
      },
    })
    const { structuredContent } = await call(client, 'ask', { message: 'A refund please' })
    expect(structuredContent).toMatchObject({ status: 'completed', text: 'That is done.' })
    expect([asked, isCut]).toEqual([1, true])
  })

  test('a server that restarts answers the request of its predecessor', async () => {
    await kit.stop()
    const store = memoryStore()
    const options: KitOptions = { runtime: { store } }
    const olds: Kit[] = []
    kit = await startKit(options)
    const client = await connect('ada', {
      onAsk: async () => {
        const old = kit
        kit = await startKit(options)
        old.http.endStreams()
        olds.push(old)
        return approve()
      },
    })
    const { structuredContent } = await call(client, 'ask', { message: 'A refund please' })
    expect(structuredContent).toMatchObject({ status: 'completed', text: 'That is done.' })
    expect(olds).toHaveLength(1)
    for (const old of olds) await old.stop()
  })
})

/** A request as ada, without the SDK. */
function post(body: unknown, headers: Record<string, string> = {}, who: Who = 'ada') {
  return kit.ask(who, 'POST', '/agents/desk/mcp', body, {
    accept: 'application/json, text/event-stream',
    ...headers,
  })
}

const rpc = (method: string, params: object = {}, id: number | string = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})

async function sessionWithForms(): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} } }
  const response = await post(rpc('initialize', params))
  return { 'mcp-session-id': response.headers.get('mcp-session-id')! }
}

/** The id of the question about a refund, and what ends the stream that asked it. */
async function question(): Promise<{ id: string; threadId: string; leave(): Promise<void> }> {
  const params = { name: 'ask', arguments: { message: 'A refund please' } }
  const response = await post(rpc('tools/call', params), await sessionWithForms())
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('elicitation/create')) text += (await reader.read()).value ?? ''
  const id = /"id":"(ask_[\w-]+)"/.exec(text)![1]!
  const [item] = await kit.runtime.inbox.list({ tenant: 'acme' })
  return { id, threadId: item!.threadId, leave: () => reader.cancel() }
}

const accepted = (id: string) => ({
  jsonrpc: '2.0',
  id,
  result: { action: 'accept', content: { decision: 'approve' } },
})

describe('what a hostile or broken client sends', () => {
  test('host and origin are checked, as MCP asks against DNS rebinding', async () => {
    const body = rpc('tools/list')
    expect((await post(body, { origin: 'https://evil.example' })).status).toBe(403)
    expect((await post(body, { host: 'evil.example' })).status).toBe(403)
    expect((await post(body, { origin: 'http://localhost' })).status).toBe(200)
  })

  test('an answer to a question counts only for those who may approve, and only with its digest', async () => {
    const { id, threadId, leave } = await question()
    const forged = (change: (part: string) => string): string => {
      const [thread, part] = JSON.parse(Buffer.from(id.slice(4), 'base64url').toString()) as [
        string,
        string,
      ]
      return `ask_${Buffer.from(JSON.stringify([thread, change(part)])).toString('base64url')}`
    }
    expect((await post(accepted(id), {}, 'rival')).status).toBe(404)
    expect((await post(accepted(id), {}, 'bob')).status).toBe(404)
    expect((await post(accepted(id), {}, 'reader')).status).toBe(403)
    expect((await kit.ask(undefined, 'POST', '/agents/desk/mcp', accepted(id))).status).toBe(401)
    for (const other of [
      forged((part) => JSON.stringify([...(JSON.parse(part) as string[]).slice(0, 2), 'other'])),
      forged((part) => JSON.stringify((JSON.parse(part) as string[]).slice(0, 2))),
      forged((part) => part.replace('approval', 'input')),
      forged((part) => part.replace('approval', 'in_doubt')),
    ])
      expect((await post(accepted(other))).status).toBe(400)
    expect((await post({ ...accepted(id), result: { action: 'accept' } })).status).toBe(400)
    const maybe = { action: 'accept', content: { decision: true } }
    expect((await post({ ...accepted(id), result: maybe })).status).toBe(400)
    expect((await kit.runtime.threads.get(threadId)).lifecycle).toBe('waiting')
    expect((await post(accepted(id))).status).toBe(202)
    expect((await kit.runtime.threads.settled(threadId)).outcome).toBe('completed')
    expect((await post(accepted(id))).status).toBe(202) // answered already: has no effect
    await leave()
  })

  test('the scope approvals:write is needed although the key may write', async () => {
    const { id, threadId, leave } = await question()
    const key = { ...KEYS.ada, scopes: ['threads:read', 'threads:write'] } as const
    const other = await import('../../src/index.ts').then(({ createHttp }) =>
      createHttp(kit.runtime, { auth: { keys: [key] } }),
    )
    const headers = { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(accepted(id)) }
    const response = await other.fetch(new Request('http://localhost/agents/desk/mcp', init))
    expect(response.status).toBe(403)
    expect((await kit.runtime.threads.get(threadId)).lifecycle).toBe('waiting')
    await leave()
  })

  test('another client cannot resume or cancel a request', async () => {
    const { threadId, leave } = await question()
    const part = JSON.stringify({ id: 1, asked: [] })
    const id = Buffer.from(JSON.stringify([threadId, part])).toString('base64url')
    const resume = (who: Who, last: string) =>
      kit.ask(who, 'GET', '/agents/desk/mcp', undefined, { 'last-event-id': last })
    expect((await resume('rival', `event_${id}`)).status).toBe(404)
    expect((await resume('bob', `event_${id}`)).status).toBe(404)
    expect((await resume('ada', 'nonsense')).status).toBe(400)
    expect((await kit.ask('ada', 'GET', '/agents/desk/mcp')).status).toBe(405)
    const own = await resume('ada', `event_${id}`)
    expect(own.status).toBe(200)
    expect(await own.text()).toContain('"status":"waiting"') // this client has no forms
    await leave()
  })

  test('sessions and versions that are none are refused', async () => {
    const list = rpc('tools/list')
    expect((await post(list, { 'mcp-session-id': 'nonsense' })).status).toBe(404)
    expect((await post(list, { 'mcp-protocol-version': '1999-01-01' })).status).toBe(400)
    expect((await post(rpc('nothing/known'))).status).toBe(200)
    expect(await (await post(rpc('nothing/known'))).json()).toMatchObject({
      error: { code: -32601 },
    })
    expect((await post([list])).status).toBe(400)
    const params = { name: 'ask', arguments: { message: 'x' } }
    const json = await post(rpc('tools/call', params), { accept: 'application/json' })
    expect(json.status).toBe(415)
    expect(await kit.runtime.threads.list({ tenant: 'acme' })).toEqual([])
  })

  test('a client without room for a stream changes nothing', async () => {
    await kit.stop()
    kit = await startKit({ http: { limits: { maxStreamsPerClient: 0 } } })
    const params = { name: 'ask', arguments: { message: 'x' } }
    expect((await post(rpc('tools/call', params))).status).toBe(429)
    expect(await kit.runtime.threads.list({ tenant: 'acme' })).toEqual([])
  })

  test('whatever JSON comes, the server answers and nothing breaks', async () => {
    const method = fc.constantFrom(
      'initialize',
      'tools/call',
      'tools/list',
      'notifications/cancelled',
      'ping',
      '',
    )
    const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>
    const body = fc.record(
      {
        jsonrpc: fc.constantFrom('2.0', '1.0'),
        id: fc.oneof(anyJson, fc.constantFrom('ask_e30', 'ask_WyJhIiwiYiJd', 1)),
        method: fc.oneof(method, anyJson),
        params: fc.oneof(
          anyJson,
          fc.record({
            name: fc.constantFrom('status', 'continue', 'x'),
            arguments: anyJson,
            _meta: anyJson,
          }),
        ),
        result: anyJson,
      },
      { requiredKeys: [] },
    )
    const headers = fc.record(
      { 'mcp-session-id': fc.base64String(), 'last-event-id': fc.base64String() },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(body, headers, async (message, given) => {
        const response = await post(message, given)
        await response.body?.cancel()
        expect(response.status).toBeLessThan(500)
        const resumed = await kit.ask('ada', 'GET', '/agents/desk/mcp', undefined, given)
        await resumed.body?.cancel()
        expect(resumed.status).toBeGreaterThanOrEqual(400)
        expect(resumed.status).toBeLessThan(500)
      }),
      { numRuns: 300 },
    )
  })
})
