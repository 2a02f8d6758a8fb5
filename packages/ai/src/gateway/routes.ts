import type { UPPError } from '../contract/error.ts'
import { anthropicMessagesServer } from '../wires/anthropic-messages/server.ts'
import { openaiChatServer } from '../wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../wires/openai-responses/server.ts'
import type { WireServer } from '../wires/wire-server.ts'
import { gatewayError } from './gateway-error.ts'

interface RouteBase {
  /** The format of the answer, also of an error. */
  readonly wire: WireServer
  readonly path: string
  readonly search: string
}

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

/** What a request asks for; the gateway may be mounted below any prefix. */
export function findRoute(request: Request): Route {
  const { pathname: path, search } = new URL(request.url)
  const { method } = request
  // Clients of Anthropic always tell their version, also where the path is common to both.
  const wire = request.headers.has('anthropic-version') ? anthropicMessagesServer : openaiChatServer
  const [, rest = ''] = /\/v1(\/.*?)\/?$/.exec(path) ?? []
  const server = Object.hasOwn(servers, rest) ? servers[rest] : undefined
  if (server) {
    const base = { wire: server, path, search }
    if (method === 'POST') return { ...base, kind: 'infer' }
    return { ...base, kind: 'none', error: wrongMethod(method, path, 'POST') }
  }
  const base = { wire, path, search }
  const models = /^\/models(?:\/(.+))?$/.exec(rest)
  if (!models) return { ...base, kind: 'none', error: notFound(path) }
  if (method !== 'GET') {
    return { ...base, kind: 'none', error: wrongMethod(method, path, 'GET') }
  }
  const [, model] = models
  return { ...base, kind: 'models', ...(model !== undefined && { model: decoded(model) }) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function notFound(path: string): UPPError {
  const message = `There is nothing at ${path.slice(0, 200)}.`
  return gatewayError(message, 'InvalidRequest', { statusCode: 404 })
}

function wrongMethod(method: string, path: string, right: string): UPPError {
  const message = `${path} takes ${right}, not ${method}.`
  return gatewayError(message, 'InvalidRequest', { statusCode: 405 })
}
