/** The parts of the Model Context Protocol that are used here, as its official SDK has them. */
export interface McpTool {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly inputSchema: { readonly [name: string]: unknown }
  readonly annotations?: { readonly [name: string]: unknown } | undefined
}

/** `Client` of `@modelcontextprotocol/sdk`, connected; or anything like it. */
export interface McpClient {
  listTools(
    params?: { cursor?: string },
    options?: McpRequestOptions,
  ): Promise<{ tools: readonly McpTool[]; nextCursor?: string | undefined }>
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    resultSchema?: undefined,
    options?: McpRequestOptions,
  ): Promise<unknown>
}

export interface McpRequestOptions {
  signal?: AbortSignal
  /** Milliseconds. */
  timeout?: number
}

export type McpContent =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | {
      type: 'resource'
      resource:
        | { uri: string; mimeType?: string; text: string }
        | { uri: string; mimeType?: string; blob: string }
    }

/** Mutable and open, because that is how the SDK types a result. */
export interface McpCallResult {
  [name: string]: unknown
  content: McpContent[]
  structuredContent?: { [name: string]: unknown }
  isError?: boolean
}
