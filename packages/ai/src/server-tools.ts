import type { JsonObject } from '@skein/base'

/**
 * Tools that vendors run on their own servers, as values of `params.tools`; the tools of `llm` may stand beside:
 *
 *     llm({ model: openai('gpt-5'), tools: [mine], params: { tools: [openaiTools.webSearch()] } })
 *
 * The names of options are the vendors' own. What the tools did is in the messages as native blocks, and their
 * number in `usage.serverToolUse` where the vendor counts them.
 */
export interface ServerTool extends JsonObject {}

/** A place from which a search is made. */
export interface SearchLocation extends JsonObject {
  readonly type: 'approximate'
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

/** Server tools of OpenAI's Responses. */
export const openaiTools = {
  webSearch: (
    options: {
      readonly search_context_size?: 'low' | 'medium' | 'high'
      readonly user_location?: SearchLocation
      readonly filters?: { readonly allowed_domains?: readonly string[] }
      readonly external_web_access?: boolean
    } = {},
  ): ServerTool => ({ type: 'web_search', ...options }),
  fileSearch: (options: {
    readonly vector_store_ids: readonly string[]
    readonly max_num_results?: number
    readonly ranking_options?: JsonObject
    readonly filters?: JsonObject
  }): ServerTool => ({ type: 'file_search', ...options }),
  codeInterpreter: (
    options: {
      readonly container?: string | { readonly type: 'auto'; readonly file_ids?: readonly string[] }
    } = {},
  ): ServerTool => ({ type: 'code_interpreter', container: { type: 'auto' }, ...options }),
  imageGeneration: (
    options: {
      readonly model?: string
      readonly size?: string
      readonly quality?: 'low' | 'medium' | 'high' | 'auto'
      readonly background?: 'transparent' | 'opaque' | 'auto'
      readonly output_format?: 'png' | 'jpeg' | 'webp'
      readonly partial_images?: number
    } = {},
  ): ServerTool => ({ type: 'image_generation', ...options }),
  computerUse: (options: {
    readonly display_width: number
    readonly display_height: number
    readonly environment: 'windows' | 'mac' | 'linux' | 'ubuntu' | 'browser'
  }): ServerTool => ({ type: 'computer_use_preview', ...options }),
  mcp: (options: OpenAIMcp): ServerTool => ({ type: 'mcp', ...options }),
} as const

/** A remote MCP server, or one of OpenAI's connectors. */
export interface OpenAIMcp {
  readonly server_label: string
  readonly server_url?: string
  readonly connector_id?: string
  readonly server_description?: string
  readonly authorization?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly allowed_tools?: readonly string[]
  readonly require_approval?: 'always' | 'never'
}

/** Options that Anthropic's web tools share. */
export interface AnthropicWebOptions {
  readonly max_uses?: number
  readonly allowed_domains?: readonly string[]
  readonly blocked_domains?: readonly string[]
  readonly cache_control?: JsonObject
}

/**
 * Server tools of Anthropic's Messages API, in the versions that need no beta header, except `computerUse`
 * (`anthropic-beta: computer-use-2025-11-24`). Remote MCP servers are not tools there: see `params.mcp_servers`
 * and `mcp`, with `anthropic-beta: mcp-client-2025-11-20`.
 */
export const anthropicTools = {
  webSearch: (
    options: AnthropicWebOptions & { readonly user_location?: SearchLocation } = {},
  ): ServerTool => ({
    type: 'web_search_20250305',
    name: 'web_search',
    ...options,
  }),
  webFetch: (
    options: AnthropicWebOptions & {
      readonly citations?: { readonly enabled: boolean }
      readonly max_content_tokens?: number
    } = {},
  ): ServerTool => ({ type: 'web_fetch_20250910', name: 'web_fetch', ...options }),
  codeExecution: (options: { readonly cache_control?: JsonObject } = {}): ServerTool => ({
    type: 'code_execution_20250825',
    name: 'code_execution',
    ...options,
  }),
  computerUse: (options: {
    readonly display_width_px: number
    readonly display_height_px: number
    readonly display_number?: number
    readonly enable_zoom?: boolean
  }): ServerTool => ({ type: 'computer_20251124', name: 'computer', ...options }),
  mcp: (options: {
    readonly mcp_server_name: string
    readonly default_config?: JsonObject
    readonly configs?: JsonObject
  }): ServerTool => ({ type: 'mcp_toolset', ...options }),
} as const

/** Server tools of Google's Gemini API. */
export const googleTools = {
  webSearch: (
    options: {
      readonly timeRangeFilter?: { readonly startTime: string; readonly endTime: string }
    } = {},
  ): ServerTool => ({
    googleSearch: options,
  }),
  webFetch: (): ServerTool => ({ urlContext: {} }),
  codeExecution: (): ServerTool => ({ codeExecution: {} }),
  maps: (options: { readonly enableWidget?: boolean } = {}): ServerTool => ({
    googleMaps: options,
  }),
  fileSearch: (options: {
    readonly fileSearchStoreNames: readonly string[]
    readonly metadataFilter?: string
    readonly topK?: number
  }): ServerTool => ({ fileSearch: options }),
  computerUse: (options: {
    readonly environment: 'ENVIRONMENT_BROWSER'
    readonly excludedPredefinedFunctions?: readonly string[]
  }): ServerTool => ({ computerUse: options }),
} as const

/** Server tools of xAI's Responses: `xai('grok-4', { api: 'responses' })`. */
export const xaiTools = {
  webSearch: (
    options: {
      readonly filters?: {
        readonly allowed_domains?: readonly string[]
        readonly excluded_domains?: readonly string[]
      }
      readonly enable_image_understanding?: boolean
    } = {},
  ): ServerTool => ({ type: 'web_search', ...options }),
  xSearch: (
    options: {
      readonly allowed_x_handles?: readonly string[]
      readonly excluded_x_handles?: readonly string[]
      readonly from_date?: string
      readonly to_date?: string
      readonly enable_image_understanding?: boolean
      readonly enable_video_understanding?: boolean
    } = {},
  ): ServerTool => ({ type: 'x_search', ...options }),
  codeExecution: (): ServerTool => ({ type: 'code_interpreter' }),
  fileSearch: (options: {
    readonly vector_store_ids: readonly string[]
    readonly max_num_results?: number
  }): ServerTool => ({ type: 'file_search', ...options }),
  mcp: (options: {
    readonly server_label: string
    readonly server_url: string
    readonly server_description?: string
    readonly authorization?: string
    readonly allowed_tools?: readonly string[]
    readonly headers?: Readonly<Record<string, string>>
  }): ServerTool => ({ type: 'mcp', ...options }),
} as const
