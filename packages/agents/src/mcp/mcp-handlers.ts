import {
  encodeBase64,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  messageOf,
  systemClock,
} from '@skein/base'
import { contentOf, executeTools, type Tool, UPPError, type UserContent } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type { Agent } from '../contract/agent-types.ts'
import { AgentState } from '../state/state.ts'
import { drain } from '../step/live-events.ts'
import type { McpCallResult, McpContent, McpTool } from './mcp-tools.ts'

/** An agent as one tool of an MCP server. Its interface is written out, never derived (UAP §2.6). */
export interface ServedAgent {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly agent: Agent
  /** What the agent is asked, made from the client's arguments, which nobody has checked. */
  readonly prompt: (args: JsonObject) => string
}

/** What an MCP server offers. */
export interface McpHandlersOptions {
  readonly agents?: readonly ServedAgent[]
  readonly tools?: readonly Tool[]
}

/** The second argument that the SDK passes to a handler, as far as it is used. */
export interface McpExtra {
  readonly signal: AbortSignal
  readonly requestId?: string | number
  sendNotification?(notification: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; message: string }
  }): Promise<void>
}

/** A client's request to call a tool. */
export interface McpCallRequest {
  readonly params: {
    readonly name: string
    readonly arguments?: Record<string, unknown> | undefined
    readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined
  }
}

/** The handlers of an MCP server's two requests about tools. */
export interface McpHandlers {
  listTools(): { [name: string]: unknown; tools: ServedTool[] }
  callTool(request: McpCallRequest, extra: McpExtra): Promise<McpCallResult>
}

/** A tool as the SDK's types demand it: with `type: 'object'` written out. */
export interface ServedTool extends McpTool {
  inputSchema: { type: 'object'; [name: string]: unknown }
  description: string
  title?: string
  annotations?: { [name: string]: unknown }
}

/**
 * Serves agents and tools through a `Server` of `@modelcontextprotocol/sdk`:
 *
 *     const server = new Server({ name: 'my-app', version: '1.0.0' }, { capabilities: { tools: {} } })
 *     const handlers = mcpHandlers({ agents: [{ name, description, parameters, agent, prompt }] })
 *     server.setRequestHandler(ListToolsRequestSchema, handlers.listTools)
 *     server.setRequestHandler(CallToolRequestSchema, handlers.callTool)
 *
 * Each call of an agent is a run from an empty state. Its steps are sent as progress notifications; a
 * cancelled request aborts the run.
 */
export function mcpHandlers({ agents = [], tools = [] }: McpHandlersOptions): McpHandlers {
  const served = [...agents, ...tools]
  const names = served.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw invalidUse(`Two of the served agents and tools are named "${twice}".`)
  return {
    listTools: () => ({
      tools: served.map(({ name, description, parameters }) => {
        const schema = isPlainObject(parameters) ? parameters : {}
        return { name, description, inputSchema: { ...schema, type: 'object' } }
      }),
    }),
    async callTool({ params }, extra) {
      const { name, arguments: given = {} } = params
      const args = given as JsonObject // it came as JSON
      const found = agents.find((one) => one.name === name)
      try {
        if (found) return await runAgent(found, args, { params, extra })
        if (!tools.some((tool) => tool.name === name))
          return toMcpError(`There is no tool "${name}".`)
        return await runTool(tools, { name, args }, extra)
      } catch (error) {
        // Only our own errors are known to hold no secrets and no internals.
        return toMcpError(error instanceof UPPError ? messageOf(error) : 'The agent failed.')
      }
    },
  }
}

async function runAgent(
  { agent, prompt }: ServedAgent,
  args: JsonObject,
  { params, extra }: { readonly params: McpCallRequest['params']; readonly extra: McpExtra },
): Promise<McpCallResult> {
  const progressToken = params._meta?.progressToken
  const run = agent.stream(prompt(args), AgentState.initial(), { signal: extra.signal })
  for await (const { uap } of run) {
    if (uap?.type !== 'step_start' || progressToken === undefined) continue
    const progress = { progressToken, progress: uap.step, message: `Step ${uap.step}` }
    // A client that is gone does not stop the run; its signal does.
    await extra
      .sendNotification?.({ method: 'notifications/progress', params: progress })
      .catch(() => {})
  }
  const { turn, interrupts } = await run.result
  if (interrupts) return toMcpError(`The agent waits for ${interrupts.length} answer(s).`)
  const content = [{ type: 'text' as const, text: turn.response.text }]
  return isPlainObject(turn.data) ? { content, structuredContent: turn.data } : { content }
}

async function runTool(
  tools: readonly Tool[],
  { name, args }: { readonly name: string; readonly args: JsonObject },
  { signal, requestId = name }: McpExtra,
): Promise<McpCallResult> {
  const call = { toolCallId: String(requestId), toolName: name, arguments: args }
  const { settled } = await drain(
    executeTools({ calls: [call], tools, signal, clock: systemClock }),
  )
  const outcome = settled[0]?.outcome
  switch (outcome?.type) {
    case 'done':
      return toMcpResult(outcome.result)
    case 'error':
      return toMcpError(outcome.message)
    case 'denied':
      return toMcpError(outcome.reason)
    default:
      return toMcpError('The call waits for an answer that this server cannot give.')
  }
}

function toMcpError(message: string): McpCallResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}

/** A tool's result for an MCP client: blocks as blocks, objects also as structured content. */
function toMcpResult(result: unknown): McpCallResult {
  const blocks = contentOf(result)
  if (blocks.length > 0) return { content: blocks.map(toContent) }
  const text = typeof result === 'string' ? result : JSON.stringify(result)
  const content: McpContent[] = [{ type: 'text', text }]
  return isPlainObject(result) ? { content, structuredContent: result } : { content }
}

function toContent(block: UserContent): McpContent {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
    case 'document': {
      const { source, mimeType } = block
      if (source.type === 'url') return { type: 'text', text: source.url }
      if (source.type === 'text') return { type: 'text', text: source.data }
      const data = source.type === 'bytes' ? encodeBase64(source.data) : source.data
      if (block.type === 'image') return { type: 'image', data, mimeType }
      return toResource(data, mimeType)
    }
    case 'audio':
      return { type: 'audio', data: encodeBase64(block.data), mimeType: block.mimeType }
    default:
      return toResource(encodeBase64(block.data), block.mimeType)
  }
}

/** A resource. MCP demands an address; this one has only content, so the address names its type. */
function toResource(blob: string, mimeType: string): McpContent {
  return { type: 'resource', resource: { uri: `data:${mimeType}`, mimeType, blob } }
}
