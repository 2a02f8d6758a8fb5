import type { EndpointDefinition } from '../definitions/types.ts'
import { HttpError } from '../operations/http-error.ts'
import type { Method, Route, ThreadCall } from '../operations/operation.ts'

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Routes that agents bring along: `endpoints` of the registry, under the thread they belong to. */
export const endpointRoutes: readonly Route[] = METHODS.map((method): Route => ({
  id: `${method.toLowerCase()}Endpoint`,
  method,
  path: '/threads/{threadId}/x/{path*}',
  tag: 'endpoints',
  summary: `An endpoint of your own, by ${method}.`,
  scope: method === 'GET' ? 'threads:read' : 'threads:write',
  addresses: 'thread',
  probe: { params: { path: 'example' } },
  ...(method !== 'GET' && { body: { bytes: 'any' } }),
  answers: [{ status: 200, description: 'Whatever the endpoint answers.', mediaType: '*/*' }],
  errors: ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED', 'THREAD_TERMINATED'],
  handle: (call) => answerEndpoint(call, method),
}))

async function answerEndpoint(call: ThreadCall, method: Method): Promise<Response> {
  const { runtime, thread, params } = call
  const path = params['path']!
  const found = findEndpoint(runtime.registry.endpoints, method, path)
  if (!found) throw notFound(runtime.registry.endpoints, path)
  const response = await runtime.withState(thread.id, (state) =>
    found.endpoint.execute(forwarded(call), state, found.params),
  )
  if (response instanceof Response) return response
  throw new HttpError(`The endpoint "${found.endpoint.path}" answered no Response.`, {
    code: 'RESPONSE_INVALID',
  })
}

function notFound(endpoints: readonly EndpointDefinition[], path: string): HttpError {
  const allowed = METHODS.filter((method) => findEndpoint(endpoints, method, path))
  if (allowed.length === 0)
    return new HttpError('There is no such endpoint.', { code: 'ROUTE_NOT_FOUND' })
  return new HttpError('The endpoint does not take this method.', {
    code: 'METHOD_NOT_ALLOWED',
    headers: { allow: allowed.join(', ') },
  })
}

/** The request as the endpoint sees it: read already, and without the client's key. */
function forwarded({ request, bytes }: ThreadCall): Request {
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

/** The endpoint for a path: fixed segments win over `[name]`, and both over `[*]`. */
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

/** `rank` has one letter per segment: fixed before dynamic before catch-all, the leftmost counting most. */
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
