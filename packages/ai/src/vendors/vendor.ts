import type { LLMCapabilities, ModelReference } from '../contract/provider.ts'
import type { EmbeddingHandler } from '../embedding.ts'
import type { ImageHandler } from '../image.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import type { Wire } from '../wires/wire.ts'

/** A vendor on one page: addresses, key, wires and quirks. `defineVendor` makes the provider. */
export interface VendorDefinition {
  readonly name: string
  /** Versioned prefix, https. `config.baseUrl` replaces it. */
  readonly baseUrl: string
  /** Environment variable(s) with the key, first one set wins. Empty: no key needed. */
  readonly keyVariables: readonly string[]
  /** Default: `authorization: Bearer <key>`. */
  readonly authHeaders?: (key: string) => Readonly<Record<string, string>>
  /** Always sent, e.g. a version header. */
  readonly headers?: Readonly<Record<string, string>>
  readonly llm?: VendorLLM | ((reference: ModelReference) => VendorLLM)
  readonly embedding?: (endpoint: VendorEndpoint) => EmbeddingHandler
  readonly image?: (endpoint: VendorEndpoint) => ImageHandler
}

/** How a vendor speaks to its language models. */
export interface VendorLLM<Dialect = unknown> {
  readonly wire: Wire<Dialect>
  readonly dialect: Dialect
  readonly capabilities: LLMCapabilities
}
