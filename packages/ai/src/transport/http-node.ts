import type * as Net from 'node:net'
import type * as Tls from 'node:tls'
import type * as Zlib from 'node:zlib'
import {
  Connection,
  type ConnectionOwner,
  type SentBody,
  StaleConnectionError,
} from './http-node-connection.ts'
import { bareHost, openTunnel, type Proxy, proxyFor } from './http-node-proxy.ts'
import {
  type ByteSource,
  isInPieces,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts'

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

let shared: Transport | undefined | null = null

/**
 * Returns the transport that uses HTTP/1.1 over kept-alive sockets, which is much faster than Node's `fetch`.
 * Returns undefined on platforms other than Node, including those that imitate Node, and where the application
 * has changed how `fetch` works.
 */
export function sharedTransport(): Transport | undefined {
  if (dispatchers.some(isCustomDispatcher)) return undefined
  return (shared ??= nodeTransport())
}

/** Makes a transport with connections of its own. */
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

/**
 * The symbols under which undici stores the dispatcher set with `setGlobalDispatcher`, for Node's own
 * copy of undici and for the package from npm.
 */
const dispatchers = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`))

interface DispatcherLike {
  readonly constructor: { readonly name: string; readonly prototype: { dispatch?: unknown } }
  readonly dispatch?: unknown
}

/**
 * Checks whether the application has set its own global dispatcher. The dispatcher that Node creates for
 * its first `fetch` is an `Agent` without options. A dispatcher of any other class (a proxy, a mock), or
 * with options, a connector, a factory or interceptors, was set on purpose.
 */
function isCustomDispatcher(symbol: symbol): boolean {
  const dispatcher = (globalThis as Record<symbol, unknown>)[symbol] as DispatcherLike | undefined
  if (!dispatcher) return false
  if (dispatcher.constructor.name !== 'Agent') return true
  if (dispatcher.dispatch !== dispatcher.constructor.prototype.dispatch) return true
  let isPlain = plainAgents.get(dispatcher)
  if (isPlain === undefined) plainAgents.set(dispatcher, (isPlain = isPlainAgent(dispatcher)))
  return !isPlain
}

/** For each agent that was checked: whether it has no options, which only the constructor sets. */
const plainAgents = new WeakMap<DispatcherLike, boolean>()

function isPlainAgent(dispatcher: DispatcherLike): boolean {
  const own = new Map(
    Object.getOwnPropertySymbols(dispatcher).map((key) => [
      key.description,
      (dispatcher as unknown as Record<symbol, unknown>)[key],
    ]),
  )
  const { connect, ...options } = (own.get('options') ?? {}) as Record<string, unknown>
  const factory = own.get('factory') as { name?: string } | undefined
  const hasOptions = Object.keys(options).some((name) => name !== 'maxOrigins')
  return connect === undefined && !hasOptions && factory?.name === 'defaultFactory'
}

/** How requests to one address travel. */
interface Route {
  readonly url: URL
  /** What the first line of a request names: the path with its query, for a proxy after the origin. */
  readonly target: string
  readonly host: string
  /** The credentials for a proxy that reads the request. */
  readonly authorization: string | undefined
  readonly pool: Pool
  /** The time on the `performance.now()` clock until which the environment is not read again. */
  readonly until: number
}

/** Reading the proxies from the environment costs as much as sending a request, so it is done once in this time. */
const ROUTE_MS = 1000
const MAX_ROUTES = 100

class NodeTransport implements Transport {
  readonly #modules: NodeModules
  readonly #pools = new Map<string, Pool>()
  readonly #routes = new Map<string, Route>()

  constructor(modules: NodeModules) {
    this.#modules = modules
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const { signal } = request
    const ready = request.body instanceof FormData ? await encodeForm(request) : toReady(request)
    signal.throwIfAborted()
    const route = this.#route(request.url)
    const { pool } = route
    const head = requestHead(route, ready)
    const connection = pool.take() ?? (await pool.connect(request))
    let response: TransportResponse
    try {
      response = await connection.send(head, ready.body, signal)
    } catch (error) {
      // A server may close a kept connection at the moment of its reuse. The request is sent again only if the server
      // cannot have acted on it: nothing was written, or it is a GET, which changes nothing. In all other cases the
      // retry strategy decides. A new connection is never stale, so this happens at most once.
      if (!(error instanceof StaleConnectionError)) throw error
      if (error.isWritten && request.method !== 'GET') throw error.toReset()
      response = await (await pool.connect(request)).send(head, ready.body, signal)
    }
    return unpack(response, this.#modules.zlib)
  }

  #route(address: string): Route {
    const now = performance.now()
    const cachedRoute = this.#routes.get(address)
    if (cachedRoute && cachedRoute.until > now) return cachedRoute
    const url = cachedRoute?.url ?? new URL(address)
    const proxy = proxyFor(url)
    const pool = this.#pool(url, proxy)
    // For an http address, the proxy gets the whole address and its own credentials (RFC 9112 §3.2.2). For
    // https, the request travels inside a tunnel and the proxy cannot read it.
    const reader = url.protocol === 'http:' ? proxy : undefined
    const route: Route = {
      url,
      target: `${reader ? url.origin : ''}${url.pathname}${url.search}`,
      host: url.host,
      authorization: reader?.authorization,
      pool,
      until: now + ROUTE_MS,
    }
    if (this.#routes.size >= MAX_ROUTES) this.#routes.clear()
    this.#routes.set(address, route)
    return route
  }

  #pool(url: URL, proxy: Proxy | undefined): Pool {
    const key = `${url.origin} ${proxy?.url.origin} ${proxy?.authorization}`
    const openPool = this.#pools.get(key)
    if (openPool) return openPool
    const pool = new Pool(url, proxy, this.#modules)
    this.#pools.set(key, pool)
    return pool
  }
}

/** Idle connections are closed after this time; many servers close theirs after a minute. */
const IDLE_MS = 30_000
const MAX_IDLE = 256
/** The limit for making a connection, unless the request has its own. */
const CONNECT_MS = 10_000

function connectTimeout(ms: number): Error {
  return Object.assign(new Error(`The connection was not made within ${ms} ms`), {
    code: 'ETIMEDOUT',
  })
}

/** The connections to one origin, through one proxy if any. Idle ones do not keep the process alive. */
class Pool implements ConnectionOwner {
  readonly #url: URL
  readonly #proxy: Proxy | undefined
  readonly #modules: NodeModules
  /** The idle connections, oldest first. The newest is reused first, so that surplus connections expire. */
  readonly #idle: Connection[] = []
  #session: Buffer | undefined
  #sweeping = false

  constructor(url: URL, proxy: Proxy | undefined, modules: NodeModules) {
    this.#url = url
    this.#proxy = proxy
    this.#modules = modules
  }

  /** Returns an idle connection; undefined if there is none. */
  take(): Connection | undefined {
    const now = performance.now()
    for (;;) {
      const connection = this.#idle.pop()
      if (!connection || connection.expiresAt > now) return connection
      connection.destroy()
    }
  }

  /**
   * Opens a connection. Its requests wait until the host is connected and, with TLS, verified; a tunnel
   * through a proxy is waited for here. `connectMs` limits all of it.
   */
  async connect({ signal, connectMs = CONNECT_MS }: TransportRequest): Promise<Connection> {
    const proxy = this.#proxy
    const { protocol } = this.#url
    const isSecure = protocol === 'https:'
    const first = proxy ? this.#open(proxy.url) : this.#open(this.#url, this.#session)
    const sockets = [first]
    const abort = (): void => void sockets.at(-1)!.destroy(signal.reason as Error)
    const timer = setTimeout(() => sockets.at(-1)!.destroy(connectTimeout(connectMs)), connectMs)
    signal.addEventListener('abort', abort, { once: true })
    try {
      if (proxy && isSecure) {
        await openTunnel(first, this.#url, proxy)
        sockets.push(this.#secure(this.#url, { socket: first, session: this.#session }))
      }
    } catch (error) {
      clearTimeout(timer)
      throw signal.aborted ? signal.reason : error
    } finally {
      signal.removeEventListener('abort', abort)
    }
    const socket = sockets.at(-1)!
    const settle = (): void => clearTimeout(timer)
    socket.once(isSecure ? 'secureConnect' : 'connect', settle).once('close', settle)
    if (isSecure) {
      socket.on('session', (session: Buffer) => (this.#session = session))
      socket.once('error', () => (this.#session = undefined))
    }
    return new Connection(socket, this, { isSecure })
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

  #open(url: URL, session?: Buffer): Net.Socket {
    const host = bareHost(url.hostname)
    const port = Number(url.port)
    const socket =
      url.protocol === 'http:'
        ? this.#modules.net.connect(port || 80, host)
        : this.#secure(url, { host, port: port || 443, session })
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 60_000)
    return socket
  }

  /** Starts TLS with the host of an address, over a new connection or an existing one. */
  #secure(url: URL, over: Tls.ConnectionOptions): Tls.TLSSocket {
    const host = bareHost(url.hostname)
    const servername = this.#modules.net.isIP(host) === 0 ? host : undefined
    return this.#modules.tls.connect({ ALPNProtocols: ['http/1.1'], servername, host, ...over })
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

type ReadyRequest = Omit<TransportRequest, 'body'> & { readonly body?: SentBody }

function toReady({ body, ...rest }: TransportRequest): ReadyRequest {
  if (body === undefined) return rest
  // A form is not passed to this function: `send` encodes it with `encodeForm`.
  return { ...rest, body: isInPieces(body) ? body.pieces : (body as string | Uint8Array) }
}

/** Converts a form to bytes with the platform's encoder, which chooses the boundary. */
async function encodeForm({ body, headers, ...rest }: TransportRequest): Promise<ReadyRequest> {
  const response = new Response(body as FormData)
  return {
    ...rest,
    headers: { 'content-type': response.headers.get('content-type')!, ...headers },
    body: new Uint8Array(await response.arrayBuffer()),
  }
}

/**
 * Headers that this client writes itself; a second value from the caller could contradict the client's
 * value.
 */
const ownHeaders = new Set(['content-length', 'transfer-encoding', 'connection', 'host'])

function requestHead(
  { target, host, authorization }: Route,
  { method, headers, body }: ReadyRequest,
): string {
  let head =
    `${method} ${target} HTTP/1.1\r\n` +
    `host: ${headers['host'] ?? host}\r\nconnection: keep-alive\r\n`
  if (authorization !== undefined) head += `proxy-authorization: ${authorization}\r\n`
  // No compression is requested, because it delays the tokens of a stream.
  if (headers['accept-encoding'] === undefined) head += 'accept-encoding: identity\r\n'
  if (headers['user-agent'] === undefined) head += 'user-agent: skein\r\n'
  for (const name in headers) if (!ownHeaders.has(name)) head += `${name}: ${headers[name]}\r\n`
  return `${head}content-length: ${lengthOf(body)}\r\n\r\n`
}

function lengthOf(body: SentBody | undefined): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (body === undefined || body instanceof Uint8Array) return body?.length ?? 0
  return body.reduce((sum, piece) => sum + lengthOf(piece), 0)
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
