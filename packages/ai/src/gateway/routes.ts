import type { UPPError } from '../contract/error.ts'
import { anthropicMessagesServer } from '../wires/anthropic-messages/server.ts'
import { googleGenerateServer } from '../wires/google-generate/server.ts'
import { googleInteractionsServer } from '../wires/google-interactions/server.ts'
import { openaiChatServer } from '../wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../wires/openai-responses/server.ts'
import type { WireServer } from '../wires/wire-server.ts'
import { gatewayError } from './answer-wire.ts'

interface RouteBase {
  /** The format of the response, also of an error response. */
  readonly wire: WireServer
  readonly path: string
  readonly search: string
}

type PostKind = 'infer' | 'count' | 'embed' | 'image'

/** The endpoint that a request is addressed to. */
export type Route = RouteBase &
  (
    | { readonly kind: PostKind }
    | { readonly kind: 'models'; readonly model?: string }
    | { readonly kind: 'none'; readonly error: UPPError }
  )

interface Endpoint {
  readonly kind: PostKind
  readonly wire: WireServer
}

const posts: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['/chat/completions', { kind: 'infer', wire: openaiChatServer }],
  ['/responses', { kind: 'infer', wire: openaiResponsesServer }],
  ['/interactions', { kind: 'infer', wire: googleInteractionsServer }],
  ['/messages', { kind: 'infer', wire: anthropicMessagesServer }],
  ['/messages/count_tokens', { kind: 'count', wire: anthropicMessagesServer }],
  ['/embeddings', { kind: 'embed', wire: openaiChatServer }],
  ['/images/generations', { kind: 'image', wire: openaiChatServer }],
])

/** Google names model and method in the path: `/models/{model}:generateContent`. */
const googleMethod = /^\/models\/.+:(generateContent|streamGenerateContent|countTokens)$/
const modelsPath = /^\/models(?:\/(.+))?$/

/** Finds the endpoint of a request by its path. The gateway may be mounted below any prefix. */
export function findRoute(request: Request): Route {
  const { pathname: path, search } = new URL(request.url)
  const { method, headers } = request
  const wire = wireOf(headers, path)
  for (const rest of restsOf(path)) {
    const post = googleMethod.test(rest) ? googleEndpoint(rest) : posts.get(rest)
    if (post) {
      const base = { ...post, path: path.replace(/:countTokens$/, ':generateContent'), search }
      if (method === 'POST') return base
      return { ...base, kind: 'none', error: wrongMethod(method, path, 'POST') }
    }
    const models = modelsPath.exec(rest)
    if (!models) continue
    const base = { wire, path, search }
    if (method !== 'GET') return { ...base, kind: 'none', error: wrongMethod(method, path, 'GET') }
    const [, model] = models
    return { ...base, kind: 'models', model: model === undefined ? undefined : decoded(model) }
  }
  const message = `There is nothing at ${path.slice(0, 200)}.`
  const error = gatewayError(message, 'InvalidRequest', { statusCode: 404 })
  return { wire, path, search, kind: 'none', error }
}

/** Returns the paths below each version in the address, the last one first: a prefix may contain one, too. */
function restsOf(path: string): readonly string[] {
  const ends = [...path.matchAll(/\/v1(?:beta\d*|alpha\d*)?(?=\/)/g)].map(
    ({ index, 0: version }) => index + version.length,
  )
  return ends.toReversed().map((end) => path.slice(end).replace(/\/$/, ''))
}

function googleEndpoint(rest: string): Endpoint {
  return { kind: rest.endsWith(':countTokens') ? 'count' : 'infer', wire: googleGenerateServer }
}

/** Returns the format of a client of an address that several formats have. Their clients send these headers. */
function wireOf(headers: Headers, path: string): WireServer {
  if (headers.has('anthropic-version')) return anthropicMessagesServer
  const isGoogle = headers.has('x-goog-api-key') || headers.has('x-goog-api-client')
  return isGoogle || /\/v1(beta|alpha)/.test(path) ? googleGenerateServer : openaiChatServer
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
