import type { JsonObject } from '@skein/base'
import { objectOf } from '../../wires/read-json.ts'
import type { WireServer } from '../../wires/wire-server.ts'
import type { WireName } from '../../contract/provider.ts'
import { anthropicMessagesServer } from '../../wires/anthropic-messages/server.ts'
import { bedrockConverseServer } from '../../wires/bedrock-converse/server.ts'
import { googleGenerateServer } from '../../wires/google-generate/server.ts'
import { googleInteractionsServer } from '../../wires/google-interactions/server.ts'
import { ollamaChatServer } from '../../wires/ollama-chat/server.ts'
import { openaiChatServer } from '../../wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../../wires/openai-responses/server.ts'

/** An incoming HTTP request, from a socket or from `fetch`. */
export interface Incoming {
  readonly method: string
  /** The absolute address. */
  readonly url: string
  readonly headers: Headers
  readonly body: Uint8Array
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

/** A request that the server received. */
export interface VendorRequest {
  readonly kind: VendorEndpointKind
  readonly wire: WireName
  readonly method: string
  /** The host with its port, if it has one. Tests may use a different host for each vendor. */
  readonly host: string
  readonly path: string
  readonly search: string
  /** The headers, names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body if it is a JSON object, otherwise empty. */
  readonly body: JsonObject
  /** True if the client disconnected before the answer was complete. */
  readonly isAborted: boolean
}

/** Decodes an incoming request. */
export function toVendorRequest(
  incoming: Incoming,
  { kind, wire }: { kind: VendorEndpointKind; wire: WireName },
): VendorRequest {
  const { host, pathname: path, search } = new URL(incoming.url)
  const text = new TextDecoder().decode(incoming.body)
  return {
    kind,
    wire,
    method: incoming.method,
    host,
    path,
    search,
    headers: Object.fromEntries(incoming.headers.entries()),
    text,
    body: parse(text),
    get isAborted() {
      return incoming.signal.aborted
    },
  }
}

function parse(text: string): JsonObject {
  try {
    return objectOf(JSON.parse(text)) ?? {}
  } catch {
    return {} // the body is a form or empty
  }
}

type VendorEndpointKind = 'llm' | 'embeddings' | 'images' | 'image_edits' | 'models' | 'none'

/** The endpoint that a path belongs to, and the vendor format in which its answers and errors are written. */
export interface VendorRoute {
  readonly kind: VendorEndpointKind
  readonly wire: WireServer
}

/** Claude on Google Cloud: the model is in the address. */
const vertexMessagesServer: WireServer = {
  ...anthropicMessagesServer,
  decodeRequest: (body, route) => {
    const [, model = ''] = /\/models\/([^/:]+):/.exec(route.path) ?? []
    return anthropicMessagesServer.decodeRequest(
      { model: decodeURIComponent(model), ...objectOf(body) },
      route,
    )
  },
}

type Pattern = readonly [path: RegExp, kind: VendorEndpointKind, wire: WireServer]

const patterns: readonly Pattern[] = [
  [/\/chat\/completions$/, 'llm', openaiChatServer],
  [/\/responses$/, 'llm', openaiResponsesServer],
  [/\/messages$/, 'llm', anthropicMessagesServer],
  [/:(streamG|g)enerateContent$/, 'llm', googleGenerateServer],
  [/:(streamR|r)awPredict$/, 'llm', vertexMessagesServer],
  [/\/interactions$/, 'llm', googleInteractionsServer],
  [/\/model\/[^/]+\/converse(-stream)?$/, 'llm', bedrockConverseServer],
  [/\/api\/chat$/, 'llm', ollamaChatServer],
  [/:(batchEmbedContents|embedContent)$/, 'embeddings', googleGenerateServer],
  [/:predict$/, 'images', googleGenerateServer],
  [/\/api\/embed$/, 'embeddings', ollamaChatServer],
  [/\/embeddings$/, 'embeddings', openaiChatServer],
  [/\/images\/generations$/, 'images', openaiChatServer],
  [/\/images\/edits$/, 'image_edits', openaiChatServer],
  [/\/models$/, 'models', openaiChatServer],
]

/** Finds the vendor's endpoint for a path. */
export function findVendorRoute(path: string): VendorRoute {
  const route = patterns.find(([pattern]) => pattern.test(path))
  return route ? { kind: route[1], wire: route[2] } : { kind: 'none', wire: openaiChatServer }
}
