// The server tools (tools that run at the vendor) of xAI, and those of OpenRouter, which routes to xAI and others.

type Typed<Type extends string, Options = object> = { readonly type: Type } & Options

type XaiDomains = {
  readonly allowed_domains?: readonly string[]
  readonly excluded_domains?: readonly string[]
}

/** Domains may be listed in two ways: in `filters`, as in OpenAI's Responses, or directly, as in xAI's own API. */
type XaiWebSearch = XaiDomains & {
  readonly filters?: XaiDomains
  readonly enable_image_search?: boolean
  readonly enable_image_understanding?: boolean
}

type XaiXSearch = {
  readonly allowed_x_handles?: readonly string[]
  readonly excluded_x_handles?: readonly string[]
  readonly from_date?: string
  readonly to_date?: string
  readonly enable_image_understanding?: boolean
  readonly enable_video_understanding?: boolean
}

type XaiImages = {
  readonly action?: 'auto' | 'generate' | 'edit'
}

type XaiFileSearch = {
  readonly vector_store_ids: readonly string[]
  readonly max_num_results?: number
}

type XaiMcp = {
  readonly server_label: string
  readonly server_url: string
  readonly server_description?: string
  readonly authorization?: string
  readonly allowed_tools?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Server tools of xAI's Responses: `xai('grok-4', { api: 'responses' })`. xAI publishes no SDK for npm; the
 * names are those of its documentation and of `@ai-sdk/xai 5.0.12`, with whose requests a test compares ours.
 */
export const xaiTools = {
  webSearch: (options: XaiWebSearch = {}): Typed<'web_search', XaiWebSearch> => ({
    type: 'web_search',
    ...options,
  }),
  xSearch: (options: XaiXSearch = {}): Typed<'x_search', XaiXSearch> => ({
    type: 'x_search',
    ...options,
  }),
  codeExecution: (): Typed<'code_interpreter'> => ({ type: 'code_interpreter' }),
  viewImage: (): Typed<'view_image'> => ({ type: 'view_image' }),
  viewXVideo: (): Typed<'view_x_video'> => ({ type: 'view_x_video' }),
  imageGeneration: (options: XaiImages = {}): Typed<'image_generation', XaiImages> => ({
    type: 'image_generation',
    ...options,
  }),
  fileSearch: (options: XaiFileSearch): Typed<'file_search', XaiFileSearch> => ({
    type: 'file_search',
    ...options,
  }),
  mcp: (options: XaiMcp): Typed<'mcp', XaiMcp> => ({ type: 'mcp', ...options }),
} as const

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
