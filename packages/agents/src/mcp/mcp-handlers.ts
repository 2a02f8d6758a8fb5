import { isPlainObject, systemClock, type JsonObject, type JsonSchema } from '@skein/base'
import { executeTools, UPPError, type Tool, type ToolOutcome } from '@skein/ai'
import { invalidRequest, messageOf } from '../agent-error.ts'
import type { Agent } from '../agent.ts'
import { AgentState } from '../state.ts'
import type { McpCallResult, McpTool } from './mcp-types.ts'
import { toMcpError, toMcpResult } from './to-mcp-result.ts'

/** An agent as one tool of an MCP server. Its interface is written down, never guessed (UAP §2.6). */
export interface ServedAgent {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly agent: Agent
  /** What the agent is asked, from the client's arguments, which nobody has checked. */
  readonly prompt: (args: JsonObject) => string
}

export interface McpHandlersOptions {
  readonly agents?: readonly ServedAgent[]
  readonly tools?: readonly Tool[]
}

/** What the SDK gives to a handler beside the request, as far as it is used. */
export interface McpExtra {
  readonly signal: AbortSignal
  readonly requestId?: string | number
  sendNotification?(notification: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; message: string }
  }): Promise<void>
}

export interface McpCallRequest {
  readonly params: {
    readonly name: string
    readonly arguments?: Record<string, unknown> | undefined
    readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined
  }
}

export interface McpHandlers {
  listTools(): { [name: string]: unknown; tools: ServedTool[] }
  callTool(request: McpCallRequest, extra: McpExtra): Promise<McpCallResult>
}

/** What the SDK's types ask for: `type: 'object'` written out. */
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
 * Each call of an agent is a run from an empty state. Its steps are told as progress, a cancelled
 * request aborts it.
 */
export function mcpHandlers({ agents = [], tools = [] }: McpHandlersOptions): McpHandlers {
  checkNames([...agents, ...tools])
  return {
    listTools: () => ({ tools: [...agents, ...tools].map(toServedTool) }),
    async callTool({ params }, extra) {
      const { name, arguments: given = {}, _meta } = params
      const args = given as JsonObject // it came as JSON
      const served = agents.find((one) => one.name === name)
      if (served) return runAgent(served, args, { extra, progressToken: _meta?.progressToken })
      if (tools.some((tool) => tool.name === name)) return runTool(tools, { name, args }, extra)
      return toMcpError(`There is no tool "${name}".`)
    },
  }
}

function checkNames(served: readonly { readonly name: string }[]): void {
  const names = served.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalidRequest(`Two things are served as "${twice}".`)
}

function toServedTool({ name, description, parameters }: ServedAgent | Tool): ServedTool {
  const schema = isPlainObject(parameters) ? parameters : {}
  return { name, description, inputSchema: { ...schema, type: 'object' } }
}

async function runAgent(
  { agent, prompt }: ServedAgent,
  args: JsonObject,
  { extra, progressToken }: { extra: McpExtra; progressToken: string | number | undefined },
): Promise<McpCallResult> {
  try {
    const run = agent.stream(prompt(args), AgentState.initial(), { signal: extra.signal })
    for await (const event of run)
      if (event.uap?.type === 'step_start' && progressToken !== undefined) {
        const { step } = event.uap
        await tellProgress(extra, { progressToken, progress: step, message: `Step ${step}` })
      }
    const { turn, interrupts } = await run.result
    if (interrupts) return toMcpError(`The agent waits for ${interrupts.length} answer(s).`)
    const { text } = turn.response
    const content = [{ type: 'text' as const, text }]
    return isPlainObject(turn.data) ? { content, structuredContent: turn.data } : { content }
  } catch (error) {
    return toMcpError(publicMessage(error))
  }
}

/** A client that is gone does not stop the run; its signal does. */
async function tellProgress(
  extra: McpExtra,
  params: { progressToken: string | number; progress: number; message: string },
): Promise<void> {
  await extra.sendNotification?.({ method: 'notifications/progress', params }).catch(() => {})
}

async function runTool(
  tools: readonly Tool[],
  { name, args }: { name: string; args: JsonObject },
  { signal, requestId = name }: McpExtra,
): Promise<McpCallResult> {
  const call = { toolCallId: String(requestId), toolName: name, arguments: args }
  const run = executeTools({ calls: [call], tools, signal, clock: systemClock })
  try {
    for (;;) {
      const step = await run.next()
      if (step.done) return fromOutcome(step.value.settled[0]?.outcome)
    }
  } catch (error) {
    return toMcpError(publicMessage(error))
  }
}

function fromOutcome(outcome: ToolOutcome | undefined): McpCallResult {
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

/** Only our own errors are known to hold no secret and no inside. */
function publicMessage(error: unknown): string {
  return error instanceof UPPError ? messageOf(error) : 'The agent failed.'
}
