import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { SkeinError } from '@skein/base'
import type { Runtime } from '../runtime-api.ts'
import { createHttp, type Http, type HttpOptions } from './create-http.ts'
import { isLoopback } from './guard.ts'
import { startWebhooks, type WebhooksOptions } from './webhooks/start-webhooks.ts'

export interface ServeOptions extends HttpOptions {
  /** 0 takes any that is free. */
  readonly port: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Lets everyone in from everywhere, where `auth` is `'none'` and `host` is not this machine. */
  readonly allowUnauthenticated?: boolean
  /** Receivers that are told of approvals and ended sessions, as `startWebhooks` takes them. */
  readonly webhooks?: WebhooksOptions
}

/** A server that listens. */
export interface Serving {
  readonly http: Http
  readonly url: string
  readonly port: number
  /** Takes no more, ends streams and lets requests finish; what is not done after `graceMs` is cut. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

const HEADERS_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 300_000
/** Longer than proxies keep theirs, so that none sends into a connection that is just being closed. */
const KEEP_ALIVE_MS = 75_000
const DEFAULT_GRACE_MS = 10_000

/** Serves a runtime. Signals of the process are the caller's to handle. */
export async function serve(runtime: Runtime, options: ServeOptions): Promise<Serving> {
  const { port, host = '127.0.0.1', auth, allowUnauthenticated = false } = options
  if (auth === 'none' && !isLoopback(host) && !allowUnauthenticated) throw notLoopback(host)
  const names = isLoopback(host) || isAnyAddress(host) ? [] : [host]
  const { allowedHosts = [] } = options
  const http = createHttp(runtime, {
    ...options,
    allowedHosts: allowedHosts === '*' ? '*' : [...allowedHosts, ...names],
  })
  const listener = getRequestListener(
    async (request, { incoming, outgoing }) => {
      const connection = connectionOf(incoming as IncomingMessage, outgoing as ServerResponse)
      return http.fetch(request, connection)
    },
    { overrideGlobalObjects: false, hostname: host },
  )
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (incoming, outgoing) => {
      // A connection that was kept for a further request would keep a closing server waiting.
      outgoing.once('close', () =>
        setImmediate(() => server.listening || server.closeIdleConnections()),
      )
      void listener(incoming, outgoing)
    },
  )
  await listen(server, port, host)
  const webhooks = options.webhooks && (await startWebhooks(runtime, options.webhooks))
  const { port: bound } = server.address() as AddressInfo // it listens on a port, not a pipe
  return {
    http,
    port: bound,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}${options.prefix ?? ''}`,
    async close({ graceMs = DEFAULT_GRACE_MS } = {}) {
      await webhooks?.stop()
      await close(server, http, graceMs)
    },
  }
}

function connectionOf(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): { readonly address: string; readonly disconnect: () => void } {
  return {
    address: incoming.socket.remoteAddress ?? '',
    disconnect: () => void outgoing.destroy(),
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(cannotListen(port, cause)))
    server.listen(port, host, resolve)
  })
}

function close(server: Server, http: Http, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    http.endStreams()
    server.closeIdleConnections()
  })
}

function isAnyAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function notLoopback(host: string): SkeinError {
  return new SkeinError(`Without keys the server does not listen on "${host}".`, {
    code: 'AUTH_REQUIRED',
    hint: 'Give `auth`, listen on 127.0.0.1, or set `allowUnauthenticated: true` if a proxy asks for keys.',
  })
}

function cannotListen(port: number, cause: NodeJS.ErrnoException): SkeinError {
  const isTaken = cause.code === 'EADDRINUSE'
  return new SkeinError(
    `The server cannot listen on port ${port}${isTaken ? ': it is taken' : ''}.`,
    {
      code: isTaken ? 'PORT_TAKEN' : 'PORT_UNUSABLE',
      hint: 'Choose another port, or 0 for any that is free.',
      cause,
    },
  )
}
