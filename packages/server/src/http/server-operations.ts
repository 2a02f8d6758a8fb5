import type { JsonObject } from '@skein/base'
import type { ResolvedAgent, EndpointDefinition } from '@skein/runtime'
import { HttpError } from '../operations/http-error.ts'
import {
  json,
  operation,
  raw,
  type Call,
  type Method,
  type OperationRoute,
} from '../operations/operation.ts'
import {
  answer,
  arrayOf,
  choice,
  integer,
  number,
  object,
  outline,
  string,
} from '@skein/base/shape'

const status = answer({ status: string })

const amounts = answer({ costUsd: number, tokens: integer, inferences: integer })
const limitsReport = answer({
  spending: arrayOf(
    answer({
      per: choice('tenant', 'user'),
      tenant: string,
      'user?': string,
      from: string,
      until: string,
      spent: amounts,
      reserved: amounts,
      max: answer({ 'costUsd?': number, 'tokens?': integer, 'inferences?': integer }),
      refused: integer,
      delayed: integer,
    }),
  ),
  retention: arrayOf(
    answer({ tenant: string, erased: integer, removed: integer, kept: integer, failed: integer }),
  ),
})

/**
 * The operations about the server itself. Monitors add their own parameters to these addresses, so the query
 * is not checked.
 */
export const serverOperations: readonly OperationRoute[] = [
  operation('getHealth', {
    tag: 'server',
    summary: 'Whether the process answers.',
    scope: 'public',
    query: 'any',
    answers: [json('The process answers.', status)],
    run: () => ({ status: 'ok' }),
  }),
  operation('getReadiness', {
    tag: 'server',
    summary: 'Whether the server accepts requests: the store answers and nothing is shutting down.',
    scope: 'public',
    query: 'any',
    answers: [json('The server accepts requests.', status)],
    errors: ['NOT_READY'],
    async run({ runtime, services }) {
      if (services.isClosing() || runtime.stopping?.aborted)
        throw notReady('The server is shutting down.')
      await runtime.threads.list({ limit: 1 }).catch((cause: unknown) => {
        throw notReady('The store does not answer.', cause)
      })
      return { status: 'ready' }
    },
  }),
  operation('getMetrics', {
    tag: 'server',
    summary: 'Counters for Prometheus, over all tenants.',
    scope: 'metrics:read',
    query: 'any',
    answers: [raw('Metrics as text.', 'text/plain', string)],
    run: async ({ services }) =>
      new Response(await services.metrics.toText(), {
        headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
      }),
  }),
  operation('getLimits', {
    tag: 'server',
    summary: 'What the tenant has spent of its limits, and what was refused and removed.',
    scope: 'admin',
    answers: [json('The report.', limitsReport)],
    run: ({ runtime, principal }) => runtime.limits.report({ tenant: principal.tenant }),
  }),
  operation('getOpenApi', {
    tag: 'server',
    summary: 'The OpenAPI document of this server.',
    scope: 'public',
    query: 'any',
    answers: [json('OpenAPI 3.1.', outline<object>({ openapi: string, paths: object }))],
    run: ({ services }) => services.openapi(),
  }),
]

function notReady(message: string, cause?: unknown): HttpError {
  return new HttpError(message, {
    code: 'NOT_READY',
    hint: 'Try again in a few seconds.',
    cause,
    headers: { 'retry-after': '5' },
  })
}

const card = raw('An agent card of A2A.', 'application/json', object)

/** The operations that describe agents to clients of the A2A protocol. */
export const agentCardOperations: readonly OperationRoute[] = [
  operation('getServerCard', {
    tag: 'a2a',
    summary: 'The A2A agent card of the only agent, or of the one that the server names.',
    scope: 'threads:read',
    isAlsoAtRoot: true,
    answers: [card],
    errors: ['AGENT_NOT_FOUND'],
    run(call) {
      const { runtime, services } = call
      const agents = [...runtime.registry.agents.keys()]
      const name = services.a2a.agent ?? (agents.length === 1 ? agents[0] : undefined)
      if (name === undefined)
        throw new HttpError('This server has several agents, and none of them is its own.', {
          code: 'AGENT_NOT_FOUND',
          hint: 'Each has a card: GET /agents/{agent}/.well-known/agent-card.json. The option `a2a.agent` chooses the one for this address.',
        })
      return cardResponse(call, runtime.registry.agent(name))
    },
  }),
  operation('getAgentCard', {
    tag: 'a2a',
    summary: 'The A2A agent card of an agent.',
    scope: 'threads:read',
    answers: [card],
    errors: ['AGENT_NOT_FOUND'],
    run: (call) => cardResponse(call, call.runtime.registry.agent(call.params.agent)),
  }),
]

/**
 * A client of A2A 1.0 names its version and gets the card of 1.0. Others get a card with the fields of 0.3
 * too, because a missing header means 0.3 (A2A 1.0, section 3.6.2).
 */
function cardResponse(
  { request, services }: Pick<Call, 'request' | 'services'>,
  { name, definition }: ResolvedAgent,
): Response {
  const base = services.a2a.url ?? `${new URL(request.url).origin}${services.prefix}`
  const url = `${base}/agents/${encodeURIComponent(name)}/a2a`
  const { title = name, description = `The agent ${title}.` } = definition
  const modes = ['text/plain', 'application/json']
  const isNew = /^1(\.|$)/.test(request.headers.get('a2a-version') ?? '')
  const common: JsonObject = {
    name: title,
    description,
    version: '0.1.0',
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [{ id: name, name: title, description, tags: ['agent'] }],
    supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
    capabilities: { streaming: true, pushNotifications: false },
  }
  const scheme = isNew
    ? { httpAuthSecurityScheme: { scheme: 'Bearer' } }
    : { type: 'http', scheme: 'bearer' }
  const body: JsonObject = isNew
    ? { ...common, securityRequirements: [{ schemes: { key: { list: [] } } }] }
    : {
        ...common,
        protocolVersion: '0.3.0',
        url,
        preferredTransport: 'JSONRPC',
        security: [{ key: [] }],
      }
  return new Response(JSON.stringify({ ...body, securitySchemes: { key: scheme } }), {
    headers: { 'content-type': 'application/json; charset=utf-8', vary: 'a2a-version' },
  })
}

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
      const found = findEndpoint(endpoints, method, params.path)
      if (!found) throw endpointNotFound(endpoints, params.path)
      const { isRepeatable } = found.endpoint
      const response = await runtime.withState(
        thread.id,
        (state) => found.endpoint.execute(forwarded(call), state, found.params),
        { isRepeatable },
      )
      if (response instanceof Response) return response
      throw new HttpError(`The endpoint "${found.endpoint.path}" did not return a Response.`, {
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
