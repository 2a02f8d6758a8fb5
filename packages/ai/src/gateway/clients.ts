import { sha256Hex } from '@skein/base'
import type { GatewayLimits } from './limits.ts'

/** Whoever is behind a request. */
export interface GatewayClient {
  /** For limits and for `onError`; never a secret. */
  readonly name: string
  readonly limits?: GatewayLimits
  /** Names of the models it may use. Default: all. */
  readonly models?: readonly string[]
}

/** A client with its key. */
export interface GatewayKey extends GatewayClient {
  readonly key: string
}

/** Finds the client of a key, e.g. in a database. Undefined: there is none. */
export type KeyLookup = (
  key: string,
) => GatewayClient | undefined | Promise<GatewayClient | undefined>

const everyone: GatewayClient = { name: 'everyone' }

/** Who sent a request, by its key: `authorization: Bearer …`, `x-api-key` or `api-key`. */
export function clientFinder(
  keys: readonly GatewayKey[] | KeyLookup | undefined,
): (request: Request) => Promise<GatewayClient | undefined> {
  if (!keys) return async () => everyone
  const lookUp = typeof keys === 'function' ? keys : lookUpIn(keys)
  return async (request) => {
    const key = keyOf(request.headers)
    return key === undefined ? undefined : lookUp(key)
  }
}

/** By hash: how long the search takes tells nothing about the keys. */
function lookUpIn(keys: readonly GatewayKey[]): KeyLookup {
  const clients = new Map<string, GatewayClient>()
  for (const { key, ...client } of keys) clients.set(sha256Hex(key), client)
  return (key) => clients.get(sha256Hex(key))
}

function keyOf(headers: Headers): string | undefined {
  const [, bearer] = /^bearer\s+(.+)$/i.exec(headers.get('authorization') ?? '') ?? []
  return bearer ?? headers.get('x-api-key') ?? headers.get('api-key') ?? undefined
}
