import { isPlainObject, type JsonValue } from '@skein/base'
import type { TimerHandle } from '@skein/runtime/serving'
import type { Timers, Runtime } from '@skein/runtime'
import { HttpError, rateLimited } from '../operations/http-error.ts'
import type { Call, OperationRoute, RouteBody, ThreadCall } from '../operations/operation.ts'
import {
  accountOf,
  findChat,
  findThread,
  hasScope,
  type Principal,
} from '../operations/principal.ts'
import { SCHEMAS } from '../operations/schemas.ts'
import { checkSchema, type SchemaProblem } from '@skein/base/shape'
import type { Verify } from '../auth/authenticate.ts'
import type { ClientConnection } from './create-http.ts'
import { createBuckets } from '../limits/create-buckets.ts'
import type { Services } from './services.ts'

type Params = Readonly<Record<string, string>>

/**
 * Checks a request and prepares the call of its operation, in an order that reveals nothing to strangers:
 * first the client, then its scopes, then the thread, then the query; the body is read last. Each step throws
 * the error that is sent as the response.
 */
export function admitRequest(
  runtime: Runtime,
  verify: Verify,
  services: Services,
): (
  route: OperationRoute,
  request: Request,
  params: Params,
  connection: ClientConnection,
) => Promise<Call> {
  const { clock, limits } = services
  const { requestsPerMinute: perMinute } = limits
  const perClient = createBuckets({ perMinute, clock }, 'client', runtime.node)

  const identify = async (route: OperationRoute, request: Request): Promise<Principal> => {
    if (route.scope === 'public') return { tenant: '', scopes: [] }
    const principal = await verify(request)
    if (!principal || (principal.expiresAt ?? Infinity) <= clock.now())
      throw new HttpError('The key is missing, unknown or expired.', {
        code: 'UNAUTHENTICATED',
        hint: 'Send a key as `authorization: Bearer <key>`.',
        headers: { 'www-authenticate': 'Bearer' },
      })
    const waitMs = await perClient.take(accountOf(principal))
    if (waitMs > 0) throw rateLimited(waitMs)
    if (!hasScope(principal, route.scope))
      throw new HttpError(`This operation needs the scope ${route.scope}.`, {
        code: 'SCOPE_MISSING',
        hint: 'Use a key with this scope.',
      })
    return principal
  }

  return async (route, request, params, connection) => {
    const principal = await identify(route, request)
    const find = route.addresses === 'thread' && route.isChat ? findChat : findThread
    const thread =
      route.addresses === 'thread'
        ? await find(runtime, principal, params['threadId'] ?? '')
        : undefined
    const query = parseQuery(route, request)
    const { body, bytes } = await parseBody(route.body, request, services)
    const call = { request, runtime, principal, params, query, body, bytes, services, connection }
    return { ...call, thread } as ThreadCall // `thread` is undefined only for routes that do not address a thread
  }
}

/**
 * Converts the query parameters, which are text in an address, to the types that their schemas name. Unknown
 * parameters are refused, because a misspelt filter would otherwise be ignored without notice.
 */
function parseQuery({ query }: OperationRoute, request: Request): Call['query'] {
  const values: Record<string, string | number | boolean> = {}
  if (!query) return values
  const problems: SchemaProblem[] = []
  const unknown = new Set<string>()
  for (const [name, text] of new URL(request.url).searchParams) {
    const schema = Object.hasOwn(query, name) ? query[name] : undefined
    if (!schema) unknown.add(name)
    else if (!Object.hasOwn(values, name)) {
      let value: string | number | boolean = text
      if (schema['type'] === 'boolean' && /^(true|false|1|0)$/.test(text))
        value = text === 'true' || text === '1'
      if (schema['type'] === 'integer' && /^-?\d{1,16}$/.test(text)) value = Number(text)
      problems.push(...checkSchema(value, schema, { field: `query.${name}`, named: SCHEMAS }))
      values[name] = value
    }
  }
  if (unknown.size > 0) throw unknownParameters([...unknown], Object.keys(query), problems)
  refuseProblems(problems)
  return values
}

const MAX_NAMED = 10

function unknownParameters(
  unknown: readonly string[],
  known: readonly string[],
  others: readonly SchemaProblem[],
): HttpError {
  const examples = unknown.slice(0, MAX_NAMED).map((name) => name.slice(0, 100))
  const names = examples.map((name) => JSON.stringify(name)).join(', ')
  const more =
    unknown.length > examples.length ? `, and ${unknown.length - examples.length} more` : ''
  return new HttpError(`This operation has no query parameter ${names}${more}.`, {
    code: 'INPUT_INVALID',
    hint: known.length > 0 ? `It has ${known.join(', ')}.` : 'It has no query parameters at all.',
    problems: [
      ...examples.map((name) => ({ field: `query.${name}`, message: 'is not a known parameter' })),
      ...others,
    ],
  })
}

/** A body that has been read: JSON or bytes. */
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
  if (!isJson && (hasBody || !wanted.isOptional))
    throw new HttpError('The body must be JSON.', {
      code: 'MEDIA_TYPE_UNSUPPORTED',
      hint: 'Send `content-type: application/json`.',
    })
  const bytes = await read(wanted.isLarge ? limits.maxFileBytes : limits.maxBodyBytes)
  if (bytes.length === 0 && wanted.isOptional) return nothing
  const body = parseJson(bytes, limits.maxJsonDepth)
  refuseProblems(checkSchema(body, wanted.json, { field: 'body', named: SCHEMAS }))
  return { ...nothing, body }
}

function refuseProblems(problems: readonly SchemaProblem[]): void {
  const [first] = problems
  if (!first) return
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : ''
  throw new HttpError(`${first.field} ${first.message}${more}.`, {
    code: 'INPUT_INVALID',
    problems,
  })
}

interface BodyLimits {
  readonly maxBytes: number
  /** The time for the whole body to arrive. */
  readonly timeoutMs: number
  readonly timers: Timers
}

/** Reads the body of a request; throws when it exceeds the limit in size or time. */
async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const { maxBytes, timeoutMs, timers } = limits
  const announcedBytes = Number(request.headers.get('content-length') ?? 0)
  if (!(announcedBytes <= maxBytes)) throw tooLarge(maxBytes)
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
      if (step === 'late')
        throw new HttpError('The body did not arrive in time.', {
          code: 'BODY_TIMEOUT',
          headers: closing,
        })
      if (step.done) break
      length += step.value.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      chunks.push(step.value)
    }
  } catch (error) {
    reader.cancel().catch(() => undefined) // the request has failed, so the rest of the body is not needed
    if (error instanceof HttpError) throw error
    throw new HttpError('The connection broke off before the whole body had arrived.', {
      code: 'BODY_INVALID',
      cause: error,
      headers: closing,
    })
  } finally {
    timers.clear(timer)
  }
  if (chunks.length === 1) return chunks[0]!
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

/** Closes the connection, because the unread rest of the body would be taken for the next request. */
const closing = { connection: 'close' }

function tooLarge(maxBytes: number): HttpError {
  const message = `The body is larger than ${maxBytes} bytes.`
  return new HttpError(message, { code: 'BODY_TOO_LARGE', headers: closing })
}

/** Parses bytes as JSON; throws when the value is nested deeper than the limit. */
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

/**
 * Checks the depth level by level instead of recursively, so that a deeply nested value cannot exhaust the
 * stack.
 */
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
