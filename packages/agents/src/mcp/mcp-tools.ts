import type { JsonObject, JsonSchema } from '@skein/base'
import type { Tool, ToolContext } from '@skein/ai'
import { invalidRequest } from '../agent-error.ts'
import { fromMcpResult } from './from-mcp-result.ts'
import type { McpClient, McpTool } from './mcp-types.ts'

export interface McpToolsOptions {
  /** Before every name, e.g. `files_`, so that two servers do not clash. */
  readonly prefix?: string
  /** Which tools to take. Default: all. */
  readonly include?: (tool: McpTool) => boolean
  /** As for any tool; e.g. only those that their server calls read-only run unasked. */
  readonly approval?: (tool: McpTool) => Tool['approval'] | undefined
  /** Longest call in milliseconds. Default: the client's, 60 seconds. */
  readonly timeoutMs?: number
  /** A server that lists more than this is refused. Default 1,000. */
  readonly maxTools?: number
}

/**
 * The tools of an MCP server as tools of an agent. What it says about itself is not to be trusted:
 * take only what you need (`include`), and ask before what matters (`approval`).
 *
 *     const client = new Client({ name: 'my-app', version: '1.0.0' })
 *     await client.connect(transport)
 *     const coder = agent({ model, tools: await mcpTools(client) })
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<Tool[]> {
  const { include = () => true } = options
  const names = new Set<string>()
  const listed = await listTools(client, options.maxTools ?? 1000)
  return listed
    .filter(include)
    .map((tool) => toTool(client, tool, { ...options, name: freeName(tool, options, names) }))
}

async function listTools(client: McpClient, maxTools: number): Promise<readonly McpTool[]> {
  const tools: McpTool[] = []
  let cursor: string | undefined
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    tools.push(...page.tools)
    if (tools.length > maxTools || (page.tools.length === 0 && page.nextCursor !== undefined))
      throw invalidRequest(`The MCP server lists more than ${maxTools} tools, or has no end.`)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return tools
}

/** Vendors take letters, digits, `_` and `-`, 64 of them. */
function freeName({ name }: McpTool, { prefix = '' }: McpToolsOptions, taken: Set<string>): string {
  const clean = `${prefix}${name}`.replace(/[^\w-]/g, '_').slice(0, 64)
  let free = clean
  for (let count = 2; taken.has(free); count++) free = `${clean.slice(0, 60)}_${count}`
  taken.add(free)
  return free
}

function toTool(
  client: McpClient,
  tool: McpTool,
  { name, approval, timeoutMs }: McpToolsOptions & { readonly name: string },
): Tool {
  const asks = approval?.(tool)
  return {
    name,
    description: tool.description ?? tool.title ?? tool.name,
    parameters: tool.inputSchema as JsonSchema, // its form is the server's word; vendors check it
    ...(asks && { approval: asks }),
    metadata: { mcp: { name: tool.name, ...(tool.annotations && hints(tool)) } },
    async run(params: JsonObject, { signal }: ToolContext) {
      const answer = await client.callTool(
        { name: tool.name, arguments: { ...params } },
        undefined,
        { signal, ...(timeoutMs !== undefined && { timeout: timeoutMs }) },
      )
      return fromMcpResult(answer)
    },
  }
}

function hints({ annotations = {} }: McpTool): { annotations: JsonObject } {
  return { annotations: JSON.parse(JSON.stringify(annotations)) as JsonObject } // an object stays one
}
