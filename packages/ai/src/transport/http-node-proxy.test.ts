import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import {
  connect,
  createServer as createSocketServer,
  type AddressInfo,
  type Socket,
} from 'node:net'
import { setDefaultCACertificates } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { selfSignedCertificate } from '../../../../conformance/upp/support/self-signed.ts'
import { nodeTransport } from './http-node.ts'
import { proxyFor } from './http-node-proxy.ts'
import type { TransportRequest } from './transport.ts'

const certificate = selfSignedCertificate('localhost')
beforeAll(() => setDefaultCACertificates([certificate.cert]))

const variables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'REQUEST_METHOD']
const open: { close(): void }[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
  for (const name of variables) {
    delete process.env[name]
    delete process.env[name.toLowerCase()]
  }
})

async function listen(server: Server | ReturnType<typeof createSocketServer>): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {})
    sockets.add(socket)
  })
  open.push({
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

interface Seen {
  readonly line: string
  readonly headers: IncomingMessage['headers']
}

function note(seen: Seen[], { method, url, headers }: IncomingMessage): void {
  seen.push({ line: `${method} ${url}`, headers })
}

/** The server behind the proxy: answers with its name and keeps what it was sent. */
async function serveOrigin(isSecure: boolean): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const listener = (request: IncomingMessage, response: { end(text: string): void }): void => {
    note(seen, request)
    request.resume().on('end', () => response.end('origin'))
  }
  const server = isSecure ? createSecureServer(certificate, listener) : createServer(listener)
  const port = await listen(server)
  return { url: `${isSecure ? 'https' : 'http'}://localhost:${port}`, seen }
}

interface ProxyServer {
  readonly host: string
  readonly seen: Seen[]
  /** The bytes that went through tunnels, from the client. */
  readonly tunnelled: () => string
}

/** A forward proxy. With `login` it refuses whoever does not send it. */
async function serveProxy(
  options: { login?: string; isSecure?: boolean } = {},
): Promise<ProxyServer> {
  const seen: Seen[] = []
  const bytes: Buffer[] = []
  const isRefused = ({ headers }: IncomingMessage): boolean =>
    options.login !== undefined &&
    headers['proxy-authorization'] !== `Basic ${Buffer.from(options.login).toString('base64')}`
  const server = options.isSecure ? createSecureServer(certificate) : createServer()
  server.on('request', (request: IncomingMessage, response) => {
    note(seen, request)
    if (isRefused(request)) return void response.writeHead(407).end()
    const target = new URL(request.url!)
    const { 'proxy-authorization': _, ...headers } = request.headers
    const socket = connect(Number(target.port), '127.0.0.1', () => {
      const lines = Object.entries(headers).map(
        ([name, value]) => `${name}: ${value as string}\r\n`,
      )
      socket.write(`${request.method} ${target.pathname} HTTP/1.1\r\n${lines.join('')}\r\n`)
      request.pipe(socket, { end: false })
    })
    socket.once('data', () => response.end('through the proxy'))
    socket.on('error', () => response.destroy())
    response.on('close', () => socket.destroy())
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    note(seen, request)
    if (isRefused(request)) return void socket.end('HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n')
    const upstream = connect(Number(request.url!.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.on('data', (chunk: Buffer) => bytes.push(chunk))
      socket.pipe(upstream).pipe(socket)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('error', () => upstream.destroy()) // over TLS it is not the socket that `listen` has seen
    socket.on('close', () => upstream.destroy())
  })
  const port = await listen(server)
  return {
    host: `localhost:${port}`,
    seen,
    tunnelled: () => Buffer.concat(bytes).toString('latin1'),
  }
}

/** A server that speaks bytes. */
async function serveBytes(onConnection: (socket: Socket) => void): Promise<string> {
  return `localhost:${await listen(createSocketServer(onConnection))}`
}

function post(url: string, signal = new AbortController().signal): TransportRequest {
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' }
  return { url: `${url}/v1/x?y=z`, method: 'POST', headers, body: '{"a":1}', signal }
}

async function send(request: TransportRequest, transport = nodeTransport()!): Promise<string> {
  const { status, body } = await transport.send(request)
  let text = ''
  for (let chunk = await body.read(); chunk; chunk = await body.read())
    text += Buffer.from(chunk).toString()
  return `${status} ${text}`
}

describe('plain HTTP', () => {
  test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'])(
    '%s: the proxy gets the whole address',
    async (name) => {
      const [origin, proxy] = [await serveOrigin(false), await serveProxy()]
      process.env[name] = `http://${proxy.host}`
      expect(await send(post(origin.url))).toBe('200 through the proxy')
      expect(proxy.seen.map(({ line }) => line)).toEqual([`POST ${origin.url}/v1/x?y=z`])
      expect(origin.seen).toHaveLength(1)
    },
  )

  test('credentials go to the proxy in its own header', async () => {
    const [origin, proxy] = [await serveOrigin(false), await serveProxy({ login: 'me:p@ss' })]
    process.env['http_proxy'] = `http://me:p%40ss@${proxy.host}`
    expect(await send(post(origin.url))).toBe('200 through the proxy')
    expect(origin.seen[0]!.headers['proxy-authorization']).toBeUndefined()
    process.env['http_proxy'] = `http://${proxy.host}`
    expect(await send(post(origin.url))).toBe('407 ')
  })

  test('an address without a scheme, and the connection is used again', async () => {
    const [origin, proxy] = [await serveOrigin(false), await serveProxy()]
    process.env['HTTP_PROXY'] = proxy.host
    const transport = nodeTransport()!
    for (let i = 0; i < 3; i++) await send(post(origin.url), transport)
    expect(proxy.seen).toHaveLength(3)
  })

  test('HTTPS_PROXY does not apply to it, nor a forged HTTP_PROXY', async () => {
    const [origin, proxy] = [await serveOrigin(false), await serveProxy()]
    process.env['HTTPS_PROXY'] = proxy.host
    expect(await send(post(origin.url))).toBe('200 origin')
    Object.assign(process.env, { HTTP_PROXY: proxy.host, REQUEST_METHOD: 'GET' })
    expect(await send(post(origin.url))).toBe('200 origin')
    expect(proxy.seen).toEqual([])
  })
})

describe('https', () => {
  test.each(['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY'])(
    '%s: the request travels in a tunnel, where the proxy cannot read it',
    async (name) => {
      const [origin, proxy] = [await serveOrigin(true), await serveProxy({ login: 'me:secret' })]
      process.env[name] = `http://me:secret@${proxy.host}`
      const transport = nodeTransport()!
      expect(await send(post(origin.url), transport)).toBe('200 origin')
      expect(await send(post(origin.url), transport)).toBe('200 origin')
      const { host } = new URL(origin.url)
      expect(proxy.seen).toMatchObject([{ line: `CONNECT ${host}`, headers: { host } }])
      expect(proxy.seen[0]!.headers['authorization']).toBeUndefined()
      expect(proxy.tunnelled()).not.toMatch(/Bearer|POST/)
      expect(origin.seen.map(({ line }) => line)).toEqual(Array(2).fill('POST /v1/x?y=z'))
      for (const { headers } of origin.seen)
        expect(headers).toMatchObject({ authorization: 'Bearer key' })
      expect(JSON.stringify(origin.seen)).not.toMatch(/proxy-authorization|secret/)
    },
  )

  test('through a proxy that itself speaks TLS', async () => {
    const [origin, proxy] = [await serveOrigin(true), await serveProxy({ isSecure: true })]
    process.env['HTTPS_PROXY'] = `https://${proxy.host}`
    expect(await send(post(origin.url))).toBe('200 origin')
    expect(proxy.seen).toHaveLength(1)
  })

  test('a host whose certificate is not trusted gets nothing, through a tunnel too', async () => {
    const proxy = await serveProxy()
    const seen: string[] = []
    const server = createSecureServer(selfSignedCertificate('localhost'), () =>
      seen.push('request'),
    )
    const url = `https://localhost:${await listen(server)}`
    process.env['HTTPS_PROXY'] = proxy.host
    await expect(send(post(url))).rejects.toMatchObject({ code: expect.stringMatching(/CERT/) })
    expect(seen).toEqual([])
  })

  test.each([
    ['refuses', (socket: Socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'), /HTTP 407/],
    ['closes', (socket: Socket) => socket.end(), /closed the connection/],
    ['is not HTTP', (socket: Socket) => socket.end('220 mail\r\n'), /did not answer with HTTP/],
    [
      'sends data first',
      (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nhello'),
      /sent unexpected data/,
    ],
  ])('a proxy that %s is an error without the credentials', async (_, onData, message) => {
    const host = await serveBytes((socket) => socket.once('data', () => onData(socket)))
    process.env['HTTPS_PROXY'] = `http://me:secret@${host}`
    const failure = await send(post('https://localhost:1')).catch((error: unknown) => error)
    expect(failure).toMatchObject({ message: expect.stringMatching(message) })
    expect(String(failure)).toContain(host)
    expect(String(failure)).not.toContain('secret')
  })

  test('an abort ends the wait for the tunnel and closes the connection', async () => {
    let close!: () => void
    const closed = new Promise<void>((resolve) => (close = resolve))
    const host = await serveBytes((socket) => void socket.resume().on('close', close))
    process.env['HTTPS_PROXY'] = host
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await expect(send(post('https://localhost:1', controller.signal))).rejects.toThrow('enough')
    await closed
  })
})

describe('the limit for making a connection', () => {
  test.each([
    ['a host that never starts TLS', {}],
    ['a proxy that never answers', { isProxied: true }],
  ])('%s', async (_, { isProxied = false }: { isProxied?: boolean }) => {
    let close!: () => void
    const closed = new Promise<void>((resolve) => (close = resolve))
    const host = await serveBytes((socket) => void socket.resume().on('close', close))
    if (isProxied) process.env['HTTPS_PROXY'] = host
    const url = isProxied ? 'https://localhost:1' : `https://${host}`
    const start = performance.now()
    await expect(send({ ...post(url), connectMs: 100 })).rejects.toMatchObject({
      code: 'ETIMEDOUT',
    })
    expect(performance.now() - start).toBeLessThan(5_000)
    await closed
  })

  test('does not apply once the connection is made', async () => {
    // Time passes only after the request has arrived, so a busy machine cannot make the connection late.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const origin = await serveBytes((socket) =>
        socket.on('data', () => {
          vi.advanceTimersByTime(150)
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        }),
      )
      expect(await send({ ...post(`http://${origin}`), connectMs: 75 })).toBe('200 ok')
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('which proxy', () => {
  test.each([
    ['http://a.example/', { HTTP_PROXY: 'http://p:1' }, 'http://p:1'],
    ['https://a.example/', { HTTP_PROXY: 'http://p:1' }, undefined],
    ['https://a.example/', { HTTPS_PROXY: 'http://p:1', ALL_PROXY: 'http://q:1' }, 'http://p:1'],
    ['https://a.example/', { HTTPS_PROXY: 'http://p:1', https_proxy: 'http://q:2' }, 'http://q:2'],
    ['https://a.example/', { HTTPS_PROXY: '' }, undefined],
  ])('%s with %j: %s', (url, environment, expected) => {
    Object.assign(process.env, environment)
    expect(proxyFor(new URL(url))?.url.origin).toBe(expected)
  })

  test.each([
    ['http://a.example/', '*', true],
    ['http://a.example/', 'a.example', true],
    ['http://a.example./', 'a.example', true],
    ['http://b.a.example/', 'a.example', true],
    ['http://ba.example/', 'a.example', false],
    ['http://b.a.example/', '.a.example', true],
    ['http://a.example/', '.a.example', true],
    ['http://b.a.example/', '*.A.Example', true],
    ['http://a.example/', 'other, a.example', true],
    ['http://a.example/', 'other a.example', true],
    ['http://a.example/', 'a.example:80', true],
    ['https://a.example/', 'a.example:443', true],
    ['http://a.example:8080/', 'a.example:80', false],
    ['http://a.example:8080/', '.example:8080', true],
    ['http://10.1.2.3/', '10.0.0.0/8', true],
    ['http://11.1.2.3/', '10.0.0.0/8', false],
    ['http://10.1.2.3/', '10.1.2.3', true],
    ['http://127.0.0.1:90/', '27.0.0.1', false],
    ['http://[::1]:90/', '::1', true],
    ['http://[::1]:90/', '[::1]:90', true],
    ['http://[::1]:90/', '[::1]:91', false],
    ['http://[fd00::1]/', 'fd00::/8', true],
    ['http://[fe00::1]/', 'fd00::/8', false],
    ['http://10.a.example/', '10.0.0.0/8', false],
    ['http://a.example/', '', false],
  ])('%s with NO_PROXY=%s is exempt: %s', (url, value, expected) => {
    for (const name of ['NO_PROXY', 'no_proxy']) {
      Object.assign(process.env, { ALL_PROXY: 'http://p:1', [name]: value })
      expect(proxyFor(new URL(url)) === undefined).toBe(expected)
      delete process.env[name]
    }
  })

  test.each(['socks5://me:secret@p:1', 'http://', 'http://p:99999'])(
    '%s is refused, so that nothing goes round it, and not quoted',
    async (value) => {
      process.env['ALL_PROXY'] = value
      const failure = await send(post('http://localhost:1')).catch((error: unknown) => error)
      expect(String(failure)).toContain('the proxy for http in the environment')
      expect(String(failure)).not.toContain('secret')
    },
  )
})
