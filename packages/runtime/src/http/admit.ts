import type { JsonValue } from '@skein/base'
import type { Runtime } from '../runtime-api.ts'
import { findThread } from './access.ts'
import { findChat } from './chat/find-chat.ts'
import type { Verify } from './auth/authenticate.ts'
import { checkSchema } from './check-schema.ts'
import type { Connection } from './create-http.ts'
import { HttpError, rateLimited, type RequestProblem } from './http-error.ts'
import { accountOf, hasScope, type Principal } from './principal.ts'
import { parseJson, readBytes } from './read-body.ts'
import type { Call, Route, RouteBody, ThreadCall } from './route.ts'
import { SCHEMAS } from './schemas.ts'
import type { Services } from './services.ts'
import { TokenBuckets } from './token-buckets.ts'

type Params = Readonly<Record<string, string>>

/**
 * The way of a request to its handler: who is it, may they, which thread, is the query right, and
 * only then is the body read. Each step throws what is answered.
 */
export function admit(
  runtime: Runtime,
  verify: Verify,
  services: Services,
): (route: Route, request: Request, params: Params, connection: Connection) => Promise<Call> {
  const { clock, limits } = services
  const perClient = new TokenBuckets({ perMinute: limits.requestsPerMinute, clock })

  const identify = async (route: Route, request: Request): Promise<Principal> => {
    if (route.scope === 'public') return { tenant: '', scopes: [] }
    const principal = await verify(request)
    if (!principal) throw unauthenticated()
    if (principal.expiresAt !== undefined && principal.expiresAt <= clock.now())
      throw unauthenticated()
    const waitMs = perClient.take(accountOf(principal))
    if (waitMs > 0) throw rateLimited(waitMs)
    if (!hasScope(principal, route.scope)) throw scopeMissing(route)
    return principal
  }

  return async (route, request, params, { disconnect }) => {
    const principal = await identify(route, request)
    const thread =
      route.addresses === 'thread'
        ? await (route.isChat ? findChat : findThread)(runtime, principal, params['threadId'] ?? '')
        : undefined
    const query = parseQuery(route, request)
    const { body, bytes } = await parseBody(route.body, request, services)
    const call: Call = { request, runtime, principal, params, query, body, bytes, services }
    return { ...call, ...(thread && { thread }), ...(disconnect && { disconnect }) } as ThreadCall
  }
}

/** Numbers and booleans of a query are text; the schema says what is meant. */
function parseQuery({ query = {} }: Route, request: Request): Call['query'] {
  const given = new URL(request.url).searchParams
  const values: Record<string, string | number | boolean> = {}
  const problems: RequestProblem[] = []
  for (const [name, schema] of Object.entries(query)) {
    const text = given.get(name)
    if (text === null) continue
    const value = typed(text, schema['type'])
    problems.push(...checkSchema(value, schema, { field: `query.${name}`, named: SCHEMAS }))
    values[name] = value
  }
  refuseProblems(problems)
  return values
}

function typed(text: string, type: unknown): string | number | boolean {
  if (type === 'boolean' && /^(true|false|1|0)$/.test(text)) return text === 'true' || text === '1'
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text)
  return text
}

interface Parsed {
  readonly body: JsonValue
  readonly bytes: Uint8Array
}

async function parseBody(
  wanted: RouteBody | undefined,
  request: Request,
  { limits, timers }: Services,
): Promise<Parsed> {
  const nothing = { body: {}, bytes: new Uint8Array() }
  if (!wanted) return nothing
  const read = (maxBytes: number): Promise<Uint8Array> =>
    readBytes(request, { maxBytes, timeoutMs: limits.bodyTimeoutMs, timers })
  if ('bytes' in wanted) {
    const { maxFileBytes, maxImportBytes, maxBodyBytes } = limits
    const maxBytes = { file: maxFileBytes, lines: maxImportBytes, any: maxBodyBytes }[wanted.bytes]
    return { ...nothing, bytes: await read(maxBytes) }
  }
  const isJson = /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(
    request.headers.get('content-type') ?? '',
  )
  const hasBody = request.body !== null && request.headers.get('content-length') !== '0'
  if (!isJson && (hasBody || !wanted.isOptional)) throw notJson()
  const bytes = await read(wanted.isLarge ? limits.maxFileBytes : limits.maxBodyBytes)
  if (bytes.length === 0 && wanted.isOptional) return nothing
  const body = parseJson(bytes, limits.maxJsonDepth)
  refuseProblems(checkSchema(body, wanted.json, { field: 'body', named: SCHEMAS }))
  return { ...nothing, body }
}

function refuseProblems(problems: readonly RequestProblem[]): void {
  const [first] = problems
  if (!first) return
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : ''
  throw new HttpError(`${first.field} ${first.message}${more}.`, {
    code: 'INPUT_INVALID',
    problems,
  })
}

function unauthenticated(): HttpError {
  return new HttpError('The key is missing, unknown or expired.', {
    code: 'UNAUTHENTICATED',
    hint: 'Send it as `authorization: Bearer <key>`.',
    headers: { 'www-authenticate': 'Bearer' },
  })
}

function scopeMissing({ scope }: Route): HttpError {
  return new HttpError(`This needs the scope ${scope}.`, { code: 'SCOPE_MISSING' })
}

function notJson(): HttpError {
  return new HttpError('The body must be JSON.', {
    code: 'MEDIA_TYPE_UNSUPPORTED',
    hint: 'Send `content-type: application/json`.',
  })
}
