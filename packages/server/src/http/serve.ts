import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { SkeinError } from '@skein/base'
import type { Runtime } from '@skein/runtime'
import { createHttp, type Http } from './create-http.ts'
import { isLoopback } from './guard.ts'
import { startWebhooks, type WebhooksOptions } from '../webhooks/start-webhooks.ts'
import type { HttpOptions } from './services.ts'

/** The address on which the server listens, and who may call it. */
export interface ServeOptions extends HttpOptions {
  /** The port; 0 selects any free port. */
  readonly port: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Allows `auth: 'none'` on a `host` that other machines can reach, so that everyone may call. */
  readonly allowUnauthenticated?: boolean
  /** Receivers of webhooks about approvals and ended sessions, as for `startWebhooks`. */
  readonly webhooks?: WebhooksOptions
}

/** A running server. */
export interface Serving {
  readonly http: Http
  readonly url: string
  readonly port: number
  /**
   * Accepts no more requests, ends streams and lets running requests finish; closes remaining connections
   * after `graceMs`.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

const HEADERS_TIMEOUT_MS = 15_000
const REQUEST_TIMEOUT_MS = 300_000
/**
 * Longer than proxies keep idle connections, so that no proxy sends a request on a connection that is being
 * closed.
 */
const KEEP_ALIVE_MS = 75_000
const DEFAULT_GRACE_MS = 10_000

/** Serves a runtime over HTTP. The caller handles process signals. */
export async function serve(runtime: Runtime, options: ServeOptions): Promise<Serving> {
  const { port, host = '127.0.0.1', auth, allowUnauthenticated = false } = options
  if (auth === 'none' && !isLoopback(host) && !allowUnauthenticated)
    throw new SkeinError(`A server without authentication does not listen on "${host}".`, {
      code: 'AUTH_REQUIRED',
      hint: 'Give `auth`, listen on 127.0.0.1, or set `allowUnauthenticated: true` if a proxy authenticates.',
    })
  const isAnyAddress = host === '0.0.0.0' || host === '::'
  const names = isLoopback(host) || isAnyAddress ? [] : [host]
  const { allowedHosts = [] } = options
  const http = createHttp(runtime, {
    ...options,
    allowedHosts: allowedHosts === '*' ? '*' : [...allowedHosts, ...names],
  })
  const listener = getRequestListener(
    async (request, { incoming, outgoing }) => {
      const { socket } = incoming as IncomingMessage // this server does not use HTTP/2
      return http.fetch(request, {
        address: socket.remoteAddress ?? '',
        disconnect: () => void (outgoing as ServerResponse).destroy(),
        unsentBytes: () => socket.writableLength,
      })
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
      // An idle keep-alive connection would delay closing the server.
      outgoing.once('close', () =>
        setImmediate(() => server.listening || server.closeIdleConnections()),
      )
      void listener(incoming, outgoing)
    },
  )
  await listen(server, port, host)
  const webhooks = options.webhooks && (await startWebhooks(runtime, options.webhooks))
  const { port: bound } = server.address() as AddressInfo // the server listens on a port, not on a pipe
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

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const isTaken = cause.code === 'EADDRINUSE'
      const why = isTaken ? ': another process uses it' : ''
      const error = new SkeinError(`The server cannot listen on port ${port}${why}.`, {
        code: isTaken ? 'PORT_TAKEN' : 'PORT_UNUSABLE',
        hint: 'Choose another port, or 0 for any that is free.',
        cause,
      })
      reject(error)
    })
    server.listen(port, host, resolve)
  })
}

function close(server: Server, http: Http, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(timer)
      resolve()
    })
    http.endStreams()
    server.closeIdleConnections()
  })
}
