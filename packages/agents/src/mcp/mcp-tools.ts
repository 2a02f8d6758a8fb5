import { decodeBase64, isPlainObject, type JsonObject, type JsonSchema } from '@skein/base'
import type { Tool, ToolContext, ToolRisk, UserContent } from '@skein/ai'
import { TOOL_RISKS } from '@skein/ai/engine'
import { invalidUse } from '../contract/agent-error.ts'

/** A tool of an MCP server: the fields used here, typed as in the official SDK. */
export interface McpTool {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly inputSchema: { readonly [name: string]: unknown }
  readonly annotations?: { readonly [name: string]: unknown } | undefined
}

/** A connected `Client` of `@modelcontextprotocol/sdk`, or a compatible object. */
export interface McpClient {
  listTools(
    params?: { cursor?: string },
    options?: McpRequestOptions,
  ): Promise<{ tools: readonly McpTool[]; nextCursor?: string | undefined }>
  /** Version 2 of the SDK takes the options as the second parameter. */
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    resultSchema?: undefined,
    options?: McpRequestOptions,
  ): Promise<unknown>
}

/** Options of one request to an MCP server. */
export interface McpRequestOptions {
  signal?: AbortSignal
  /** Milliseconds. */
  timeout?: number
  /** Called with the progress that the server reports. */
  onprogress?: (progress: McpProgress) => void
  /** Whether each report of progress starts `timeout` again. */
  resetTimeoutOnProgress?: boolean
  /** Milliseconds after which the request ends whatever progress it reports. */
  maxTotalTimeout?: number
}

/** The progress of a call, as its server reports it. */
export interface McpProgress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** A block in the result of an MCP tool. */
export type McpContent =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | {
      type: 'resource'
      resource:
        | { uri: string; mimeType?: string; text: string }
        | { uri: string; mimeType?: string; blob: string }
    }

/** The result of an MCP tool. It is mutable and allows extra fields, as in the SDK's types. */
export interface McpCallResult {
  [name: string]: unknown
  content: McpContent[]
  structuredContent?: { [name: string]: unknown }
  isError?: boolean
}

/** Options of `mcpTools`. */
export interface McpToolsOptions {
  /** Added before every tool name, e.g. `files_`, so that the names of two servers do not clash. */
  readonly prefix?: string
  /** Returns whether to use a tool. Default: all tools are used. */
  readonly include?: (tool: McpTool) => boolean
  /** Returns the `approval` of a tool; e.g. none for tools that the server marks as read-only. */
  readonly approval?: (tool: McpTool) => Tool['approval'] | undefined
  /**
   * Returns the risk of a tool, e.g. `({ name }) => (name === 'find_book' ? 'read_only' : undefined)`. Hints of the
   * server can only raise it. A tool without a risk counts as `write_high_risk` in a runtime, and a person approves
   * each call.
   */
  readonly risk?: (tool: McpTool) => ToolRisk | undefined
  /**
   * Whether the hints of the server (`readOnlyHint`, `destructiveHint`) decide about the risk of tools for which
   * `risk` returns none. Only for servers that you trust as your own code. Default false.
   */
  readonly trustsHints?: boolean
  /**
   * The time limit of a call in milliseconds. Each report of progress starts it again. Default: the limit of the
   * SDK's client, 60 seconds.
   */
  readonly timeoutMs?: number
  /** The time limit of a call in milliseconds that no progress extends. Default: one hour. */
  readonly maxTotalMs?: number
  /** The largest number of tools; a server that lists more is rejected. Default 1,000. */
  readonly maxTools?: number
}

/**
 * Returns the tools of an MCP server as tools of an agent. Descriptions and hints from a server are
 * untrusted: use only the tools you need (`include`), declare what they can do (`risk`), and outside a runtime ask for
 * approval before critical ones (`approval`).
 *
 *     const client = new Client({ name: 'my-app', version: '1.0.0' })
 *     await client.connect(transport)
 *     const coder = agent({ model, tools: await mcpTools(client) })
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<Tool[]> {
  const { include = () => true, prefix = '' } = options
  const serverTools = await listTools(client, options.maxTools ?? 1000)
  const usedNames = new Set<string>()
  return serverTools.filter(include).map((tool) => {
    // In the name of a tool, vendors accept letters, digits, `_` and `-`, at most 64 of them.
    const clean = `${prefix}${tool.name}`.replace(/[^\w-]/g, '_').slice(0, 64)
    let name = clean
    for (let count = 2; usedNames.has(name); count++) name = `${clean.slice(0, 60)}_${count}`
    usedNames.add(name)
    return toTool(client, tool, { ...options, name })
  })
}

async function listTools(client: McpClient, maxTools: number): Promise<readonly McpTool[]> {
  const tools: McpTool[] = []
  let cursor: string | undefined
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    tools.push(...page.tools)
    if (tools.length > maxTools || (page.tools.length === 0 && page.nextCursor !== undefined))
      throw invalidUse(`The MCP server lists more than ${maxTools} tools, or pages without end.`)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return tools
}

function toTool(
  client: McpClient,
  tool: McpTool,
  {
    name,
    approval,
    risk,
    trustsHints = false,
    timeoutMs,
    maxTotalMs = 3_600_000,
  }: McpToolsOptions & { readonly name: string },
): Tool {
  const { annotations } = tool
  // The cast is safe: the JSON copy of an object is an object again.
  const hints = annotations && (JSON.parse(JSON.stringify(annotations)) as JsonObject)
  return {
    name,
    description: tool.description ?? tool.title ?? tool.name,
    parameters: tool.inputSchema as JsonSchema, // not checked here; vendors check the schema
    approval: approval?.(tool),
    risk: riskOf(tool, risk?.(tool), trustsHints),
    metadata: { mcp: hints ? { name: tool.name, annotations: hints } : { name: tool.name } },
    async *run(params: JsonObject, { signal }: ToolContext) {
      const call = { name: tool.name, arguments: { ...params } }
      const answer = yield* withProgress((onprogress) =>
        callTool(client, call, {
          signal,
          onprogress,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: maxTotalMs,
          // The SDK's default time limit applies only if the field is absent.
          ...(timeoutMs !== undefined && { timeout: timeoutMs }),
        }),
      )
      return fromMcpResult(answer)
    },
  }
}

/**
 * Returns the risk of a tool: what the application says, or more if the server hints at more. Undefined if the
 * application says nothing, because a server could call anything harmless.
 */
function riskOf(
  { annotations }: McpTool,
  declared: ToolRisk | undefined,
  trustsHints: boolean,
): ToolRisk | undefined {
  const hint = hintedRisk(annotations)
  if (declared === undefined) return trustsHints ? hint : undefined
  const isMore = hint !== undefined && TOOL_RISKS.indexOf(hint) > TOOL_RISKS.indexOf(declared)
  return isMore && !trustsHints ? hint : declared
}

/** Returns the risk that the server's hints amount to; undefined if it gives none. */
function hintedRisk({ readOnlyHint, destructiveHint }: Hints = {}): ToolRisk | undefined {
  if (readOnlyHint === true) return 'read_only'
  if (destructiveHint === true) return 'write_high_risk'
  return destructiveHint === false || readOnlyHint === false ? 'write_low_risk' : undefined
}

type Hints = NonNullable<McpTool['annotations']>

function callTool(
  client: McpClient,
  call: Parameters<McpClient['callTool']>[0],
  options: McpRequestOptions,
): Promise<unknown> {
  // Version 2 of the SDK has no schema between the two; its method declares two parameters.
  type SecondVersion = (params: typeof call, options: McpRequestOptions) => Promise<unknown>
  if (client.callTool.length === 2)
    return (client.callTool as unknown as SecondVersion).call(client, call, options)
  return client.callTool(call, undefined, options)
}

/** How many reports of progress may wait to be read; older ones are left out. */
const MAX_REPORTS = 100

/** Starts a call, yields its progress while it runs, and returns its answer. */
async function* withProgress(
  start: (onprogress: (progress: McpProgress) => void) => Promise<unknown>,
): AsyncGenerator<McpProgress, unknown> {
  const reports: McpProgress[] = []
  let isOver = false
  let wake = (): void => {}
  const answer = start(({ progress, total, message }) => {
    if (isOver) return
    reports.push({ progress, total, message })
    if (reports.length > MAX_REPORTS) reports.shift()
    wake()
  })
  const end = (): void => {
    isOver = true
    wake()
  }
  answer.then(end, end)
  for (;;) {
    for (let next = reports.shift(); next; next = reports.shift()) yield next
    if (isOver) return await answer
    await new Promise<void>((resolve) => (wake = resolve))
  }
}

/**
 * Converts the result of an MCP tool: structured content or text stays unchanged, results with media become
 * content blocks. Throws if the server marked the result as an error.
 */
function fromMcpResult(answer: unknown): unknown {
  const result = isPlainObject(answer) ? answer : {}
  const blocks = Array.isArray(result['content']) ? result['content'].flatMap(toBlock) : []
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const text = texts.length === blocks.length ? texts.join('\n') : undefined
  if (result['isError'] === true) throw new Error(text || 'The tool failed and did not say why.')
  if (text === undefined) return blocks
  // A structured result repeats its data as text, for clients that support only text.
  return isPlainObject(result['structuredContent']) ? result['structuredContent'] : text
}

function toBlock(content: unknown): UserContent[] {
  if (!isPlainObject(content)) return []
  const { type, text, data, mimeType } = content
  switch (type) {
    case 'text':
      return [{ type, text: String(text) }]
    case 'image':
      return [{ type, source: { type: 'base64', data: String(data) }, mimeType: mime(mimeType) }]
    case 'audio':
      return [{ type, data: decodeBase64(String(data)), mimeType: mime(mimeType) }]
    case 'resource':
      return isPlainObject(content['resource']) ? [fromResource(content['resource'])] : []
    case 'resource_link':
      return [{ type: 'text', text: [content['name'], content['uri']].filter(Boolean).join(': ') }]
    default:
      return [{ type: 'text', text: JSON.stringify(content) }] // a block type of a newer protocol version
  }
}

function fromResource({ uri, text, blob, mimeType }: Record<string, unknown>): UserContent {
  if (typeof blob !== 'string') return { type: 'text', text: String(text ?? uri) }
  const kind = mime(mimeType)
  const source = { type: 'base64', data: blob } as const
  return kind.startsWith('image/')
    ? { type: 'image', source, mimeType: kind }
    : { type: 'document', source, mimeType: kind, title: String(uri) }
}

function mime(mimeType: unknown): string {
  return typeof mimeType === 'string' ? mimeType : 'application/octet-stream'
}
