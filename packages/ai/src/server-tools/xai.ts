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
