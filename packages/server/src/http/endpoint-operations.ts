import type { EndpointDefinition } from '@skein/runtime'
import { HttpError } from '../operations/http-error.ts'
import {
  operation,
  raw,
  type Call,
  type Method,
  type OperationRoute,
} from '../operations/operation.ts'

const ENDPOINT_IDS = {
  GET: 'getEndpoint',
  POST: 'postEndpoint',
  PUT: 'putEndpoint',
  PATCH: 'patchEndpoint',
  DELETE: 'deleteEndpoint',
} as const

const METHODS = Object.keys(ENDPOINT_IDS) as readonly Method[] // keys of the record above

/** The operations that serve the endpoints that agents define, under the thread they belong to. */
export const endpointOperations: readonly OperationRoute[] = METHODS.map((method) =>
  operation(ENDPOINT_IDS[method], {
    tag: 'endpoints',
    summary: `An endpoint of your own, by ${method}.`,
    scope: method === 'GET' ? 'threads:read' : 'threads:write',
    probe: { params: { path: 'example' } },
    query: 'any',
    body: method === 'GET' ? undefined : { bytes: 'any' },
    answers: [raw('Whatever the endpoint answers.', '*/*')],
    errors: ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED', 'THREAD_TERMINATED', 'STATE_CONFLICT'],
    async run(call) {
      const { runtime, thread, params } = call
      const { endpoints } = runtime.registry
      const match = findEndpoint(endpoints, method, params.path)
      if (!match) throw endpointNotFound(endpoints, params.path)
      const { isRepeatable } = match.endpoint
      const response = await runtime.withState(
        thread.id,
        (state) => match.endpoint.execute(forwarded(call), state, match.params),
        { isRepeatable },
      )
      if (response instanceof Response) return response
      throw new HttpError(`The endpoint "${match.endpoint.path}" did not return a Response.`, {
        code: 'RESPONSE_INVALID',
        hint: 'Return a `Response` from `execute`.',
      })
    },
  }),
)

function endpointNotFound(endpoints: readonly EndpointDefinition[], path: string): HttpError {
  const allow = METHODS.filter((method) => findEndpoint(endpoints, method, path)).join(', ')
  if (allow === '')
    return new HttpError('No agent has an endpoint with this path.', { code: 'ROUTE_NOT_FOUND' })
  return new HttpError(`This endpoint does not accept this method. It accepts ${allow}.`, {
    code: 'METHOD_NOT_ALLOWED',
    headers: { allow },
  })
}

/**
 * Creates the request that the endpoint receives: with its body already read, and without the client's key.
 */
function forwarded({ request, bytes }: Pick<Call, 'request' | 'bytes'>): Request {
  const headers = new Headers(request.headers)
  for (const name of ['authorization', 'x-api-key', 'cookie']) headers.delete(name)
  const { method, url, signal } = request
  const body = method === 'GET' || method === 'HEAD' ? null : new Uint8Array(bytes)
  return new Request(url, { method, headers, body, signal })
}

interface Found {
  readonly endpoint: EndpointDefinition
  readonly params: Readonly<Record<string, string>>
}

/** Finds the endpoint for a path: fixed segments take precedence over `[name]`, and both over `[*]`. */
export function findEndpoint(
  endpoints: readonly EndpointDefinition[],
  method: string,
  path: string,
): Found | undefined {
  const segments = path.split('/')
  let best: (Found & { rank: string }) | undefined
  for (const endpoint of endpoints) {
    if (endpoint.method !== method) continue
    const match = matched(endpoint.path.replace(/^\/|\/$/g, '').split('/'), segments)
    if (match && (!best || match.rank < best.rank)) best = { endpoint, ...match }
  }
  return best && { endpoint: best.endpoint, params: best.params }
}

/**
 * Matches segments with a pattern. `rank` has one letter per segment, so that comparing ranks as text prefers
 * fixed segments over `[name]`, and `[name]` over `[*]`, from left to right.
 */
function matched(
  pattern: readonly string[],
  segments: readonly string[],
): { params: Record<string, string>; rank: string } | undefined {
  const params: Record<string, string> = {}
  let rank = ''
  for (const [index, part] of pattern.entries()) {
    if (part === '[*]') {
      if (segments.length <= index) return undefined
      params['*'] = segments.slice(index).join('/')
      return { params, rank: `${rank}c` }
    }
    const segment = segments[index]
    const [, name] = /^\[(\w+)\]$/.exec(part) ?? []
    if (segment === undefined || segment === '' || (name === undefined && part !== segment))
      return undefined
    if (name !== undefined) params[name] = segment
    rank += name === undefined ? 'a' : 'b'
  }
  return pattern.length === segments.length ? { params, rank } : undefined
}
