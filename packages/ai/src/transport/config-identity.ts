import { type JsonObject, sha256Hex } from '@skein/base'
import type { ProviderConfig } from '../contract/provider.ts'
import { isSecretHeader } from './config-secrets.ts'

/**
 * Returns what a config says about who answers: the address, and the headers, which may name a tenant, a project or
 * a beta feature. Values of credentials are hashed; the API key is left out, because a rotated key asks the same
 * model. Headers that differ from request to request and change no answer are left out too.
 */
export function identityOfConfig({ baseUrl, headers = {} }: ProviderConfig): JsonObject {
  const entries = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name, value]) => value !== undefined && !perRequest.has(name))
    .map(([name, value]) => [
      name,
      value !== null && isSecretHeader(name) ? sha256Hex(String(value)) : String(value),
    ])
  return { baseUrl, headers: entries.length > 0 ? Object.fromEntries(entries) : undefined }
}

/** Headers of tracing, of one request alone, and of the client program. */
const perRequest = new Set(
  `traceparent tracestate baggage b3 x-b3-traceid x-b3-spanid x-b3-parentspanid x-b3-sampled x-b3-flags
  x-cloud-trace-context x-amzn-trace-id x-request-id x-correlation-id idempotency-key user-agent accept accept-encoding
  accept-language`.split(/\s+/),
)
