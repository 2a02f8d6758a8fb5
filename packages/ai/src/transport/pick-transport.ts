import { nodeTransport } from '#http-client'
import type { Fetch, ProviderConfig } from '../contract/provider.ts'
import { fetchTransport } from './fetch.ts'
import { proxyApplies } from './proxy.ts'
import type { Transport } from './transport.ts'

/** If the application replaces it later (a mock, an instrumentation), it wants its own to be used. */
const platformFetch: unknown = globalThis.fetch

let fast: Transport | undefined | null = null

/** The way to send one request: the caller's `fetch`, the fast client, or the platform's `fetch`. */
export function pickTransport({ fetch }: ProviderConfig, url: string): Transport {
  if (fetch) return fetchTransport(fetch)
  if (globalThis.fetch === platformFetch && isPlain(url)) {
    fast ??= nodeTransport()
    if (fast) return fast
  }
  return fetchTransport(callPlatformFetch)
}

const callPlatformFetch: Fetch = (input, init) => globalThis.fetch(input, init)

/** Nothing in the process or its environment changes how `fetch` would reach this address. */
function isPlain(url: string): boolean {
  return !dispatchers.some(isCustomDispatcher) && !proxyApplies(url)
}

/** Where undici keeps the dispatcher that `setGlobalDispatcher` sets, inside Node and from npm. */
const dispatchers = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`))

interface DispatcherLike {
  readonly constructor: { readonly name: string; readonly prototype: { dispatch?: unknown } }
  readonly dispatch?: unknown
}

/**
 * The one that Node makes for its first `fetch` is an `Agent` without options. One with a
 * connector, a factory, interceptors, or of another class (a proxy, a mock), was set on purpose.
 */
function isCustomDispatcher(symbol: symbol): boolean {
  const dispatcher = (globalThis as Record<symbol, unknown>)[symbol] as DispatcherLike | undefined
  if (!dispatcher) return false
  if (dispatcher.constructor.name !== 'Agent') return true
  if (dispatcher.dispatch !== dispatcher.constructor.prototype.dispatch) return true
  const own = new Map(
    Object.getOwnPropertySymbols(dispatcher).map((key) => [
      key.description,
      (dispatcher as unknown as Record<symbol, unknown>)[key],
    ]),
  )
  const { connect, ...options } = (own.get('options') ?? {}) as Record<string, unknown>
  const factory = own.get('factory') as { name?: string } | undefined
  const hasOptions = Object.keys(options).some((name) => name !== 'maxOrigins')
  return connect !== undefined || hasOptions || factory?.name !== 'defaultFactory'
}
