import type { UPPError } from '../contract/error.ts'
import { anthropicMessagesServer } from '../wires/anthropic-messages/server.ts'
import { openaiChatServer } from '../wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../wires/openai-responses/server.ts'
import type { WireServer } from '../wires/wire.ts'
import { gatewayError, type WireReply } from './answer-wire.ts'
import type { JsonObject } from '@skein/base'

interface RouteBase {
  /** The format of the response, also of an error response. */
  readonly wire: WireServer
  readonly path: string
  readonly search: string
}

/** The endpoint that a request is addressed to. */
export type Route = RouteBase &
  (
    | { readonly kind: 'infer' }
    | { readonly kind: 'models'; readonly model?: string }
    | { readonly kind: 'none'; readonly error: UPPError }
  )

const servers: Readonly<Record<string, WireServer>> = {
  '/chat/completions': openaiChatServer,
  '/responses': openaiResponsesServer,
  '/messages': anthropicMessagesServer,
}

/** Finds the endpoint of a request by its path. The gateway may be mounted below any prefix. */
export function findRoute(request: Request): Route {
  const { pathname: path, search } = new URL(request.url)
  const { method } = request
  // Both OpenAI and Anthropic have `/v1/models`; Anthropic clients always send this header.
  const wire = request.headers.has('anthropic-version') ? anthropicMessagesServer : openaiChatServer
  const start = path.indexOf('/v1/')
  const rest = start < 0 ? '' : path.slice(start + 3).replace(/\/$/, '')
  const server = Object.hasOwn(servers, rest) ? servers[rest] : undefined
  if (server) {
    const base = { wire: server, path, search }
    if (method === 'POST') return { ...base, kind: 'infer' }
    return { ...base, kind: 'none', error: wrongMethod(method, path, 'POST') }
  }
  const base = { wire, path, search }
  const models = /^\/models(?:\/(.+))?$/.exec(rest)
  if (!models) {
    const message = `There is nothing at ${path.slice(0, 200)}.`
    return {
      ...base,
      kind: 'none',
      error: gatewayError(message, 'InvalidRequest', { statusCode: 404 }),
    }
  }
  if (method !== 'GET') {
    return { ...base, kind: 'none', error: wrongMethod(method, path, 'GET') }
  }
  const [, model] = models
  return { ...base, kind: 'models', model: model === undefined ? undefined : decoded(model) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function wrongMethod(method: string, path: string, right: string): UPPError {
  const message = `${path} takes ${right}, not ${method}.`
  return gatewayError(message, 'InvalidRequest', { statusCode: 405 })
}

/** Answers `GET /v1/models` and `/v1/models/{name}` in the format of OpenAI or Anthropic. */
export function listModels(
  { wire, model }: Route & { kind: 'models' },
  names: readonly string[],
  createdAt: number,
): WireReply {
  const isAnthropic = wire.name === 'anthropic-messages'
  const describe = (id: string, madeAt: number): JsonObject =>
    isAnthropic
      ? { type: 'model', id, display_name: id, created_at: new Date(madeAt).toISOString() }
      : { id, object: 'model', created: Math.floor(madeAt / 1000), owned_by: 'gateway' }
  const list = names.map((name) => describe(name, createdAt))
  const body: JsonObject =
    model !== undefined
      ? describe(model, createdAt)
      : isAnthropic
        ? { data: list, has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }
        : { object: 'list', data: list }
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}
