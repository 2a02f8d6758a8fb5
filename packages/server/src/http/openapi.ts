import type { JsonSchema } from '@skein/base'
import { STATUS, type ApiErrorCode } from '../operations/http-error.ts'
import { pathParams, type OperationRoute } from '../operations/operation.ts'
import { SCHEMAS } from '../operations/schemas.ts'

type Json = Record<string, unknown>

/** Creates the OpenAPI 3.1 document of a list of routes. */
export function openApi(routes: readonly OperationRoute[], prefix: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = `${prefix}${route.path.replace('*}', '}')}`
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route) }
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

function describe(route: OperationRoute): Json {
  const { id, tag, summary, scope, body, probe } = route
  const isPublic = scope === 'public'
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: isPublic ? summary : `${summary} Needs the scope \`${scope}\`.`,
    security: isPublic ? [] : undefined,
    'x-scope': scope,
    parameters: parameters(route),
    requestBody: body && requestBody(body, probe?.body),
    responses: responses(route),
  }
}

function parameters(route: OperationRoute): readonly Json[] {
  const isRest = (name: string): boolean => route.path.includes(`{${name}*}`)
  const inPath = pathParams(route.path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
    description: isRest(name) ? 'May contain slashes, which are sent as they are.' : undefined,
    'x-rest': isRest(name) || undefined,
  }))
  const inQuery = Object.entries(route.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }))
  return [...inPath, ...inQuery]
}

function requestBody(body: NonNullable<OperationRoute['body']>, example: unknown): Json {
  if ('json' in body)
    return {
      required: !body.isOptional,
      content: { 'application/json': { schema: body.json, example } },
    }
  const isLines = body.bytes === 'lines'
  const schema = { type: 'string', format: isLines ? undefined : 'binary' }
  return {
    required: isLines,
    content: { [isLines ? 'application/jsonl' : '*/*']: { schema } },
  }
}

function responses(route: OperationRoute): Json {
  const all: Record<string, { description: string; content?: Json }> = {}
  for (const { status, description, mediaType, schema } of route.answers) {
    const hasContent = schema !== undefined || mediaType !== undefined
    const earlier = all[status]?.content
    const content = hasContent
      ? { ...earlier, [mediaType ?? 'application/json']: schema ? { schema } : {} }
      : earlier
    all[status] = { description, content }
  }
  const schema: JsonSchema = { $ref: '#/components/schemas/Error' }
  const codes = errorsOf(route)
  for (const status of new Set(codes.map((code) => STATUS[code]))) {
    const own = codes.filter((code) => STATUS[code] === status)
    all[status] = {
      description: own.map((code) => `\`${code}\``).join(', '),
      content: { 'application/json': { schema } },
    }
  }
  return all
}

/** Returns every error code that a route can answer with. */
export function errorsOf(route: OperationRoute): readonly ApiErrorCode[] {
  const { scope, addresses, body, query, errors = [] } = route
  return [
    ...new Set<ApiErrorCode>([
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
