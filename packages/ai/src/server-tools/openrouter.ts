type Typed<Type extends string, Options = object> = { readonly type: Type } & Options

type OpenRouterWebSearch = {
  readonly allowed_domains?: readonly string[]
  readonly excluded_domains?: readonly string[]
  readonly engine?: 'auto' | 'native' | 'exa' | 'parallel' | 'firecrawl' | 'perplexity'
  readonly max_characters?: number
  readonly max_results?: number
  readonly max_total_results?: number
  readonly max_uses?: number
  readonly search_context_size?: 'low' | 'medium' | 'high'
  readonly user_location?: {
    readonly type: 'approximate'
    readonly city?: string
    readonly country?: string
    readonly region?: string
    readonly timezone?: string
  }
}

type OpenRouterWebFetch = {
  readonly allowed_domains?: readonly string[]
  readonly blocked_domains?: readonly string[]
  readonly engine?: 'auto' | 'native' | 'openrouter' | 'exa' | 'parallel' | 'firecrawl'
  readonly max_content_tokens?: number
  readonly max_uses?: number
}

/** Server tools that OpenRouter runs for any model. */
export const openrouterTools = {
  webSearch: (
    parameters: OpenRouterWebSearch = {},
  ): Typed<'openrouter:web_search', { readonly parameters: OpenRouterWebSearch }> => ({
    type: 'openrouter:web_search',
    parameters,
  }),
  webFetch: (
    parameters: OpenRouterWebFetch = {},
  ): Typed<'openrouter:web_fetch', { readonly parameters: OpenRouterWebFetch }> => ({
    type: 'openrouter:web_fetch',
    parameters,
  }),
} as const
