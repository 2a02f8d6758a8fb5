// Tools that vendors run on their own servers, as values of `params.tools`. They can be combined with tools of your
// own, which are in the option `tools` of `llm`:
//
//     llm({ model: openai('gpt-5'), tools: [mine], params: { tools: [openaiTools.webSearch()] } })
//
// The names of options are the vendors' own; a type test compares them with the SDKs. The calls and results of these
// tools are in the messages as native blocks; `usage.serverToolUse` counts them where the vendor does.

/** A place from which a search is made. */
type SearchLocation = {
  readonly type: 'approximate'
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

type OpenAIWebSearch = {
  readonly search_context_size?: 'low' | 'medium' | 'high'
  readonly user_location?: SearchLocation
  readonly filters?: { readonly allowed_domains?: readonly string[] }
  readonly external_web_access?: boolean
}

type OpenAIFileSearch = {
  readonly vector_store_ids: readonly string[]
  readonly max_num_results?: number
  readonly ranking_options?: {
    readonly ranker?: 'auto' | 'default-2024-11-15'
    readonly score_threshold?: number
    readonly hybrid_search?: { readonly embedding_weight: number; readonly text_weight: number }
  }
  readonly filters?: OpenAIComparison | OpenAICompound
}

type OpenAIComparison = {
  readonly type: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte' | 'in' | 'nin'
  readonly key: string
  readonly value: string | number | boolean | readonly (string | number)[]
}

type OpenAICompound = {
  readonly type: 'and' | 'or'
  readonly filters: readonly (OpenAIComparison | OpenAICompound)[]
}

type OpenAIContainer = {
  readonly type: 'auto'
  readonly file_ids?: readonly string[]
  readonly memory_limit?: '1g' | '4g' | '16g' | '64g'
  readonly network_policy?:
    | { readonly type: 'disabled' }
    | {
        readonly type: 'allowlist'
        readonly allowed_domains: readonly string[]
        readonly domain_secrets?: readonly {
          readonly domain: string
          readonly name: string
          readonly value: string
        }[]
      }
}

type OpenAIImageGeneration = {
  readonly action?: 'generate' | 'edit' | 'auto'
  readonly background?: 'transparent' | 'opaque' | 'auto'
  readonly input_fidelity?: 'high' | 'low'
  readonly input_image_mask?: { readonly file_id?: string; readonly image_url?: string }
  readonly model?: string
  readonly moderation?: 'auto' | 'low'
  readonly output_compression?: number
  readonly output_format?: 'png' | 'webp' | 'jpeg' | 'gif' | 'svg'
  readonly partial_images?: number
  readonly quality?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | 'auto'
  readonly size?: string
}

type OpenAIComputerPreview = {
  readonly display_width: number
  readonly display_height: number
  readonly environment: 'windows' | 'mac' | 'linux' | 'ubuntu' | 'browser'
}

/** A remote MCP server, or one of OpenAI's connectors. */
type OpenAIMcp = {
  readonly server_label: string
  readonly server_url?: string
  readonly connector_id?:
    | 'connector_dropbox'
    | 'connector_gmail'
    | 'connector_googlecalendar'
    | 'connector_googledrive'
    | 'connector_microsoftteams'
    | 'connector_outlookcalendar'
    | 'connector_outlookemail'
    | 'connector_sharepoint'
  readonly tunnel_id?: string
  readonly server_description?: string
  readonly authorization?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly allowed_tools?: readonly string[] | McpFilter
  readonly require_approval?:
    'always' | 'never' | { readonly always?: McpFilter; readonly never?: McpFilter }
  readonly defer_loading?: boolean
}

type McpFilter = {
  readonly read_only?: boolean
  readonly tool_names?: readonly string[]
}

type Typed<Type extends string, Options = object> = { readonly type: Type } & Options

/** Server tools of OpenAI's Responses. */
export const openaiTools = {
  webSearch: (options: OpenAIWebSearch = {}): Typed<'web_search', OpenAIWebSearch> => ({
    type: 'web_search',
    ...options,
  }),
  fileSearch: (options: OpenAIFileSearch): Typed<'file_search', OpenAIFileSearch> => ({
    type: 'file_search',
    ...options,
  }),
  codeInterpreter: (
    options: { readonly container?: string | OpenAIContainer } = {},
  ): Typed<'code_interpreter', { readonly container: string | OpenAIContainer }> => ({
    type: 'code_interpreter',
    container: options.container ?? { type: 'auto' },
  }),
  imageGeneration: (
    options: OpenAIImageGeneration = {},
  ): Typed<'image_generation', OpenAIImageGeneration> => ({
    type: 'image_generation',
    ...options,
  }),
  /** For models with computer use. The size of the screen is that of the screenshots that you send back. */
  computer: (): Typed<'computer'> => ({ type: 'computer' }),
  /** Of the model `computer-use-preview`. */
  computerUse: (
    options: OpenAIComputerPreview,
  ): Typed<'computer_use_preview', OpenAIComputerPreview> => ({
    type: 'computer_use_preview',
    ...options,
  }),
  mcp: (options: OpenAIMcp): Typed<'mcp', OpenAIMcp> => ({ type: 'mcp', ...options }),
} as const

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

type GoogleSearch = {
  readonly searchTypes?: { readonly webSearch?: object; readonly imageSearch?: object }
  readonly timeRangeFilter?: { readonly startTime: string; readonly endTime: string }
}

type GoogleFileSearch = {
  readonly fileSearchStoreNames: readonly string[]
  readonly metadataFilter?: string
  readonly topK?: number
}

type GoogleComputer = {
  readonly environment: 'ENVIRONMENT_BROWSER' | 'ENVIRONMENT_MOBILE' | 'ENVIRONMENT_DESKTOP'
  readonly excludedPredefinedFunctions?: readonly string[]
  readonly enablePromptInjectionDetection?: boolean
}

type GoogleMcp = {
  readonly name: string
  readonly streamableHttpTransport: {
    readonly url: string
    readonly headers?: Readonly<Record<string, string>>
    /** A duration such as `30s`. */
    readonly timeout?: string
    readonly sseReadTimeout?: string
    readonly terminateOnClose?: boolean
  }
}

/** Server tools of Google's Gemini API. */
export const googleTools = {
  webSearch: (options: GoogleSearch = {}): { readonly googleSearch: GoogleSearch } => ({
    googleSearch: options,
  }),
  webFetch: (): { readonly urlContext: object } => ({ urlContext: {} }),
  codeExecution: (): { readonly codeExecution: object } => ({ codeExecution: {} }),
  maps: (
    options: { readonly enableWidget?: boolean } = {},
  ): { readonly googleMaps: { readonly enableWidget?: boolean } } => ({ googleMaps: options }),
  fileSearch: (options: GoogleFileSearch): { readonly fileSearch: GoogleFileSearch } => ({
    fileSearch: options,
  }),
  computerUse: (options: GoogleComputer): { readonly computerUse: GoogleComputer } => ({
    computerUse: options,
  }),
  mcp: (...servers: readonly GoogleMcp[]): { readonly mcpServers: readonly GoogleMcp[] } => ({
    mcpServers: servers,
  }),
} as const

export { openrouterTools, xaiTools } from './server-tools-xai.ts'
