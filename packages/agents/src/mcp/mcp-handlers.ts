import { executeTools, type Tool, UPPError, type UserContent } from '@skein/ai'
import { contentOf } from '@skein/ai/engine'
import {
  encodeBase64,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  messageOf,
  systemClock,
} from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { Agent } from '../contract/agent-types.ts'
import { unfinishedRun } from '../contract/unfinished-run.ts'
import { AgentState } from '../state/state.ts'
import { drain } from '../step/live-events.ts'
import type { McpCallResult, McpContent, McpTool } from './mcp-tools.ts'

/**
 * An agent that an MCP server offers as a tool. All fields are explicit,
 * none is derived from the agent (UAP §2.6).
 */
export interface ServedAgent {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly agent: Agent
  /** Makes the agent's prompt from the client's arguments, which have not been validated. */
  readonly prompt: (args: JsonObject) => string
}

/** The agents and tools that an MCP server offers. */
export interface McpHandlersOptions {
  readonly agents?: readonly ServedAgent[]
  readonly tools?: readonly Tool[]
}

/** The part of the SDK's second handler argument that is used here. */
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

/** The handlers of an MCP server's two tool requests. */
export interface McpHandlers {
  listTools(): { [name: string]: unknown; tools: ServedTool[] }
  callTool(request: McpCallRequest, extra: McpExtra): Promise<McpCallResult>
}

/** A tool as the SDK's types require it, with `type: 'object'` in its schema. */
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
 * Each call of an agent is a run from an empty state. Its steps are sent as progress notifications;
 * cancelling the request aborts the run.
 */
export function mcpHandlers({ agents = [], tools = [] }: McpHandlersOptions): McpHandlers {
  const entries = [...agents, ...tools]
  const names = entries.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw invalidUse(`Two of the served agents and tools are named "${twice}".`)
  return {
    listTools: () => ({
      tools: entries.map(({ name, description, parameters }) => {
        const schema = isPlainObject(parameters) ? parameters : {}
        return { name, description, inputSchema: { ...schema, type: 'object' } }
      }),
    }),
    async callTool({ params }, extra) {
      const { name, arguments: given = {} } = params
      const args = given as JsonObject // the client sent the arguments as JSON
      const servedAgent = agents.find((one) => one.name === name)
      try {
        if (servedAgent) return await runAgent(servedAgent, args, { params, extra })
        if (!tools.some((tool) => tool.name === name))
          return toMcpError(`There is no tool "${name}".`)
        return await runTool(tools, { name, args }, extra)
      } catch (error) {
        // Only the message of a `UPPError` is certain to contain no secrets or internal details.
        return toMcpError(error instanceof UPPError ? messageOf(error) : 'The agent failed.')
      }
    },
  }
}

async function runAgent(
  { name, agent, prompt }: ServedAgent,
  args: JsonObject,
  { params, extra }: { readonly params: McpCallRequest['params']; readonly extra: McpExtra },
): Promise<McpCallResult> {
  const progressToken = params._meta?.progressToken
  const answer = agent.stream(prompt(args), AgentState.initial(), { signal: extra.signal })
  for await (const { uap } of answer) {
    if (uap?.type !== 'step_start' || progressToken === undefined) continue
    const progress = { progressToken, progress: uap.step, message: `Step ${uap.step}` }
    // A failed notification does not stop the run; only the request's signal does.
    await extra
      .sendNotification?.({ method: 'notifications/progress', params: progress })
      .catch(() => {})
  }
  const { turn, interrupts, stopReason } = await answer.result
  if (interrupts) return toMcpError(`The agent waits for ${interrupts.length} answer(s).`)
  const { text } = turn.response
  const failure = unfinishedRun(`The agent "${name}"`, stopReason, text)
  if (failure) return toMcpError(failure.message)
  const content = [{ type: 'text' as const, text }]
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
    case 'unknown':
      return toMcpError(outcome.message)
    case 'denied':
      return toMcpError(outcome.reason)
    case 'deferred':
    case undefined:
      return toMcpError('The call waits for an answer that this server cannot give.')
  }
}

function toMcpError(message: string): McpCallResult {
  return { content: [{ type: 'text', text: message }], isError: true }
}

/**
 * Converts a tool's result for an MCP client: content blocks become MCP content; an object is sent as text
 * and as structured content.
 */
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

/**
 * Returns content as an MCP resource. MCP requires a URI, but the content has none, so the URI only names the
 * media type.
 */
function toResource(blob: string, mimeType: string): McpContent {
  return { type: 'resource', resource: { uri: `data:${mimeType}`, mimeType, blob } }
}
