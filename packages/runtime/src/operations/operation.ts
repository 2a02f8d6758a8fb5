import type { JsonSchema, JsonValue } from '@skein/base'
import type { Runtime } from '../runtime-api.ts'
import type { ThreadHead } from '../store/store.ts'
import type { ErrorCode } from './http-error.ts'
import type { Principal, Scope } from './principal.ts'
import type { Services } from '../http/services.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A request that was let in: checked, typed and with its thread found. */
export interface Call {
  readonly request: Request
  readonly runtime: Runtime
  readonly principal: Principal
  /** Of the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** Checked by the route's `query`; what it does not name is left out. */
  readonly query: Readonly<Record<string, string | number | boolean>>
  /** Checked by the route's `body`; an empty object where an optional body is missing. */
  readonly body: JsonValue
  /** The body of routes that take bytes. */
  readonly bytes: Uint8Array
  readonly services: Services
  /** Cuts the connection, where there is one to cut. */
  readonly disconnect?: () => void
}

/** A request about one thread that the client may see. */
export interface ThreadCall extends Call {
  readonly thread: ThreadHead
}

export interface RouteAnswer {
  readonly status: number
  readonly description: string
  /** Default `application/json` where there is a schema. */
  readonly mediaType?: string
  readonly schema?: JsonSchema
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
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: RouteBody
  readonly answers: readonly RouteAnswer[]
  /** Beyond those that every route has. */
  readonly errors?: readonly ErrorCode[]
  /** Also without the prefix, because a spec names the address. */
  readonly isAlsoAtRoot?: boolean
}

export type RouteBody =
  /** A large one may be as large as a file. */
  | { readonly json: JsonSchema; readonly isOptional?: boolean; readonly isLarge?: boolean }
  | { readonly bytes: 'file' | 'lines' | 'any' }

/** A request that works, given the ids of a thread: shown in the OpenAPI document, and sent by the tests of tenancy. */
export interface Probe {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: JsonValue
}

/** A route about no thread, or about all that the client may see. */
export interface OpenRoute extends RouteBase {
  readonly addresses: 'nothing'
  readonly probe?: Probe
  readonly handle: (call: Call) => Response | Promise<Response>
}

/** A route about one thread: `{threadId}` is looked up, and refused as unknown, before anything else is read. */
export interface ThreadRoute extends RouteBase {
  readonly addresses: 'thread'
  /** `{threadId}` may also be the id that the client chose for it. */
  readonly isChat?: boolean
  readonly probe: Probe
  readonly handle: (call: ThreadCall) => Response | Promise<Response>
}

export type Route = OpenRoute | ThreadRoute

/** Names in the path, in order. */
export function pathParams(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name]) => name!)
}

/** A JSON answer. Values only have to survive `JSON.stringify`. */
export function jsonResponse(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const text = JSON.stringify(value)
  return new Response(text, {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  })
}

/** An answer without content. */
export function noContent(): Response {
  return new Response(null, { status: 204 })
}
