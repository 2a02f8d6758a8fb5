import type * as Net from 'node:net'
import type * as Tls from 'node:tls'
import type * as Zlib from 'node:zlib'
import { Connection, type ConnectionOwner, StaleConnectionError } from './http-node-connection.ts'
import type { ByteSource, Transport, TransportRequest, TransportResponse } from './transport.ts'

interface NodeProcess {
  readonly versions?: Readonly<Record<string, string | undefined>>
  getBuiltinModule?(name: 'node:net'): typeof Net
  getBuiltinModule?(name: 'node:tls'): typeof Tls
  getBuiltinModule?(name: 'node:zlib'): typeof Zlib
}

interface NodeModules {
  readonly net: typeof Net
  readonly tls: typeof Tls
  readonly zlib: () => typeof Zlib
}

/**
 * Makes a transport that uses HTTP/1.1 over kept-alive sockets, which is much faster than Node's `fetch`.
 * Returns undefined on platforms other than Node, including those that imitate Node.
 */
export function nodeTransport(): Transport | undefined {
  const { process } = globalThis as { process?: NodeProcess }
  const versions = process?.versions
  // Bun and Deno imitate Node's sockets, but their own `fetch` is faster.
  if (!versions?.['node'] || versions['bun'] || versions['deno']) return undefined
  const net = process?.getBuiltinModule?.('node:net')
  const tls = process?.getBuiltinModule?.('node:tls')
  if (!net || !tls) return undefined // Node before 22.3 has no `getBuiltinModule`
  return new NodeTransport({ net, tls, zlib: () => process!.getBuiltinModule!('node:zlib') })
}

class NodeTransport implements Transport {
  readonly #modules: NodeModules
  readonly #pools = new Map<string, Pool>()

  constructor(modules: NodeModules) {
    this.#modules = modules
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const { signal } = request
    const ready = await toReady(request)
    signal.throwIfAborted()
    const url = new URL(request.url)
    const pool = this.#pool(url)
    const head = requestHead(url, ready)
    const response = await pool
      .take()
      .send(head, ready.body, signal)
      .catch((error: unknown) => {
        if (!(error instanceof StaleConnectionError)) throw error
        // The request was not answered and most likely never read, so it is sent again. A new
        // connection cannot be stale, so this happens at most once.
        return pool.connect().send(head, ready.body, signal)
      })
    return unpack(response, this.#modules.zlib)
  }

  #pool(url: URL): Pool {
    const known = this.#pools.get(url.origin)
    if (known) return known
    const pool = new Pool(url, this.#modules)
    this.#pools.set(url.origin, pool)
    return pool
  }
}

/** Idle connections are closed after this time; many servers close theirs after a minute. */
const IDLE_MS = 30_000
const MAX_IDLE = 256

/** The connections to one origin. Idle connections do not keep the process alive. */
class Pool implements ConnectionOwner {
  readonly #url: URL
  readonly #modules: NodeModules
  /** The idle connections, oldest first. The newest is reused first, so that surplus connections expire. */
  readonly #idle: Connection[] = []
  #session: Buffer | undefined
  #sweeping = false

  constructor(url: URL, modules: NodeModules) {
    this.#url = url
    this.#modules = modules
  }

  take(): Connection {
    const now = performance.now()
    for (;;) {
      const connection = this.#idle.pop()
      if (!connection) return this.connect()
      if (connection.expiresAt > now) return connection
      connection.destroy()
    }
  }

  connect(): Connection {
    const socket = this.#open()
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 60_000)
    return new Connection(socket, this, { isSecure: this.#url.protocol === 'https:' })
  }

  onFree(connection: Connection, idleMs = IDLE_MS): void {
    if (this.#idle.length >= MAX_IDLE) return connection.destroy()
    connection.expiresAt = performance.now() + Math.min(idleMs, IDLE_MS)
    this.#idle.push(connection)
    this.#sweepLater()
  }

  onClosed(connection: Connection): void {
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
  }

  #open(): Net.Socket {
    const { protocol, hostname, port } = this.#url
    const host = hostname.replace(/^\[|\]$/g, '')
    if (protocol === 'http:') return this.#modules.net.connect(Number(port) || 80, host)
    const isAddress = this.#modules.net.isIP(host) !== 0
    const socket = this.#modules.tls.connect({
      host,
      port: Number(port) || 443,
      ALPNProtocols: ['http/1.1'],
      servername: isAddress ? undefined : host,
      session: this.#session,
    })
    socket.on('session', (session) => (this.#session = session))
    socket.once('error', () => (this.#session = undefined))
    return socket
  }

  #sweepLater(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    setTimeout(() => {
      this.#sweeping = false
      const now = performance.now()
      for (const connection of this.#idle) {
        if (connection.expiresAt <= now) connection.destroy()
      }
      if (this.#idle.length > 0) this.#sweepLater()
    }, IDLE_MS).unref()
  }
}

type ReadyRequest = Omit<TransportRequest, 'body'> & { readonly body?: string | Uint8Array }

/** Converts a form to bytes with the platform's encoder, which chooses the boundary. */
async function toReady(request: TransportRequest): Promise<ReadyRequest> {
  const { body, ...rest } = request
  if (body === undefined) return rest
  if (typeof body === 'string' || body instanceof Uint8Array) return { ...rest, body }
  const encoded = new Response(body)
  return {
    ...rest,
    headers: { 'content-type': encoded.headers.get('content-type')!, ...request.headers },
    body: new Uint8Array(await encoded.arrayBuffer()),
  }
}

/**
 * Headers that this client writes itself; a second value from the caller could contradict the client's
 * value.
 */
const ownHeaders = new Set(['content-length', 'transfer-encoding', 'connection', 'host'])

function requestHead(url: URL, { method, headers, body }: ReadyRequest): string {
  let head =
    `${method} ${url.pathname}${url.search} HTTP/1.1\r\n` +
    `host: ${headers['host'] ?? url.host}\r\nconnection: keep-alive\r\n`
  // No compression is requested, because it delays the tokens of a stream.
  if (headers['accept-encoding'] === undefined) head += 'accept-encoding: identity\r\n'
  if (headers['user-agent'] === undefined) head += 'user-agent: skein\r\n'
  for (const name in headers) if (!ownHeaders.has(name)) head += `${name}: ${headers[name]}\r\n`
  const length = typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0)
  return `${head}content-length: ${length}\r\n\r\n`
}

/** Decompresses the body if the server compressed it although this was not requested. */
export function unpack(response: TransportResponse, zlib: () => typeof Zlib): TransportResponse {
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  const create = unpackers.get(encoding)
  return create
    ? { ...response, body: new UnpackedSource(response.body, create(zlib())) }
    : response
}

type Unpacker = Zlib.Gunzip | Zlib.Inflate | Zlib.BrotliDecompress

const unpackers = new Map<string, (zlib: typeof Zlib) => Unpacker>([
  ['gzip', (zlib) => zlib.createGunzip()],
  ['x-gzip', (zlib) => zlib.createGunzip()],
  ['deflate', (zlib) => zlib.createInflate()],
  ['br', (zlib) => zlib.createBrotliDecompress()],
])

/** Decompresses a body, reading it only as fast as the caller reads the result. */
class UnpackedSource implements ByteSource {
  readonly #packed: ByteSource
  readonly #unpacker: Unpacker
  #chunks: AsyncIterator<Uint8Array> | undefined

  constructor(packed: ByteSource, unpacker: Unpacker) {
    this.#packed = packed
    this.#unpacker = unpacker
    unpacker.on('error', () => {}) // the iterator in `read` reports the error
  }

  async read(): Promise<Uint8Array | undefined> {
    if (!this.#chunks) {
      this.#chunks = this.#unpacker[Symbol.asyncIterator]()
      void this.#feed()
    }
    const { done, value } = await this.#chunks.next()
    return done ? undefined : value
  }

  cancel(): void {
    this.#packed.cancel()
    this.#unpacker.destroy()
  }

  /**
   * Writes the packed body to the unpacker. Never rejects: an error destroys the unpacker, so that
   * `read` rejects.
   */
  async #feed(): Promise<void> {
    try {
      for (;;) {
        const chunk = await this.#packed.read()
        if (!chunk) break
        if (!this.#unpacker.write(chunk)) await this.#drained()
      }
      this.#unpacker.end()
    } catch (error) {
      this.#unpacker.destroy(error as Error) // bodies only reject with an Error
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#unpacker.once('drain', resolve).once('close', resolve)
    })
  }
}
