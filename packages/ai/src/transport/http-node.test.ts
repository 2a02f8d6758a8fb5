import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createSocketServer, type AddressInfo, type Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { nodeTransport } from './http-node.ts'
import type { ByteSource, Transport, TransportRequest } from './transport.ts'

const open: { close(): void }[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
})

async function serve(listener: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push({
    close() {
      server.closeAllConnections()
      server.close()
    },
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

/** A server that speaks bytes. */
async function serveBytes(onConnection: (socket: Socket, count: number) => void): Promise<string> {
  const sockets: Socket[] = []
  const server = createSocketServer((socket) => {
    socket.on('error', () => {})
    sockets.push(socket)
    onConnection(socket, sockets.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push({
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function client(): Transport {
  return nodeTransport()!
}

function post(
  url: string,
  body: TransportRequest['body'] = '{}',
  signal?: AbortSignal,
): TransportRequest {
  return {
    url,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { body }),
    signal: signal ?? new AbortController().signal,
  }
}

async function textOf(body: ByteSource): Promise<string> {
  const chunks: Uint8Array[] = []
  for (let chunk = await body.read(); chunk; chunk = await body.read()) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function signalled<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

describe('an exchange', () => {
  test('sends method, path, query, headers and UTF-8 body; gives status, headers and body', async () => {
    const seen: unknown[] = []
    const { url } = await serve(async (request, response) => {
      const { method, headers } = request
      seen.push(method, request.url, headers['x-name'], (await bodyOf(request)).toString())
      seen.push(headers['accept-encoding'], headers['content-length'])
      response.writeHead(418, { 'X-Answer': 'yes' }).end('grüße 🫖')
    })
    const request = post(`${url}/v1/a%20b?c=d`, '{"a":"ü"}')
    const response = await client().send({ ...request, headers: { 'x-name': 'é' } })
    expect(seen).toEqual(['POST', '/v1/a%20b?c=d', 'é', '{"a":"ü"}', 'identity', '10'])
    expect([response.status, response.headers.get('X-Answer')]).toEqual([418, 'yes'])
    expect(await textOf(response.body)).toBe('grüße 🫖')
  })

  test('the next request uses the same connection', async () => {
    const ports = new Set<number | undefined>()
    const { url } = await serve((request, response) => {
      ports.add(request.socket.remotePort)
      request.resume()
      response.end('ok')
    })
    const transport = client()
    for (let i = 0; i < 5; i++) await textOf((await transport.send(post(url))).body)
    expect(ports.size).toBe(1)
  })

  test('requests at the same time use connections of their own', async () => {
    const { url } = await serve(async (request, response) => {
      response.end((await bodyOf(request)).toString())
    })
    const transport = client()
    const bodies = Array.from({ length: 20 }, (_, index) => `"${index}"`)
    const answers = bodies.map(async (body) => textOf((await transport.send(post(url, body))).body))
    expect(await Promise.all(answers)).toEqual(bodies)
  })

  test('all chunks of one network read come as one', async () => {
    const url = await serveBytes((socket) =>
      socket.on('data', () =>
        socket.write(
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' +
            `${'1\r\na\r\n'.repeat(50)}0\r\n\r\n`,
        ),
      ),
    )
    const { body } = await client().send(post(url))
    expect(Buffer.from((await body.read())!).toString()).toBe('a'.repeat(50))
    expect(await body.read()).toBeUndefined()
  })

  test('a form is written by the platform', async () => {
    const form = new FormData()
    form.append('name', 'värde')
    form.append('file', new Blob([new Uint8Array([0, 255, 10])]), 'a.bin')
    let echoed: FormData | undefined
    const { url } = await serve(async (request, response) => {
      const headers = { 'content-type': request.headers['content-type']! }
      echoed = await new Response(new Uint8Array(await bodyOf(request)), { headers }).formData()
      response.end()
    })
    const request = post(url, form)
    await textOf((await client().send({ ...request, headers: {} })).body)
    expect(echoed?.get('name')).toBe('värde')
    const file = echoed?.get('file') as File
    expect([...new Uint8Array(await file.arrayBuffer())]).toEqual([0, 255, 10])
  })

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('%s is unpacked, though not asked for', async (encoding, pack) => {
    const text = 'data: hello\n\n'.repeat(10_000)
    const { url } = await serve((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-encoding': encoding }).end(pack(text))
    })
    expect(await textOf((await client().send(post(url))).body)).toBe(text)
  })

  test('broken compression is an error, not a crash', async () => {
    const { url } = await serve((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('this is not gzip')
    })
    const { body } = await client().send(post(url))
    await expect(textOf(body)).rejects.toThrow(/incorrect header check/)
  })

  test('a slow reader pauses the socket', async () => {
    let sent = 0
    const { url } = await serve((request, response) => {
      request.resume()
      const block = Buffer.alloc(256 * 1024)
      const push = (): void => {
        while (sent < 200) {
          sent += 1
          if (!response.write(block)) return void response.once('drain', push)
        }
        response.end()
      }
      push()
    })
    const { body } = await client().send(post(url))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(sent).toBeLessThan(100)
    expect((await textOf(body)).length).toBe(200 * 256 * 1024)
  })
})

describe('a kept connection that the server closes', () => {
  test('while it is idle is replaced by a fresh one, unseen', async () => {
    let requests = 0
    const url = await serveBytes((socket, count) =>
      socket.on('data', () => {
        requests += 1
        socket.write(answer)
        if (count === 1) socket.end()
      }),
    )
    const transport = client()
    expect(await textOf((await transport.send(post(url))).body)).toBe('ok')
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(await textOf((await transport.send(post(url))).body)).toBe('ok')
    expect(requests).toBe(2)
  })

  test.each([
    ['with a reset', (socket: Socket) => socket.resetAndDestroy()],
    ['quietly, after a while', (socket: Socket) => void setTimeout(() => socket.end(), 50)],
  ])('after it has read a POST, %s: the POST is not sent again', async (_, close) => {
    let requests = 0
    const url = await serveBytes((socket) =>
      socket.on('data', () => {
        requests += 1
        if (requests > 1) close(socket)
        else socket.write(answer)
      }),
    )
    const transport = client()
    expect(await textOf((await transport.send(post(url))).body)).toBe('ok')
    await expect(transport.send(post(url))).rejects.toMatchObject({ code: 'ECONNRESET' })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(requests).toBe(2)
  })

  test('after it has read a GET is replaced once: a fresh one that breaks is an error', async () => {
    let requests = 0
    const url = await serveBytes((socket) =>
      socket.on('data', () => {
        requests += 1
        if (requests === 2 || requests > 3) socket.resetAndDestroy()
        else socket.write(answer)
      }),
    )
    const transport = client()
    const get = (): TransportRequest => ({ ...post(url), method: 'GET', body: undefined })
    await textOf((await transport.send(get())).body)
    expect(await textOf((await transport.send(get())).body)).toBe('ok')
    expect(requests).toBe(3)
    await expect(client().send(get())).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(requests).toBe(4)
  })

  test('is not replaced after the first byte of an answer', async () => {
    let requests = 0
    const url = await serveBytes((socket) =>
      socket.on('data', () => {
        requests += 1
        if (requests === 1) return void socket.write(answer)
        socket.write('HTTP/1.1 200')
        setTimeout(() => socket.destroy(), 5)
      }),
    )
    const transport = client()
    await textOf((await transport.send(post(url))).body)
    await expect(transport.send(post(url))).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(requests).toBe(2)
  })
})

describe('failure', () => {
  test('a body that breaks off rejects the read', async () => {
    const url = await serveBytes((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello')
        setTimeout(() => socket.destroy(), 10)
      }),
    )
    const { body } = await client().send(post(url))
    expect(Buffer.from((await body.read())!).toString()).toBe('hello')
    await expect(body.read()).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('nobody listens', async () => {
    await expect(client().send(post('http://127.0.0.1:1'))).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    })
  })

  test('an answer that is not HTTP', async () => {
    const url = await serveBytes((socket) => socket.end('220 mail.example ESMTP\r\n\r\n'))
    await expect(client().send(post(url))).rejects.toMatchObject({ code: 'HPE_INVALID' })
  })
})

describe('abort', () => {
  test('before the headers closes the socket and rejects with the reason', async () => {
    const controller = new AbortController()
    const closed = signalled<void>()
    const { url } = await serve((request) => {
      request.resume()
      request.socket.once('close', () => closed.resolve())
      controller.abort(new Error('enough'))
    })
    const sending = client().send(post(url, '{}', controller.signal))
    await expect(sending).rejects.toThrow('enough')
    // Against a timer of the same moment: a busy machine holds back both.
    const late = new Promise((resolve) => setTimeout(() => setImmediate(resolve, 'late'), 50))
    expect(await Promise.race([closed.promise, late])).not.toBe('late')
  })

  test('in the middle of the body does too', async () => {
    const controller = new AbortController()
    const closed = signalled<void>()
    const { url } = await serve((request, response) => {
      request.resume()
      response.write('hello')
      request.socket.once('close', () => closed.resolve())
    })
    const { body } = await client().send(post(url, '{}', controller.signal))
    await body.read()
    const reading = body.read()
    controller.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
    await closed.promise
  })

  test('cancel closes the socket; a finished body keeps it', async () => {
    const closed = signalled<void>()
    const { url, server } = await serve((request, response) => {
      request.resume()
      if (request.url === '/whole') return void response.end('ok')
      response.write('hello')
      request.socket.once('close', () => closed.resolve())
    })
    const transport = client()
    const whole = await transport.send(post(`${url}/whole`))
    await textOf(whole.body)
    whole.body.cancel()
    await new Promise((resolve) => setTimeout(resolve, 20))
    const count = await new Promise<number>((resolve) =>
      server.getConnections((_error, number) => resolve(number)),
    )
    expect(count).toBe(1)
    const { body } = await transport.send(post(url))
    await body.read()
    body.cancel()
    await closed.promise
    expect(await body.read()).toBeUndefined()
  })
})

test('a body in pieces arrives as one, and goes on a kept connection', async () => {
  const { url, server } = await serve(async (request, response) => {
    const length = Number(request.headers['content-length'])
    const body = await bodyOf(request)
    response.end(`${length === body.length} ${body.toString()}`)
  })
  let connections = 0
  server.on('connection', () => connections++)
  const transport = client()
  const history = new TextEncoder().encode('"wörd 🧵",'.repeat(10_000))
  for (const pieces of [['[ä,', history, '1]'], [history], ['a', '', 'b'], []]) {
    const body = { pieces, body: 'not read' }
    const response = await transport.send(post(url, body))
    const whole = pieces.map((piece) => Buffer.from(piece).toString()).join('')
    expect(await textOf(response.body)).toBe(`true ${whole}`)
  }
  expect(connections).toBe(1)
})
