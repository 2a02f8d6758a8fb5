import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { calls, says, scripted } from '@skein/ai/testing'
import type { ToolExecution } from '@skein/ai'
import { agent, AgentState } from '../index.ts'
import { connectMcp, type McpConnection } from './index.ts'
import type { McpServerSource } from './mcp-connect-node.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function connect(source: McpServerSource): Promise<McpConnection> {
  const connection = await connectMcp(source)
  closing.push(() => connection.close())
  return connection
}

/** Calls tools of the server, one after the other, in one run of an agent. */
async function use(connection: McpConnection, ...names: string[]): Promise<ToolExecution[]> {
  const model = scripted([...names.map((name) => calls(name, {})), says('done')])
  const worker = agent({ model, tools: connection.tools, middleware: [connection.middleware] })
  const { turn } = await worker.generate('go', AgentState.initial())
  return [...turn.toolExecutions]
}

describe('a server over HTTP', () => {
  /**
   * A server with sessions; `restart` forgets them all, as a deployment does. Without `keepsAlive`, each request gets a
   * connection of its own: over one that the server is just closing, nobody knows whether a request was read. A text of
   * `refuse` is its answer of 403.
   */
  async function serve({
    keepsAlive = true,
    refuse,
  }: {
    keepsAlive?: boolean
    refuse?: (request: IncomingMessage) => string | undefined
  } = {}): Promise<{
    url: string
    restart: () => void
    seen: IncomingMessage[]
    sessions: Map<string, StreamableHTTPServerTransport>
    runs: string[]
    listen: () => Promise<void>
    stop: () => Promise<void>
  }> {
    const sessions = new Map<string, StreamableHTTPServerTransport>()
    const seen: IncomingMessage[] = []
    const runs: string[] = []
    const open = async (): Promise<StreamableHTTPServerTransport> => {
      const mcp = new McpServer({ name: 'web', version: '1.0.0' })
      const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
      mcp.registerTool('ping', { description: 'Answers.' }, () => {
        runs.push('ping')
        return text('pong')
      })
      mcp.registerTool('pay', { description: 'Pays.' }, async () => {
        runs.push('pay')
        server.closeAllConnections()
        await new Promise(() => {})
        return text('never')
      })
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      })
      await mcp.connect(transport as never)
      return transport
    }
    const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      seen.push(request)
      const refusal = refuse?.(request)
      if (refusal !== undefined) return void response.writeHead(403).end(refusal)
      const id = request.headers['mcp-session-id']
      const known = typeof id === 'string' ? sessions.get(id) : undefined
      if (id !== undefined && !known) {
        request.resume()
        return void response
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}')
      }
      await (known ?? (await open())).handleRequest(request, response)
    }
    const server: Server = createServer((request, response) => {
      response.shouldKeepAlive = keepsAlive
      void handle(request, response)
    })
    const listen = (port = 0): Promise<void> =>
      new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
    const stop = (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    await listen()
    closing.push(() => server.listening && stop())
    const { port } = server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/mcp`
    return {
      url,
      restart: () => sessions.clear(),
      seen,
      sessions,
      runs,
      listen: () => listen(port),
      stop,
    }
  }

  test('that has forgotten the session gets a new one, and the call is sent to it', async () => {
    const server = await serve()
    const mcp = await connect({ url: server.url, allowsPrivate: true })
    server.restart()
    expect(await use(mcp, 'ping', 'ping')).toMatchObject([
      { isError: false, result: 'pong' },
      { isError: false, result: 'pong' },
    ])
    expect(server.sessions.size).toBe(1)
    expect(server.runs).toEqual(['ping', 'ping'])
  })

  test('that ends during a call: the outcome is unknown, and the next call gets a new connection', async () => {
    const server = await serve()
    const mcp = await connect({ url: server.url, allowsPrivate: true })
    const [paid, after] = await use(mcp, 'pay', 'ping')
    expect(paid).toMatchObject({
      isError: true,
      result: expect.stringMatching(/"pay".*outcome is unknown/),
    })
    expect(after).toMatchObject({ isError: false, result: 'pong' })
    expect(server.runs).toEqual(['pay', 'ping'])
  })

  test('that is down gives one clear error, and is used again when it is back', async () => {
    const server = await serve({ keepsAlive: false })
    const mcp = await connect({ url: server.url, allowsPrivate: true })
    await server.stop()
    const [down] = await use(mcp, 'ping')
    expect(down).toMatchObject({
      isError: true,
      result: expect.stringMatching(/127\.0\.0\.1:\d+ cannot be reached: .* The call was not sent/),
    })
    expect(server.runs).toEqual([])
    server.restart()
    await server.listen()
    await vi.waitFor(
      async () => expect(await use(mcp, 'ping')).toMatchObject([{ isError: false }]),
      { timeout: 5000, interval: 100 },
    )
  })

  test('that quotes what it was sent: no error has the token', async () => {
    let refuses = false
    const { url } = await serve({
      refuse: ({ headers, url: path }) =>
        refuses ? `I know ${headers.authorization} and ${path}.` : undefined,
    })
    const token = 'sk-canary-4711'
    const source = {
      url: `${url}?api_key=canary-in-query`,
      headers: () => ({ authorization: `Bearer ${token}` }),
      allowsPrivate: true,
    }
    const connection = await connect(source)
    refuses = true
    const executions = await use(connection, 'ping', 'ping')
    const failure: unknown = await connect(source).catch((error: unknown) => error)
    expect(executions.map(({ isError }) => isError)).toEqual([true, true])
    const texts = [...executions.map(({ result }) => String(result)), inspect(failure)]
    for (const text of texts) {
      expect(text).toContain('I know [redacted] and ')
      expect(text).not.toMatch(/canary/)
    }
  })

  test('gets headers that a function makes for each request', async () => {
    const server = await serve()
    let token = 0
    const headers = async () => ({ authorization: `Bearer ${++token}` })
    const mcp = await connect({ url: server.url, allowsPrivate: true, headers })
    await use(mcp, 'ping', 'ping')
    const sent = server.seen.map((request) => request.headers.authorization)
    expect(sent.length).toBeGreaterThanOrEqual(5)
    expect(new Set(sent).size).toBe(sent.length)
    expect(sent.every((one) => /^Bearer \d+$/.test(one ?? ''))).toBe(true)
  })
})

describe('a server over HTTP that is written without the SDK', () => {
  interface Call {
    readonly id: number
    readonly params: { readonly name: string }
  }
  type Answer = (call: Call, response: ServerResponse) => void

  /** A server with the tools `first` and `second`; `runs` are the calls that it got. */
  async function serve(answer: Answer): Promise<{ url: string; runs: string[] }> {
    const runs: string[] = []
    const inputSchema = { type: 'object' }
    const results: Readonly<Record<string, object>> = {
      initialize: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'plain', version: '1.0.0' },
      },
      'tools/list': { tools: ['first', 'second'].map((name) => ({ name, inputSchema })) },
    }
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const part of request) body += String(part)
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const message = JSON.parse(body) as Call & { method: string }
      const { id, method } = message
      if (id === undefined) return void response.writeHead(202).end()
      if (method !== 'tools/call')
        return void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }))
      runs.push(message.params.name)
      answer(message, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => {
      server.close()
      server.closeAllConnections()
    })
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, runs }
  }

  test.each([
    [404, 'No such book.'],
    [400, 'The session of the parliament is over.'],
  ])(
    'an error of JSON-RPC with the code %i is the answer of the tool, and the call is not repeated',
    async (code, message) => {
      const { url, runs } = await serve(({ id }, response) => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
      })
      const mcp = await connect({ url, allowsPrivate: true })
      expect(await use(mcp, 'first')).toMatchObject([
        { isError: true, result: `MCP error ${code}: ${message}` },
      ])
      expect(runs).toEqual(['first'])
    },
  )

  test('a response that ends after its call was aborted does not end the call after it', async () => {
    const delays: Readonly<Record<string, number>> = { first: 400, second: 2000 }
    const { url, runs } = await serve(({ id, params }, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n')
      const result = { content: [{ type: 'text', text: `${params.name} is done` }] }
      const end = `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`
      setTimeout(() => response.end(end), delays[params.name])
    })
    const mcp = await connect({ url, allowsPrivate: true })
    const worker = agent({ model: scripted([calls('first', {})]), tools: mcp.tools })
    const controller = new AbortController()
    const run = worker.generate('go', AgentState.initial(), { signal: controller.signal })
    const aborted = expect(run).rejects.toMatchObject({ code: 'CANCELLED' })
    await vi.waitFor(() => expect(runs).toEqual(['first']))
    controller.abort()
    await aborted
    expect(await use(mcp, 'second')).toMatchObject([{ isError: false, result: 'second is done' }])
    expect(runs).toEqual(['first', 'second'])
  })
})
