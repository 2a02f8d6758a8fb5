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
