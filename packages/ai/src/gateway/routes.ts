import type { UPPError } from '../contract/error.ts'
import { anthropicMessagesServer } from '../wires/anthropic-messages/server.ts'
import { openaiChatServer } from '../wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../wires/openai-responses/server.ts'
import type { WireServer } from '../wires/wire.ts'
import { gatewayError, type WireReply } from './answer-wire.ts'
import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { EmbeddingInstance } from '../embedding.ts'
import { objectOf } from '../wires/read-json.ts'
import { requestError } from '../wires/wire-error.ts'

interface RouteBase {
  /** The format of the response, also of an error response. */
  readonly wire: WireServer
  readonly path: string
  readonly search: string
}

/** The endpoint that a request is addressed to. */
export type Route = RouteBase &
  (
    | { readonly kind: 'infer' | 'count' | 'embed' }
    | { readonly kind: 'models'; readonly model?: string }
    | { readonly kind: 'none'; readonly error: UPPError }
  )

const posts: Readonly<Record<string, Pick<Route, 'wire'> & { kind: 'infer' | 'count' | 'embed' }>> =
  {
    '/chat/completions': { kind: 'infer', wire: openaiChatServer },
    '/responses': { kind: 'infer', wire: openaiResponsesServer },
    '/messages': { kind: 'infer', wire: anthropicMessagesServer },
    '/messages/count_tokens': { kind: 'count', wire: anthropicMessagesServer },
    '/embeddings': { kind: 'embed', wire: openaiChatServer },
  }

/** Finds the endpoint of a request by its path. The gateway may be mounted below any prefix. */
export function findRoute(request: Request): Route {
  const { pathname: path, search } = new URL(request.url)
  const { method } = request
  // Both OpenAI and Anthropic have `/v1/models`; Anthropic clients always send this header.
  const wire = request.headers.has('anthropic-version') ? anthropicMessagesServer : openaiChatServer
  const start = path.indexOf('/v1/')
  const rest = start < 0 ? '' : path.slice(start + 3).replace(/\/$/, '')
  const post = Object.hasOwn(posts, rest) ? posts[rest] : undefined
  if (post) {
    const base = { ...post, path, search }
    if (method === 'POST') return base
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
export function answerModels(
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
  return jsonReply(body)
}

/** Makes the reply of a request that is answered with one JSON value. */
export function jsonReply(body: JsonObject): WireReply {
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** Answers `POST /v1/embeddings`; `find` returns the model with a name. */
export async function answerEmbeddings(
  json: JsonValue,
  find: (name: string) => EmbeddingInstance,
  signal: AbortSignal,
): Promise<WireReply> {
  const { model: name, input, dimensions, encoding_format, ...others } = objectOf(json) ?? {}
  const invalid = (what: string, hint?: string): UPPError => requestError('gateway', what, hint)
  if (typeof name !== 'string') throw invalid('The field "model" is missing.')
  const inputs: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (inputs.length === 0 || !inputs.every((one) => typeof one === 'string' && one !== ''))
    throw invalid(
      'The field "input" is not a text or a list of texts.',
      'Lists of tokens are not accepted: their numbers mean something to one model only.',
    )
  if (encoding_format !== undefined && encoding_format !== 'float' && encoding_format !== 'base64')
    throw invalid('The field "encoding_format" is neither "float" nor "base64".')
  if (dimensions !== undefined && !(Number.isInteger(dimensions) && Number(dimensions) > 0))
    throw invalid('The field "dimensions" is not a whole number above 0.')
  const embedder = find(name)
  const size = embedder.model.provider === 'google' ? 'outputDimensionality' : 'dimensions'
  const { embeddings, usage } = await embedder.embed(inputs as readonly string[], {
    signal,
    params: dimensions === undefined ? {} : { [size]: dimensions },
  })
  const reply = jsonReply({
    object: 'list',
    data: embeddings.map(({ vector, index }) => ({
      object: 'embedding',
      index,
      embedding: encoding_format === 'base64' ? floatsInBase64(vector) : vector,
    })),
    model: name,
    usage: { prompt_tokens: usage.totalTokens, total_tokens: usage.totalTokens },
  })
  const dropped = Object.keys(others)
  if (dropped.length === 0) return reply
  return { ...reply, headers: { ...reply.headers, 'skein-dropped-params': dropped.join(', ') } }
}

/** Writes 32-bit floats, little endian, as OpenAI's `encoding_format: base64` has them. */
function floatsInBase64(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4))
  vector.forEach((number, index) => view.setFloat32(index * 4, number, true))
  return encodeBase64(new Uint8Array(view.buffer))
}
