/** A place from which a search is made. */
type SearchLocation = {
  readonly type: 'approximate'
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

type Typed<Type extends string, Options = object> = { readonly type: Type } & Options

type AnthropicTool = {
  readonly cache_control?: { readonly type: 'ephemeral'; readonly ttl?: '5m' | '1h' }
  readonly allowed_callers?: readonly (
    'direct' | 'code_execution_20250825' | 'code_execution_20260120' | 'code_execution_20260521'
  )[]
  readonly defer_loading?: boolean
}

type AnthropicWeb = AnthropicTool & {
  readonly max_uses?: number
  readonly allowed_domains?: readonly string[]
  readonly blocked_domains?: readonly string[]
}

type AnthropicWebSearch = AnthropicWeb & {
  readonly user_location?: SearchLocation
}

type AnthropicWebFetch = AnthropicWeb & {
  readonly citations?: { readonly enabled?: boolean }
  readonly max_content_tokens?: number
}

type AnthropicComputer = AnthropicTool & {
  readonly display_width_px: number
  readonly display_height_px: number
  readonly display_number?: number
  readonly enable_zoom?: boolean
}

type AnthropicMcp = {
  readonly mcp_server_name: string
  readonly default_config?: AnthropicMcpTool
  /** By the name of the tool. */
  readonly configs?: Readonly<Record<string, AnthropicMcpTool>>
  readonly cache_control?: AnthropicTool['cache_control']
}

type AnthropicMcpTool = {
  readonly enabled?: boolean
  readonly defer_loading?: boolean
}

type Named<Name extends string, Type extends string, Options> = Typed<Type, Options> & {
  readonly name: Name
}

/**
 * Server tools of Anthropic's Messages API, in the versions that need no beta header, except `computerUse`
 * (`anthropic-beta: computer-use-2025-11-24`). Remote MCP servers are not tools there: see `params.mcp_servers`
 * and `mcp`, with `anthropic-beta: mcp-client-2025-11-20`.
 */
export const anthropicTools = {
  webSearch: (
    options: AnthropicWebSearch = {},
  ): Named<'web_search', 'web_search_20250305', AnthropicWebSearch> => ({
    type: 'web_search_20250305',
    name: 'web_search',
    ...options,
  }),
  webFetch: (
    options: AnthropicWebFetch = {},
  ): Named<'web_fetch', 'web_fetch_20250910', AnthropicWebFetch> => ({
    type: 'web_fetch_20250910',
    name: 'web_fetch',
    ...options,
  }),
  codeExecution: (
    options: AnthropicTool = {},
  ): Named<'code_execution', 'code_execution_20250825', AnthropicTool> => ({
    type: 'code_execution_20250825',
    name: 'code_execution',
    ...options,
  }),
  computerUse: (
    options: AnthropicComputer,
  ): Named<'computer', 'computer_20251124', AnthropicComputer> => ({
    type: 'computer_20251124',
    name: 'computer',
    ...options,
  }),
  mcp: (options: AnthropicMcp): Typed<'mcp_toolset', AnthropicMcp> => ({
    type: 'mcp_toolset',
    ...options,
  }),
} as const
