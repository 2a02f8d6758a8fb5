import type { JsonSchema, JsonValue } from '@skein/base'
import type { Services } from '../http/services.ts'
import type { Runtime } from '../contract/runtime-api.ts'
import type { ThreadHead } from '../store/store.ts'
import { addressOf, type OperationId, type PathParams } from './addresses.ts'
import type { ApiErrorCode } from './http-error.ts'
import type { Principal, Scope } from './principal.ts'
import type { ShapeFields, Infer, Shape } from './shape.ts'

/** Methods that operations use. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A request that was let in: who asks is known, the input is checked, and the thread was found. */
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
  /** The body of a route that takes bytes. */
  readonly bytes: Uint8Array
  readonly services: Services
  /** Cuts the connection, where the server knows of one. */
  readonly disconnect?: () => void
}

/** A request about one thread that the client may see. */
export interface ThreadCall extends Call {
  readonly thread: ThreadHead
}

/** One way in which a route answers. */
export interface RouteAnswer {
  readonly status: number
  readonly description: string
  /** Default `application/json` where there is a schema. */
  readonly mediaType?: string
  readonly schema?: JsonSchema
}

/** What a route takes as its body. */
export type RouteBody =
  /** JSON. An optional body may be missing; a large one may be as large as a file. */
  | { readonly json: JsonSchema; readonly isOptional?: boolean; readonly isLarge?: boolean }
  /** Bytes: a file, lines of an exported thread, or anything. Each has a limit of its own. */
  | { readonly bytes: 'file' | 'lines' | 'any' }

/** A request that works, given the ids of a thread: an example in the OpenAPI document, and sent by tests of tenancy. */
export interface Probe {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: JsonValue
}

interface RouteBase {
  /** Names the operation in the OpenAPI document and in metrics. */
  readonly id: string
  readonly method: Method
  /** As in OpenAPI: `/threads/{threadId}`; `{path*}` takes the rest with its slashes. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly scope: Scope | 'public'
  /** Parameters of the query. Others are refused; without `query` nothing is checked. */
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: RouteBody
  readonly answers: readonly RouteAnswer[]
  /** Errors beyond those that every route can answer with. */
  readonly errors?: readonly ApiErrorCode[]
  /** Also served without the prefix, because a specification names the address. */
  readonly isAlsoAtRoot?: boolean
}

/** A route about no thread, or about all that the client may see. */
export interface OpenRoute extends RouteBase {
  readonly addresses: 'nothing'
  readonly probe?: Probe
  readonly handle: (call: Call) => Response | Promise<Response>
}

/** A route about one thread. `{threadId}` is looked up, and refused if unknown, before anything else is read. */
export interface ThreadRoute extends RouteBase {
  readonly addresses: 'thread'
  /** `{threadId}` may also be the id that the client chose for the thread. */
  readonly isChat?: boolean
  readonly probe: Probe
  readonly handle: (call: ThreadCall) => Response | Promise<Response>
}

/** An operation with its address, as the server serves it. */
export type OperationRoute = OpenRoute | ThreadRoute

/** An answer whose type the compiler knows: the operation has to give such a value. */
interface Answer<T> extends RouteAnswer {
  readonly schema?: Shape<T>
}

/** A JSON body whose type the compiler knows. */
interface JsonBody<T> {
  readonly json: Shape<T>
  readonly isOptional?: boolean
  readonly isLarge?: boolean
}

/** A call with the types that the address and the shapes of its operation give it. */
export type OperationCall<Id extends OperationId, Query extends ShapeFields, Body> = Omit<
  Call,
  'params' | 'query' | 'body'
> & {
  readonly params: PathParams<Id>
  readonly query: { readonly [Name in keyof Query]?: Infer<Query[Name]> }
  readonly body: Body
} & ('threadId' extends keyof PathParams<Id> ? { readonly thread: ThreadHead } : unknown)

/** What an operation takes, who may ask for it, how it answers, and what it does. */
export interface Operation<
  Id extends OperationId,
  Query extends ShapeFields,
  Body,
  Answers extends readonly Answer<unknown>[],
> {
  readonly tag: string
  readonly summary: string
  readonly scope: Scope | 'public'
  /** Default: no parameters. `'any'` lets everything pass unchecked. */
  readonly query?: Query | 'any'
  readonly body?: JsonBody<Body> | { readonly bytes: 'file' | 'lines' | 'any' }
  readonly answers: Answers
  readonly errors?: readonly ApiErrorCode[]
  readonly isAlsoAtRoot?: boolean
  readonly isChat?: boolean
  /** Default, for an operation about a thread: the address is enough. */
  readonly probe?: Probe
  /**
   * Does the work. A value becomes the JSON of the first answer; nothing becomes the first answer without
   * content. A `Response` is sent as it is: for streams, files and headers.
   */
  readonly run: (
    call: OperationCall<Id, Query, Body>,
  ) =>
    | Infer<Answers[number]['schema']>
    | Response
    | Promise<Infer<Answers[number]['schema']> | Response>
}

/**
 * An entry of the table of operations. The route that the server mounts, the OpenAPI document, the list in
 * `docs/http.md` and the tests of tenancy are made from it.
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
    // The request was checked by the very shapes that these types are taken from.
    const value: unknown = await run(call as unknown as OperationCall<Id, Query, Body>)
    if (value instanceof Response) return value
    const { status } = rest.answers.find(
      ({ schema }) => (schema === undefined) === (value === undefined),
    )!
    return value === undefined ? new Response(null, { status }) : jsonResponse(value, { status })
  }
  return {
    ...rest,
    id,
    method: method as Method, // addresses are written with these methods only
    path,
    query: query === 'any' ? undefined : (query ?? {}),
    handle,
    ...(isAboutThread
      ? { addresses: 'thread', probe: rest.probe ?? {} }
      : { addresses: 'nothing' }),
  }
}

/** An answer in JSON. */
export function json<T>(description: string, schema: Shape<T>, status = 200): Answer<T> {
  return { status, description, schema }
}

/** An answer without content. */
export function done(description: string, status = 204): Answer<void> {
  return { status, description }
}

/** An answer that `run` makes itself, as a `Response`. */
export function raw(description: string, mediaType: string, schema?: JsonSchema): Answer<never> {
  return { status: 200, description, mediaType, schema: schema as Shape<never> } // nothing else is allowed
}

/** Server-sent events. */
export function stream(description: string): Answer<never> {
  return raw(description, 'text/event-stream', { type: 'string' })
}

/** A JSON answer. The value only has to survive `JSON.stringify`. */
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

/** An answer without content. */
export function noContent(): Response {
  return new Response(null, { status: 204 })
}

/** The names of the parameters in a path, in order. */
export function pathParams(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name]) => name!)
}
