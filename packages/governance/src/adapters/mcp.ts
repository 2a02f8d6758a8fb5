import type { JsonSchema, JsonValue } from '@skein/base'
import { isAtLeast, type Risk, RISKS } from '../contract/envelope.ts'
import { governed } from '../contract/governed.ts'
import type { Governance, GovernedContext, GovernedTool, PlainTool } from '../contract/governed.ts'
import { GovernanceError, reason } from '../contract/reason.ts'

/** The part of an MCP client (`@modelcontextprotocol/sdk`) that is used here. */
interface McpToolClient {
  listTools(params?: { cursor?: string }): Promise<{
    readonly tools: readonly McpTool[]
    readonly nextCursor?: string | undefined
  }>
  callTool(
    params: { name: string; arguments: Record<string, unknown> },
    resultSchema?: undefined,
    options?: { signal?: AbortSignal },
  ): Promise<unknown>
}

interface McpTool {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: unknown
  readonly annotations?:
    | {
        readonly readOnlyHint?: boolean | undefined
        readonly destructiveHint?: boolean | undefined
      }
    | undefined
}

/** Your declarations about the server's tools, by name. A run cannot use a tool that is not listed. */
type McpGovernance = Readonly<Record<string, Governance<Record<string, JsonValue>, JsonValue>>>

/**
 * Wraps the tools of an MCP server, to be listed in a task class. You declare the risk of each tool; the
 * server's own hints can raise it but never lower it. Throws if the server does not have a tool that you
 * named.
 *
 *     const tools = await governedMcpTools(client, { search: { risk: 'read_only' } })
 */
export async function governedMcpTools(
  client: McpToolClient,
  governance: McpGovernance,
): Promise<GovernedTool<Record<string, JsonValue>, JsonValue>[]> {
  const serverTools = await listAll(client)
  const missing = Object.keys(governance).filter((name) => !serverTools.has(name))
  if (missing.length > 0) {
    throw new GovernanceError(
      `The MCP server has no tool ${missing.map((name) => `"${name}"`).join(', ')}.`,
      [reason('TOOL_UNKNOWN', missing[0])],
      { hint: 'Check the names in the table given to governedMcpTools.' },
    )
  }
  return Object.entries(governance).map(([name, own]) => {
    const tool = serverTools.get(name)!
    const plain: PlainTool<Record<string, JsonValue>, JsonValue> = {
      name,
      description: tool.description ?? '',
      parameters: tool.inputSchema as JsonSchema,
      run: async (args, { signal }: GovernedContext) => {
        const result = await client.callTool({ name, arguments: args }, undefined, { signal })
        return resultOfMcp(name, result as McpResult)
      },
    }
    return governed(plain, { ...own, risk: raised(own.risk, tool) })
  })
}

async function listAll(client: McpToolClient): Promise<Map<string, McpTool>> {
  const byName = new Map<string, McpTool>()
  let cursor: string | undefined
  // The number of pages is limited, because a faulty server could return a next page forever.
  for (let page = 0; page < 1000; page++) {
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor })
    for (const tool of tools) byName.set(tool.name, tool)
    if (nextCursor === undefined) break
    cursor = nextCursor
  }
  return byName
}

/**
 * Raises the declared risk according to the server's hints. Only hints that the server sent are used,
 * because the protocol's defaults would make every tool destructive.
 */
function raised(risk: Risk, { annotations = {} }: McpTool): Risk {
  const { readOnlyHint, destructiveHint } = annotations
  const riskOfHints: Risk =
    destructiveHint === true && readOnlyHint !== true
      ? 'write_high_risk'
      : readOnlyHint === false
        ? 'write_low_risk'
        : 'read_only'
  // A risk that is missing or misspelt is returned unchanged, so that `governed` refuses it.
  return !RISKS.includes(risk) || isAtLeast(risk, riskOfHints) ? risk : riskOfHints
}

interface McpResult {
  readonly isError?: boolean
  readonly structuredContent?: JsonValue
  readonly content?: readonly { readonly type: string; readonly text?: string }[]
}

/**
 * Returns the structured content of a result, or else its single text, or else all its content. Throws if
 * the result reports an error.
 */
function resultOfMcp(
  name: string,
  { isError, structuredContent, content = [] }: McpResult,
): JsonValue {
  const texts = content.flatMap(({ type, text }) =>
    type === 'text' && text !== undefined ? [text] : [],
  )
  if (isError === true) throw new Error(`The MCP tool "${name}" failed: ${texts.join('\n')}`)
  return (
    structuredContent ??
    (content.length === 1 && texts.length === 1
      ? texts[0]!
      : ([...content] as unknown as JsonValue))
  )
}
