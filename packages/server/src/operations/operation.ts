import type { ThreadIdentity } from './thread-identity.ts'
import type { JsonSchema, JsonValue } from '@skein/base'
import type { Services } from '../http/services.ts'
import type { Runtime } from '@skein/runtime'
import { doPart } from '@skein/runtime/serving'
import { addressOf, type OperationId, type PathParams } from './addresses.ts'
import type { ApiErrorCode } from './http-error.ts'
import type { Principal, Scope } from './principal.ts'
import type { ShapeFields, Infer, Shape } from '@skein/base/shape'

/** The HTTP methods that operations use. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A request that was admitted: its client is authenticated, its input is checked, and its thread was found. */
export interface Call {
  readonly request: Request
  readonly runtime: Runtime
  readonly principal: Principal
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The parameters of the query, checked by the route's `query`. */
  readonly query: Readonly<Record<string, string | number | boolean>>
  /** The JSON body, checked by the route's `body`; an empty object where an optional body is missing. */
  readonly body: JsonValue
  /** The body of a route that accepts bytes. */
  readonly bytes: Uint8Array
  readonly services: Services
  /** The client's connection, as far as the HTTP server gives access to it. */
  readonly connection: {
    readonly address?: string
    readonly disconnect?: () => void
    readonly unsentBytes?: () => number
  }
}

/** A request about one thread, which the client is allowed to see. */
export interface ThreadCall extends Call {
  readonly thread: ThreadIdentity
}

/** One of the responses that a route can send. */
export interface RouteAnswer {
  readonly status: number
  readonly description: string
  /** Default `application/json` where there is a schema. */
  readonly mediaType?: string
  readonly schema?: JsonSchema
}

/** The body that a route accepts. */
export type RouteBody =
  /** JSON. With `isOptional` the body may be missing; with `isLarge` it may be as large as a file. */
  | { readonly json: JsonSchema; readonly isOptional?: boolean; readonly isLarge?: boolean }
  /** Bytes: a file, the lines of an exported thread, or any other bytes. Each kind has its own size limit. */
  | { readonly bytes: 'file' | 'lines' | 'any' }

/** An example of a valid request. It is shown in the OpenAPI document, and the tests of tenant isolation send it. */
export interface Probe {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: JsonValue
}

interface RouteBase {
  /** The name of the operation in the OpenAPI document and in metrics. */
  readonly id: string
  readonly method: Method
  /** The path as in OpenAPI: `/threads/{threadId}`; `{path*}` matches the rest with its slashes. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly scope: Scope | 'public'
  /** The accepted query parameters; all others are refused. If `query` is missing, the query is not checked. */
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: RouteBody
  readonly answers: readonly RouteAnswer[]
  /** The error codes of this route, besides those that every route can answer with. */
  readonly errors?: readonly ApiErrorCode[]
  /** Whether the route is also served without the server's prefix, because a specification defines its address. */
  readonly isAlsoAtRoot?: boolean
}

/** A route that is not about a single thread. */
export interface OpenRoute extends RouteBase {
  readonly addresses: 'nothing'
  readonly probe?: Probe
  readonly handle: (call: Call) => Response | Promise<Response>
}

/** A route about one thread. The server looks the thread up before it reads the query and the body. */
export interface ThreadRoute extends RouteBase {
  readonly addresses: 'thread'
  /** Whether `{threadId}` may also be the id that the client itself chose for the thread. */
  readonly isChat?: boolean
  readonly probe: Probe
  readonly handle: (call: ThreadCall) => Response | Promise<Response>
}

/** An operation with its address, as the server serves it. */
export type OperationRoute = OpenRoute | ThreadRoute

/** A response with a typed value, which `run` has to return. */
interface Answer<T> extends RouteAnswer {
  readonly schema?: Shape<T>
}

/** A JSON body with a typed value. */
interface JsonBody<T> {
  readonly json: Shape<T>
  readonly isOptional?: boolean
  readonly isLarge?: boolean
}

/** A call with the parameter, query and body types of its operation. */
export type OperationCall<Id extends OperationId, Query extends ShapeFields, Body> = Omit<
  Call,
  'params' | 'query' | 'body'
> & {
  readonly params: PathParams<Id>
  readonly query: { readonly [Name in keyof Query]?: Infer<Query[Name]> }
  readonly body: Body
} & ('threadId' extends keyof PathParams<Id> ? { readonly thread: ThreadIdentity } : unknown)

/** The definition of an operation: its input, its scope, its responses and its work. */
export interface Operation<
  Id extends OperationId,
  Query extends ShapeFields,
  Body,
  Answers extends readonly Answer<unknown>[],
> {
  readonly tag: string
  readonly summary: string
  readonly scope: Scope | 'public'
  /** The query parameters. Default: none. `'any'` accepts everything unchecked. */
  readonly query?: Query | 'any'
  readonly body?: JsonBody<Body> | { readonly bytes: 'file' | 'lines' | 'any' }
  readonly answers: Answers
  readonly errors?: readonly ApiErrorCode[]
  readonly isAlsoAtRoot?: boolean
  readonly isChat?: boolean
  /** An example request. Default for an operation about a thread: a request to its address without a body. */
  readonly probe?: Probe
  /**
   * Does the work. A returned value is sent as the JSON of the first response; undefined sends the first
   * response without content. A `Response` is sent unchanged, for streams, files and headers.
   */
  readonly run: (
    call: OperationCall<Id, Query, Body>,
  ) =>
    | Infer<Answers[number]['schema']>
    | Response
    | Promise<Infer<Answers[number]['schema']> | Response>
}

/**
 * Creates an entry of the table of operations. The entry gives the server its route, the OpenAPI document its
 * part about the operation, `docs/http.md` its line, and the tests of tenant isolation a request to send.
 *
 *     operation('updateThread', {
 *       tag: 'threads',
 *       summary: 'Changes the title or the tags.',
 *       scope: 'threads:write',
 *       body: { json: shape({ 'title?': maxText(256) }) },
 *       answers: [json('The thread.', ref('Thread'))],
 *       run: ({ runtime, thread, body }) => runtime.threads.update(thread.id, body),
 *     })
 */
export function operation<
  const Id extends OperationId,
  const Answers extends readonly Answer<unknown>[],
  const Query extends ShapeFields = Record<never, never>,
  Body = unknown,
>(id: Id, { query, run, ...rest }: Operation<Id, Query, Body, Answers>): OperationRoute {
  const { method, path } = addressOf(id)
  const isAboutThread = path.includes('{threadId}')
  const handle = async (call: Call): Promise<Response> => {
    // The cast is safe: the request was checked with the shapes from which these types are derived.
    const value: unknown = await run(call as unknown as OperationCall<Id, Query, Body>)
    if (value instanceof Response) return value
    const { status } = rest.answers.find(
      ({ schema }) => (schema === undefined) === (value === undefined),
    )!
    if (value === undefined) return new Response(null, { status })
    // The texts of long lists that end together would block the process together.
    return doPart(() => jsonResponse(value, { status }))
  }
  return {
    ...rest,
    id,
    method: method as Method, // ADDRESSES contains only these methods
    path,
    query: query === 'any' ? undefined : (query ?? {}),
    handle,
    ...(isAboutThread
      ? { addresses: 'thread', probe: rest.probe ?? {} }
      : { addresses: 'nothing' }),
  }
}

/** Describes a JSON response. */
export function json<T>(description: string, schema: Shape<T>, status = 200): Answer<T> {
  return { status, description, schema }
}

/** Describes a response without content. */
export function done(description: string, status = 204): Answer<void> {
  return { status, description }
}

/** Describes a response that the operation's `run` creates itself as a `Response`. */
export function raw(description: string, mediaType: string, schema?: JsonSchema): Answer<never> {
  // The type is `never`, because `run` returns a `Response` and no value.
  return { status: 200, description, mediaType, schema: schema as Shape<never> }
}

/** Describes a response with server-sent events. */
export function stream(description: string): Answer<never> {
  return raw(description, 'text/event-stream', { type: 'string' })
}

/** Creates a JSON response. The value must be serialisable with `JSON.stringify`. */
export function jsonResponse(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  })
}

/** Creates a response without content. */
export function noContent(): Response {
  return new Response(null, { status: 204 })
}

/** Returns the names of the parameters in a path, in order. */
export function pathParams(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name]) => name!)
}
