import { isPlainObject, type JsonValue } from '@skein/base'
import type { Runtime } from '../runtime-api.ts'
import { accountOf, findThread, hasScope, type Principal } from '../operations/principal.ts'
import { findChat } from './chat/answer-chat.ts'
import type { Verify } from './auth/authenticate.ts'
import { checkSchema } from '../operations/shape.ts'
import type { Connection } from './create-http.ts'
import { HttpError, rateLimited, type RequestProblem } from '../operations/http-error.ts'
import type { Call, Route, RouteBody, ThreadCall } from '../operations/operation.ts'
import { SCHEMAS } from '../operations/schemas.ts'
import type { Services } from './services.ts'
import { TokenBuckets } from './guard.ts'
import type { TimerHandle, Timers } from '../dispatch/timers.ts'

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

interface BodyLimits {
  readonly maxBytes: number
  /** For the whole body. */
  readonly timeoutMs: number
  readonly timers: Timers
}

/** The body of a request, read no further than the limit and no longer than the time. */
async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const { maxBytes, timeoutMs, timers } = limits
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (!(declared <= maxBytes)) throw tooLarge(maxBytes)
  if (!request.body) return new Uint8Array()
  const reader = request.body.getReader()
  let timer: TimerHandle
  const isLate = new Promise<'late'>((resolve) => {
    timer = timers.set(timeoutMs, () => resolve('late'))
  })
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const step = await Promise.race([reader.read(), isLate])
      if (step === 'late') throw tooSlow()
      if (step.done) return joined(chunks, length)
      length += step.value.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      chunks.push(step.value)
    }
  } catch (error) {
    reader.cancel().catch(() => undefined) // the rest is of no interest, nor is why it did not come
    throw error instanceof HttpError ? error : brokenOff(error)
  } finally {
    timers.clear(timer)
  }
}

/** JSON from bytes, no deeper than the limit. */
function parseJson(bytes: Uint8Array, maxDepth: number): JsonValue {
  let value: JsonValue
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    value = JSON.parse(text) as JsonValue // JSON.parse gives JSON
  } catch (cause) {
    throw new HttpError('The body is not JSON in UTF-8.', { code: 'BODY_INVALID', cause })
  }
  if (isDeeperThan(value, maxDepth))
    throw new HttpError(`The body is nested deeper than ${maxDepth} levels.`, {
      code: 'BODY_INVALID',
    })
  return value
}

/** Level by level: what is too deep to walk is refused before anybody walks it. */
function isDeeperThan(value: JsonValue, maxDepth: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return true
    const next: unknown[] = []
    for (const item of level) {
      if (Array.isArray(item)) for (const child of item) addContainer(next, child)
      else if (isPlainObject(item)) for (const key in item) addContainer(next, item[key])
    }
    level = next
  }
  return false
}

function addContainer(list: unknown[], value: unknown): void {
  if (typeof value === 'object' && value !== null) list.push(value)
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

const closing = { connection: 'close' }

function tooLarge(maxBytes: number): HttpError {
  const message = `The body is larger than ${maxBytes} bytes.`
  return new HttpError(message, { code: 'BODY_TOO_LARGE', headers: closing })
}

function tooSlow(): HttpError {
  const message = 'The body did not arrive in time.'
  return new HttpError(message, { code: 'BODY_TIMEOUT', headers: closing })
}

function brokenOff(cause: unknown): HttpError {
  return new HttpError('The body broke off.', { code: 'BODY_INVALID', cause, headers: closing })
}
