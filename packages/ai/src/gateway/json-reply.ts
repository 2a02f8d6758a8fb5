import { type JsonObject, wellFormed } from '@skein/base'
import type { WireReply } from './answer-wire.ts'

/** Makes the reply of a request that is answered with one JSON value. */
export function jsonReply(body: JsonObject): WireReply {
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/**
 * Adds the names of parameters that had no effect as a header. A client may give a parameter any name, so what a
 * header cannot contain is percent-encoded, and a long list is cut.
 */
export function withDropped(reply: WireReply, names: readonly string[]): WireReply {
  if (names.length === 0) return reply
  const text = names.map(headerText).join(', ')
  const value = text.length > MAX_HEADER ? `${text.slice(0, MAX_HEADER)} ...` : text
  return { ...reply, headers: { ...reply.headers, 'skein-dropped-params': value } }
}

const MAX_HEADER = 2000

function headerText(name: string): string {
  // Half of a surrogate pair is replaced, because `encodeURIComponent` refuses it.
  return wellFormed(name)
    .replace(/[^\x20-\x7e]/gu, encodeURIComponent)
    .trim()
}
