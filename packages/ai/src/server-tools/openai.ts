/** A place from which a search is made. */
type SearchLocation = {
  readonly type: 'approximate'
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

type Typed<Type extends string, Options = object> = { readonly type: Type } & Options

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
