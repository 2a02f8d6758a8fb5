import type { JsonSchema } from '@skein/base'
import { STATUS, type ErrorCode } from '../operations/http-error.ts'
import { pathParams, type Route, type RouteAnswer } from '../operations/operation.ts'
import { SCHEMAS } from '../operations/schemas.ts'

type Json = Record<string, unknown>

/** The OpenAPI 3.1 document of a list of routes. */
export function openApi(routes: readonly Route[], prefix: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = `${prefix}${route.path.replace('*}', '}')}`
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Skein',
      version: '0.1.0',
      description: 'Durable threads of agents: messages, streams, files, approvals.',
    },
    security: [{ key: [] }, { header: [] }],
    paths,
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer' },
        header: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
    },
  }
}

function operation(route: Route): Json {
  const { id, tag, summary, scope, body, probe } = route
  const where = `${route.summary} Needs the scope \`${scope}\`.`
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: scope === 'public' ? route.summary : where,
    ...(scope === 'public' && { security: [] }),
    'x-scope': scope,
    parameters: parameters(route),
    ...(body && { requestBody: requestBody(body, probe?.body) }),
    responses: responses(route),
  }
}

function parameters(route: Route): readonly Json[] {
  const inPath = pathParams(route.path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
    ...(route.path.includes(`{${name}*}`) && {
      description: 'May contain slashes, which are sent as they are.',
      'x-rest': true,
    }),
  }))
  const inQuery = Object.entries(route.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }))
  return [...inPath, ...inQuery]
}

function requestBody(body: NonNullable<Route['body']>, example: unknown): Json {
  if ('json' in body) {
    const json = { schema: body.json, ...(example !== undefined && { example }) }
    return { required: !body.isOptional, content: { 'application/json': json } }
  }
  const type = body.bytes === 'lines' ? 'application/jsonl' : '*/*'
  const schema = { type: 'string', ...(body.bytes !== 'lines' && { format: 'binary' }) }
  return { required: body.bytes === 'lines', content: { [type]: { schema } } }
}

function responses(route: Route): Json {
  const all: Record<string, Json> = {}
  for (const answer of route.answers) {
    const content = { ...(all[answer.status]?.['content'] as object), ...contentOf(answer) }
    all[answer.status] = {
      description: answer.description,
      ...(Object.keys(content).length > 0 && { content }),
    }
  }
  const error: JsonSchema = { $ref: '#/components/schemas/Error' }
  for (const [status, codes] of byStatus(errorsOf(route)))
    all[status] = {
      description: codes.map((code) => `\`${code}\``).join(', '),
      content: { 'application/json': { schema: error } },
    }
  return all
}

function contentOf({ mediaType, schema }: RouteAnswer): Json {
  if (!schema && mediaType === undefined) return {}
  return { [mediaType ?? 'application/json']: schema ? { schema } : {} }
}

/** Every code that a route can answer with. */
export function errorsOf(route: Route): readonly ErrorCode[] {
  const { scope, addresses, body, query, errors = [] } = route
  return [
    ...new Set<ErrorCode>([
      'HOST_NOT_ALLOWED',
      'ORIGIN_NOT_ALLOWED',
      'URL_TOO_LONG',
      'RATE_LIMITED',
      'INTERNAL',
      'RUNTIME_STOPPED',
      ...(scope === 'public' ? [] : (['UNAUTHENTICATED', 'SCOPE_MISSING'] as const)),
      ...(addresses === 'thread' ? (['THREAD_NOT_FOUND'] as const) : []),
      ...(query || body ? (['INPUT_INVALID'] as const) : []),
      ...(body ? (['BODY_TOO_LARGE', 'BODY_INVALID', 'BODY_TIMEOUT'] as const) : []),
      ...(body && 'json' in body ? (['MEDIA_TYPE_UNSUPPORTED'] as const) : []),
      ...errors,
    ]),
  ]
}

function byStatus(codes: readonly ErrorCode[]): ReadonlyMap<number, readonly ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>()
  for (const code of codes) groups.set(STATUS[code], [...(groups.get(STATUS[code]) ?? []), code])
  return groups
}
