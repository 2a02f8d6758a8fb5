import type { Fetch, ProviderConfig } from '../config.ts'
import { fetchTransport } from './fetch.ts'
import type { Transport } from './transport.ts'

/** The way to send a request: the caller's `fetch`, or the platform's. */
export function pickTransport(config: ProviderConfig, _url: string): Transport {
  return fetchTransport(config.fetch ?? (globalThis.fetch as Fetch))
}
