import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import {
  CancelledError,
  createEndpointHandler,
  handlers,
  object,
  type ObjectContext,
  type ObjectSharedContext,
  rpc,
} from '@restatedev/restate-sdk'
import type { Dispatcher, RuntimeOptions } from '@skein/runtime'
import { type Engine, engineDispatcher, type EngineNode } from '@skein/runtime/engine'
import { RestateDispatcherError, restateHttp, type RestateHttp } from './restate-http.ts'

/** Options of `restateDispatcher`. */
export interface RestateDispatcherOptions {
  /** Where Restate takes requests, e.g. `http://restate:8080`. */
  readonly ingressUrl: string
  /**
   * The admin address of Restate, e.g. `http://restate:9070`. The node registers itself there at its
   * start, and uses it to end work on other nodes. Without it, register the node's address yourself.
   */
  readonly adminUrl?: string
  /**
   * The address at which Restate reaches this node, e.g. `http://worker:9080`. With several nodes, all give the same
   * address: that of a load balancer (HTTP/2) in front of them. Default: the address at which this node listens.
   */
  readonly address?: string
  /** The host and port on which this node listens for Restate. Default: a free port on 127.0.0.1. */
  readonly listen?: { readonly host?: string; readonly port?: number }
  /** The name of the service at Restate; installations that share a server need different names. */
  readonly serviceName?: string
  /**
   * Must be longer than any step of a thread, i.e. than any model's answer or tool. If a step takes twice
   * as long, Restate gives the run up, although the work on the thread continues. Default 65 minutes.
   */
  readonly longestStepMs?: number
  /** Public keys of the Restate server (`publickeyv1_…`); requests that are not signed with one are refused. */
  readonly identityKeys?: readonly string[]
  /** Sent with every request to Restate, e.g. the authorization of a proxy. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long the start waits for a Restate server that cannot be reached. Default 30 s. */
  readonly startMs?: number
  /** How often, on average, this node looks in the store for lost wake-ups. Default 1000 ms. */
  readonly sweepMs?: number
}

/**
 * Creates the dispatcher of a node whose threads are woken by Restate: one virtual object whose key is
 * the thread. Restate gives each wake-up to one of the nodes, keeps timers, and gives a run to another
 * node when its node dies. The lease in the store keeps two nodes from working on one thread.
 *
 *     const dispatcher = restateDispatcher({
 *       ingressUrl: 'http://restate:8080',
 *       adminUrl: 'http://restate:9070',
 *       listen: { host: '0.0.0.0', port: 9080 },
 *       address: 'http://workers:9080',
 *     })
 *     const runtime = await createRuntime({ agents, store, dispatcher })
 */
export function restateDispatcher(
  options: RestateDispatcherOptions,
): NonNullable<RuntimeOptions['dispatcher']> {
  return ({ store, timers, maxConcurrent, onError }): Dispatcher => {
    const engine = new RestateEngine(options, onError)
    return engineDispatcher({
      store,
      timers,
      maxConcurrent,
      onError,
      engine,
      sweepMs: options.sweepMs,
    })
  }
}

const DEFAULT_SERVICE = 'SkeinThread'
const LONGEST_STEP_MS = 65 * 60_000
const REQUEST_MS = 5_000
const START_MS = 30_000
/** How long Restate remembers the idempotency keys of requests. Must be longer than the time of two sweeps. */
const KEY_MS = 60_000

/**
 * How Restate repeats a run after its node has died or refused it. The intervals are short, as another
 * node can take over.
 */
const RETRY_POLICY = {
  initialInterval: 50,
  exponentiationFactor: 2,
  maxInterval: 1_000,
  // After so many attempts a run is killed, not paused, because a paused run would block its thread
  // until a person resumes it. The sweep of the store finds the thread again. If it kills its nodes, it
  // fails much earlier (`drainAttempts`).
  maxAttempts: 600,
  onMaxAttempts: 'kill',
} as const

class RestateEngine implements Engine {
  readonly #options: RestateDispatcherOptions
  readonly #onError: (error: unknown) => void
  readonly #http: RestateHttp
  readonly #service: string
  #server: Http2Server | undefined
  readonly #sessions = new Set<ServerHttp2Session>()
  #isStopped = false

  constructor(options: RestateDispatcherOptions, onError: (error: unknown) => void) {
    this.#options = options
    this.#onError = onError
    this.#http = restateHttp({ headers: options.headers, timeoutMs: REQUEST_MS })
    this.#service = options.serviceName ?? DEFAULT_SERVICE
  }

  async start(node: EngineNode): Promise<void> {
    const { listen: { host = '127.0.0.1', port = 0 } = {}, identityKeys = [] } = this.#options
    const handler = createEndpointHandler({
      services: [this.#definition(node)],
      identityKeys: identityKeys.length > 0 ? [...identityKeys] : undefined,
      // Logs nothing: Restate repeats failed attempts, and errors of the work itself go to the runtime.
      logger: () => {},
    })
    const server = createServer(handler)
    this.#server = server
    server.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, resolve)
    })
    const { port: actual } = server.address() as AddressInfo // a TCP server has no other address
    if (this.#options.adminUrl !== undefined)
      await this.#register(
        this.#options.adminUrl,
        this.#options.address ?? `http://${host}:${actual}`,
      )
  }

  async send(threadId: string, { delayMs = 0, key }: Parameters<Engine['send']>[1]): Promise<void> {
    const delay = delayMs > 0 ? `?delay=${Math.ceil(delayMs)}ms` : ''
    await this.#http.send({
      method: 'POST',
      url: `${this.#handler(threadId, 'drain')}/send${delay}`,
      headers: key === undefined ? {} : { 'idempotency-key': key },
    })
  }

  /**
   * Cancels the running invocation for the thread, which ends the work on the node where it runs. Without `adminUrl`,
   * the request goes to any one of the nodes; it is certainly the right one only if there is a single other node.
   */
  interrupt(threadId: string, reason: string): void {
    const { adminUrl } = this.#options
    const interrupting =
      adminUrl === undefined ? this.#tell(threadId, reason) : this.#cancel(threadId, adminUrl)
    interrupting.catch((error: unknown) => this.#onError(error))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const server = this.#server
    const closing = new Promise<void>((resolve) => {
      if (server) server.close(() => resolve())
      else resolve()
    })
    // New runs are refused from now on and go to another node; answers that are being sent may still end.
    for (const session of this.#sessions) session.close()
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy()
    }, 1000)
    await closing
    clearTimeout(timer)
    this.#http.close()
  }

  /** The definition of the virtual object at Restate. Restate records one small entry for each run. */
  #definition(node: EngineNode) {
    const { longestStepMs = LONGEST_STEP_MS } = this.#options
    const name = this.#service
    const drain = async (context: ObjectContext): Promise<void> => {
      let againMs: number
      try {
        againMs = await context.run(
          'drain',
          async () => (await node.run(context.key)).againMs ?? -1,
        )
      } catch (error) {
        // When Restate cancels an invocation, it does not stop the running code, so the work is interrupted here.
        if (error instanceof CancelledError) node.interrupt(context.key, 'stop')
        throw error
      }
      if (againMs < 0) return
      const send = rpc.sendOpts<void>({ delay: Math.ceil(againMs) })
      context.objectSendClient<typeof definition>({ name }, context.key).drain(send)
    }
    const interrupt = async (context: ObjectSharedContext, reason: string): Promise<boolean> =>
      node.interrupt(context.key, reason)
    const timeouts = { inactivityTimeout: longestStepMs, abortTimeout: longestStepMs }
    const retention = { journalRetention: 0, idempotencyRetention: KEY_MS }
    const definition = object({
      name,
      description: 'Wakes the threads of Skein. The key is the thread.',
      handlers: {
        drain: handlers.object.exclusive({ ...timeouts, ...retention }, drain),
        interrupt: handlers.object.shared({ ...retention }, interrupt),
      },
      options: { retryPolicy: RETRY_POLICY },
    })
    return definition
  }

  /** Registers the address, even if another node has registered it. If the server is not there yet, waits for it. */
  async #register(adminUrl: string, uri: string): Promise<void> {
    const end = performance.now() + (this.#options.startMs ?? START_MS)
    for (let wait = 100, isReported = false; ; wait = Math.min(wait * 2, 2000)) {
      try {
        await this.#http.send({
          method: 'POST',
          url: `${trimmed(adminUrl)}/deployments`,
          body: { uri, force: true },
        })
        return
      } catch (error) {
        const isUnreachable =
          error instanceof RestateDispatcherError && error.code === 'RESTATE_UNREACHABLE'
        if (this.#isStopped || performance.now() + wait > end) {
          await this.stop()
          throw isUnreachable ? error : refusedAddress(uri, error)
        }
        if (!isReported) this.#onError(error)
        isReported = true
        await new Promise((resolve) => setTimeout(resolve, wait))
      }
    }
  }

  async #tell(threadId: string, reason: string): Promise<void> {
    const url = this.#handler(threadId, 'interrupt')
    await this.#http.send({ method: 'POST', url, body: reason })
  }

  async #cancel(threadId: string, adminUrl: string): Promise<void> {
    const texts = [this.#service, threadId].map((text) => `'${text.replaceAll("'", "''")}'`)
    const query = `SELECT id FROM sys_invocation_status WHERE target_service_name = ${texts[0]} AND target_service_key = ${texts[1]} AND target_handler_name = 'drain' AND status = 'invoked'`
    const url = `${trimmed(adminUrl)}/query`
    const answer = await this.#http.send({ method: 'POST', url, body: { query } })
    const { rows = [] } = JSON.parse(answer) as {
      readonly rows?: readonly { readonly id: string }[]
    }
    for (const { id } of rows)
      await this.#http.send({
        method: 'PATCH',
        url: `${trimmed(adminUrl)}/invocations/${id}/cancel`,
        accepts: [404, 409], // it has ended meanwhile
      })
  }

  #handler(threadId: string, name: 'drain' | 'interrupt'): string {
    const { ingressUrl } = this.#options
    return `${trimmed(ingressUrl)}/${this.#service}/${encodeURIComponent(threadId)}/${name}`
  }
}

function trimmed(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url
}

function refusedAddress(uri: string, cause: unknown): RestateDispatcherError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RestateDispatcherError(`Restate did not register this node at ${uri}. ${why}`, {
    code: 'RESTATE_REFUSED',
    hint: 'Restate has to reach this node at `address`. Several nodes need one address: that of a load balancer for HTTP/2 in front of them.',
    cause,
  })
}
