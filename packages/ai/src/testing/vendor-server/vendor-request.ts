import type { JsonObject } from '@skein/base'
import { objectOf } from '../../wires/read-json.ts'
import type { WireName } from '../../wires/wire.ts'
import type { VendorEndpointKind } from './routes.ts'

/** What arrives, whichever way. */
export interface Incoming {
  readonly method: string
  /** Absolute. */
  readonly url: string
  readonly headers: Headers
  readonly body: Uint8Array
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal
}

/** A request as the server got it. */
export interface VendorRequest {
  readonly kind: VendorEndpointKind
  readonly wire: WireName
  readonly method: string
  /** With the port, if there is one. Tests may give each vendor its own. */
  readonly host: string
  readonly path: string
  readonly search: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body, if it is a JSON object. */
  readonly body: JsonObject
  /** True when the client left before the answer was complete. */
  readonly isAborted: boolean
}

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
    return {} // a form, or nothing
  }
}
