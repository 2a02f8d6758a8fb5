import {
  loggedPath,
  credentialsOf,
  clientError,
  errorCodeOf,
  errorResponse,
} from './error-response.ts'
import { Hono } from 'hono'
import { systemClock, uuidV7 } from '@skein/base'
import { systemTimers, type Runtime, type RuntimeLogger } from '@skein/runtime'
import { admitRequest } from './admit.ts'
import { toVerify, type Verify } from '../auth/authenticate.ts'
import { HttpError, rateLimited } from '../operations/http-error.ts'
import { DEFAULT_LIMITS, type HttpOptions, type Services } from './services.ts'
import { Metrics } from './metrics.ts'
import { openApi } from './openapi.ts'
import { ROUTES } from './routes.ts'
import { COMPATIBLE, withVendorFields } from '../protocols/agents-as-models/vendor-fields.ts'
import { type Buckets } from '../limits/token-buckets.ts'
import { createBuckets } from '../limits/create-buckets.ts'
import { RequestGuard } from './guard.ts'
import type { OperationRoute, ThreadCall } from '../operations/operation.ts'
import { answerNode } from '../streams/event-stream.ts'
import { OpenStreams } from '../streams/open-streams.ts'
import { studioPage } from '../studio/studio-files.ts'
import { StudioSessions } from '../studio/studio-sessions.ts'
import { guardedLogger, loggedError, withTraceparent } from '@skein/runtime/serving'

/** Facts about the client's connection that a `Request` does not contain. */
export interface ClientConnection {
  /** The address of the client, used for rate limits. */
  readonly address?: string
  /** Closes the connection immediately. */
  readonly disconnect?: () => void
  /** Returns the number of bytes that were written to the connection and that its client has not taken yet. */
  readonly unsentBytes?: () => number
}

/** The HTTP interface of a runtime: a `fetch` handler that can be mounted in any server. */
export interface Http {
  fetch(request: Request, connection?: ClientConnection): Promise<Response>
  readonly routes: readonly OperationRoute[]
  openapi(): Record<string, unknown>
  /** Ends all streams; clients that need more reconnect. Requests are still answered. */
  endStreams(): void
}

/**
 * Puts a runtime on the network.
 *
 *     const http = createHttp(runtime, { auth: { keys: [{ key, tenant: 'acme', scopes: ['threads:read'] }] } })
 *     const response = await http.fetch(request)
 */
export function createHttp(runtime: Runtime, options: HttpOptions): Http {
  return new HttpSurface(runtime, options)
}

interface Env {
  Bindings: { readonly connection: ClientConnection }
}

class HttpSurface implements Http {
  readonly routes: readonly OperationRoute[]
  readonly #options: HttpOptions
  readonly #logger: RuntimeLogger | undefined
  readonly #guard: RequestGuard
  readonly #runtime: Runtime
  readonly #services: Services
  readonly #app = new Hono<Env>()
  readonly #perAddress: Buckets
  readonly #admit: ReturnType<typeof admitRequest>
  #isClosing = false
  /** The tenants of requests that are being answered, for the log. */
  readonly #tenants = new WeakMap<Request, string>()

  constructor(runtime: Runtime, options: HttpOptions) {
    const { prefix = '', clock = systemClock, timers = systemTimers(clock), local } = options
    const limits = { ...DEFAULT_LIMITS, ...options.limits }
    const streams = new OpenStreams(limits)
    this.#options = options
    this.#runtime = runtime
    // This listener is never removed, because a server lives as long as its runtime.
    runtime.stopping?.addEventListener('abort', () => this.endStreams(), { once: true })
    this.#logger = options.logger && guardedLogger(options.logger)
    const isOpen = (id: string): boolean => options.a2a?.isPublic === true && id.endsWith('Card')
    const routes = ROUTES.map((one) =>
      isOpen(one.id) ? { ...one, scope: 'public' as const } : one,
    )
    this.routes = [...routes, ...(options.routes ?? [])]
    this.#guard = new RequestGuard({ ...options, maxUrlLength: limits.maxUrlLength })
    const { requestsPerMinutePerAddress: perMinute } = limits
    this.#perAddress = createBuckets({ perMinute, clock }, 'address', runtime.node)
    const { auth, playground: isPlayground = false } = options
    const byKey = toVerify(auth, local)
    const sessions = new StudioSessions({ auth, verify: byKey, clock })
    const verify: Verify = (request) =>
      request.headers.has('cookie') ? sessions.verify(request) : byKey(request)
    this.#services = {
      clock,
      timers,
      limits,
      streams,
      prefix,
      holdsGoverned: options.chat?.hold ?? false,
      a2a: options.a2a ?? {},
      studio: { sessions, isPlayground, needsKey: auth !== 'none' },
      metrics: new Metrics(runtime, streams),
      openapi: () => this.openapi(),
      clientError,
      isClosing: () => this.#isClosing,
      report: (error) => this.#report(error, (options.ids ?? uuidV7)()),
    }
    const identify: Verify = async (request) => {
      const principal = await verify(request)
      if (principal) this.#tenants.set(request, principal.tenant)
      return principal
    }
    this.#admit = admitRequest(runtime, options.logger ? identify : verify, this.#services)
    this.#mount(prefix)
  }

  async fetch(request: Request, connection: ClientConnection = {}): Promise<Response> {
    const logger = this.#logger
    const startedAt = performance.now()
    const traceparent = request.headers.get('traceparent')
    const work = (): Promise<Response> => this.#guarded(request, connection)
    const answer = await (traceparent === null ? work() : withTraceparent(traceparent, work))
    const response = this.#guard.finish(request, answer)
    if (!logger) return response
    const requestId = requestIdOf(request) ?? (this.#options.ids ?? uuidV7)()
    if (!response.headers.has('x-request-id')) response.headers.set('x-request-id', requestId)
    const { status } = response
    const details = {
      requestId,
      method: request.method,
      path: loggedPath(request),
      status,
      ms: Math.round(performance.now() - startedAt),
      tenant: this.#tenants.get(request),
    }
    const { requestLogLevel = 'info' } = this.#options
    logger[status >= 500 ? 'error' : status >= 400 ? 'warn' : requestLogLevel](details, 'request')
    return response
  }

  openapi(): Record<string, unknown> {
    return openApi(this.routes, this.#services.prefix)
  }

  endStreams(): void {
    this.#isClosing = true
    this.#services.streams.endAll()
  }

  async #guarded(request: Request, connection: ClientConnection): Promise<Response> {
    try {
      // Requests of other nodes use addresses that clients do not know, so their hosts and origins are not checked.
      const { node } = this.#runtime
      if (node) {
        const answer = answerNode(request, { node, connection, services: this.#services })
        if (answer) return await answer
      }
      this.#guard.check(request)
      const address = this.#options.clientAddress?.(request) ?? connection.address
      const waitMs = address === undefined ? 0 : await this.#perAddress.take(address)
      if (waitMs > 0) throw rateLimited(waitMs)
      const early = this.#guard.preflight(request) ?? (await this.#options.before?.(request))
      const { studio } = this.#options
      const page = early || !studio ? early : studioPage(studio, request, this.#services.prefix)
      return page ?? (await this.#app.fetch(request, { connection: { ...connection, address } }))
    } catch (error) {
      return this.#refuse(error, request)
    }
  }

  #mount(prefix: string): void {
    const byPath = new Map<string, OperationRoute[]>()
    for (const route of this.routes) {
      const paths = [`${prefix}${route.path}`, ...(route.isAlsoAtRoot ? [route.path] : [])]
      for (const path of new Set(paths)) {
        // Hono writes `{name}` as `:name` and `{name*}` as `:name{.+}`.
        const pattern = path.replace(/\{(\w+)(\*?)\}/g, (_, name, rest) =>
          rest ? `:${name}{.+}` : `:${name}`,
        )
        byPath.set(pattern, [...(byPath.get(pattern) ?? []), route])
      }
    }
    for (const [path, routes] of byPath) {
      for (const route of routes)
        this.#app.on(route.method, path, (context) =>
          this.#answer(route, context.req.raw, context.req.param(), context.env.connection),
        )
    }
    // Registered after all routes, so that the `METHOD_NOT_ALLOWED` answer of one path does not hide another
    // route.
    for (const [path, routes] of byPath) {
      const allow = [...new Set(routes.map(({ method }) => method))].join(', ')
      const message = `This address does not accept this method. It accepts ${allow}.`
      const options = { code: 'METHOD_NOT_ALLOWED', headers: { allow } } as const
      this.#app.all(path, () => this.#refuse(new HttpError(message, options)))
    }
    this.#app.notFound(() =>
      this.#refuse(
        new HttpError('No operation has this address.', {
          code: 'ROUTE_NOT_FOUND',
          hint: 'GET /openapi.json lists all operations.',
        }),
      ),
    )
    this.#app.onError((error) => this.#refuse(error))
  }

  async #answer(
    route: OperationRoute,
    request: Request,
    params: Readonly<Record<string, string>>,
    connection: ClientConnection,
  ): Promise<Response> {
    const { clock, metrics } = this.#services
    const startedAt = clock.now()
    let response: Response
    try {
      const call = await this.#admit(route, request, params, connection)
      // If the route is about a thread, `admit` has already found that thread.
      response = await route.handle(call as ThreadCall)
    } catch (error) {
      response = this.#refuse(error, request)
    }
    if (route.tag === COMPATIBLE) response = await withVendorFields(response)
    // The router drops the body of a response to HEAD; cancelling it prevents a stream from staying open.
    if (request.method === 'HEAD') await response.body?.cancel()
    metrics.countRequest(route.id, response.status, (clock.now() - startedAt) / 1000)
    return response
  }

  #refuse(error: unknown, request?: Request): Response {
    const { ids = uuidV7 } = this.#options
    this.#services.metrics.countError(errorCodeOf(error))
    return errorResponse(error, {
      id: ids,
      report: (cause, id) => this.#report(cause, id, request),
    })
  }

  #report(error: unknown, errorId: string, request?: Request): void {
    const logger = this.#logger
    const { onError } = this.#options
    const err = logger && loggedError(error, request ? credentialsOf(request) : [])
    logger?.error({ errorId, err }, 'unexpected error')
    onError?.(error, errorId)
  }
}

/** Returns the request's own id if it is short and plain, so that it can be logged and sent back. */
function requestIdOf({ headers }: Request): string | undefined {
  const requestId = headers.get('x-request-id') ?? ''
  return /^[\w.:-]{1,64}$/.test(requestId) ? requestId : undefined
}
