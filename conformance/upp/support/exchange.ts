/** A vendor that answers from a list of bodies, for tests that look at both directions. */
import type { JsonObject, JsonValue } from '@skein/base'
import { NoRetry, type ProviderConfig } from '@skein/ai'
import { stub } from './stub.ts'

export interface Exchange {
  readonly config: ProviderConfig
  /** Addresses and bodies of the requests so far. */
  readonly requests: { readonly url: URL; readonly headers: Headers; readonly body: JsonObject }[]
}

export interface Reply {
  readonly status?: number
  readonly json?: JsonValue
  /** Frames of a stream: server-sent events, or lines where the vendor streams lines. */
  readonly events?: readonly JsonObject[]
  readonly lines?: readonly JsonObject[]
}

/** Each request takes the next reply; the bodies are written from the vendors' documentation. */
export function exchange(...replies: readonly Reply[]): Exchange {
  const requests: Exchange['requests'] = []
  const { fetch } = stub(({ url, headers, body }, count) => {
    requests.push({ url: new URL(url), headers, body: JSON.parse(body) as JsonObject })
    const reply = replies[count - 1]
    if (!reply) throw new Error(`The exchange has ${replies.length} replies; this is ${count}.`)
    return toResponse(reply)
  })
  return { config: { apiKey: 'key-4711', fetch, retryStrategy: new NoRetry() }, requests }
}

function toResponse({ status = 200, json, events, lines }: Reply): Response {
  if (events) {
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    return new Response(text, { status, headers: { 'content-type': 'text/event-stream' } })
  }
  if (lines) {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    return new Response(text, { status, headers: { 'content-type': 'application/x-ndjson' } })
  }
  const headers = { 'content-type': 'application/json' }
  return new Response(JSON.stringify(json), { status, headers })
}
