import dns from 'node:dns'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { agent, AgentState } from '../index.ts'
import { connectMcp, type McpConnection } from './index.ts'
import { pinnedFetch } from './mcp-connect-node.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
const script = fileURLToPath(new URL('../../test/mcp-server.ts', import.meta.url))
const start = AgentState.initial()

async function byCommand(): Promise<McpConnection> {
  const connection = await connectMcp({
    command: process.execPath,
    args: ['--conditions=@skein/source', script],
  })
  closing.push(() => connection.close())
  return connection
}

describe('an address', () => {
  test.each([
    'http://127.0.0.1:1/mcp',
    'http://localhost:1/mcp',
    'http://[::1]:1/',
    'http://[::ffff:127.0.0.1]/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://169.254.169.254/latest/meta-data',
    'http://10.1.2.3/',
    'http://0/',
    'file:///etc/passwd',
    'ftp://example.com/',
    'https://user:secret@example.com/',
    'no address',
  ])('%s is refused before anything is sent', async (url) => {
    const error = await connectMcp({ url }).catch((one: unknown) => one)
    expect(error).toMatchObject({ code: 'INVALID_REQUEST' })
    expect(String(error)).not.toContain('secret')
  })

  test('of a trusted private network works; a redirect is not followed', async () => {
    let isRedirecting = false
    const server = createServer((request, response) => {
      if (isRedirecting) return void response.writeHead(307, { location: 'http://10.0.0.1/' }).end()
      // Without sessions, the SDK wants a server of its own for each request.
      const mcp = new McpServer({ name: 'web', version: '1.0.0' })
      mcp.registerTool('hello', { description: 'Greets.' }, () => ({
        content: [{ type: 'text', text: 'hello' }],
      }))
      const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
      void mcp.connect(transport as never).then(() => transport.handleRequest(request, response))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(
      () => server.close(),
      () => server.closeAllConnections(),
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
    const connection = await connectMcp({ url, allowsPrivate: true })
    closing.push(() => connection.close())
    const model = scripted([calls('hello', {}), says('done')])
    const { turn } = await agent({ model, tools: connection.tools }).generate('go', start)
    expect(turn.toolExecutions[0]?.result).toBe('hello')
    isRedirecting = true
    await expect(connectMcp({ url, allowsPrivate: true })).rejects.toThrow()
  })
})

describe('a name', () => {
  /** Makes all names resolve to one address when they are looked up first, and to another for a connection. */
  function resolveTo(first: string, then: string): void {
    const later = vi.spyOn(dns, 'lookup').mockImplementation(((...args: unknown[]) => {
      const callback = args.at(-1) as (...given: unknown[]) => void
      if ((args[1] as { all?: boolean }).all) callback(null, [{ address: then, family: 4 }])
      else callback(null, then, 4)
    }) as never)
    const now = vi
      .spyOn(dns.promises, 'lookup')
      .mockImplementation((async () => [{ address: first, family: 4 }]) as never)
    closing.push(
      () => later.mockRestore(),
      () => now.mockRestore(),
    )
  }

  async function listen(): Promise<{ port: number; requests: string[] }> {
    const requests: string[] = []
    const server = createServer((request, response) => {
      requests.push(`${request.method} ${request.headers.host}`)
      request.resume()
      response.writeHead(request.method === 'GET' ? 200 : 404, { 'x-seen': 'yes' }).end('hello')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(
      () => server.close(),
      () => server.closeAllConnections(),
    )
    return { port: (server.address() as AddressInfo).port, requests }
  }

  test('that points elsewhere after it was checked reaches nothing', async () => {
    const { port, requests } = await listen()
    resolveTo('93.184.216.34', '127.0.0.1')
    const error = await connectMcp({ url: `http://rebind.example:${port}/mcp` }).catch(
      (one: unknown) => one,
    )
    expect(error).toMatchObject({ code: 'INVALID_REQUEST' })
    expect(requests).toEqual([])
  })

  test('is connected to at the address that was checked, under its own name', async () => {
    const { port, requests } = await listen()
    resolveTo('127.0.0.1', '127.0.0.1')
    const get = pinnedFetch(() => false)
    const url = new URL(`http://server.example:${port}/mcp`)
    const answer = await get(url, { headers: { accept: 'text/plain' } })
    expect([answer.status, answer.headers.get('x-seen'), await answer.text()]).toEqual([
      200,
      'yes',
      'hello',
    ])
    const posted = await get(url, { method: 'POST', body: '{}' })
    expect(posted.status).toBe(404)
    await posted.body?.cancel()
    expect(requests).toEqual([`GET server.example:${port}`, `POST server.example:${port}`])
    await expect(pinnedFetch(() => true)(url)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    await expect(get(url, { signal: AbortSignal.abort() })).rejects.toThrow()
  })

  test('may answer with any status line: the request fails or has no body, the process goes on', async () => {
    const lines = ['205 Reset', '999 Odd']
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.end(`HTTP/1.1 ${lines[0]}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => server.close())
    const { port } = server.address() as AddressInfo
    const get = pinnedFetch(() => false)
    const url = new URL(`http://127.0.0.1:${port}/mcp`)
    const reset = await get(url)
    expect([reset.status, reset.body]).toEqual([205, null])
    for (lines.shift(); lines.length > 0; lines.shift()) await expect(get(url)).rejects.toThrow()
  })
})

describe('a command', () => {
  test('a list that changes during a run reaches the next step', async () => {
    const connection = await byCommand()
    const model = scripted([calls('grow', {}), calls('grown', {}), says('done')])
    const worker = agent({ model, tools: connection.tools, middleware: [connection.middleware] })
    const { turn } = await worker.generate('go', start)
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual(['growing', 'I am new'])
    expect(model.requests[1]!.tools.map(({ name }) => name)).toContain('grown')
  })

  test('a question of the server is an interrupt that can be stored and answered', async () => {
    const connection = await byCommand()
    const model = scripted([calls('book', {}), ...Array.from({ length: 4 }, () => says('done'))])
    const worker = agent({ model, tools: connection.tools })
    const { state } = await worker.generate('go', start)
    const stored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
    expect(stored.interrupts[0]).toMatchObject({
      kind: 'input',
      request: { elicitation: { message: 'Which seat?', requestedSchema: { type: 'object' } } },
    })
    const { id } = stored.interrupts[0]!
    // Answers that were stored by earlier versions have the data as JSON in `token`.
    const old = { type: 'approve', token: JSON.stringify({ seat: '1B' }) } as const
    for (const [answer, result] of [
      [{ type: 'approve', data: { seat: '12A' } } as const, 'booked 12A'],
      [old, 'booked 1B'],
      [
        { type: 'approve', data: { seat: '12A' }, token: 'an approval token' } as const,
        'booked 12A',
      ],
    ] as const) {
      const { turn } = await worker.resume(stored, { [id]: answer })
      expect(turn.toolExecutions[0]?.result).toBe(result)
    }
    await expect(
      worker.resume(stored, { [id]: { type: 'approve', data: 'seat' as never } }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })

  test('a program that does not exist is an error', async () => {
    await expect(connectMcp({ command: '/no/such/program' })).rejects.toThrow()
  })
})
