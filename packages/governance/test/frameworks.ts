import { HumanMessage, AIMessage } from '@langchain/core/messages'
import type { BaseMessage } from '@langchain/core/messages'
import { tool as langChainTool } from '@langchain/core/tools'
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode } from '@langchain/langgraph/prebuilt'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { Agent, Runner, Usage, type Model, type ModelResponse } from '@openai/agents'
import { llm } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import type { JsonObject } from '@skein/base'
import type { GovernedTool, Run } from '../src/index.ts'
import { aiSdkTools } from '../src/adapters/ai-sdk-tools.ts'
import { langGraphTools } from '../src/adapters/langgraph-tools.ts'
import { governedMcpTools } from '../src/adapters/mcp.ts'
import { openAiAgentsTools } from '../src/adapters/openai-agents-tools.ts'
import { uppTools } from '../src/adapters/upp-tools.ts'
import { bareTools, governedTools, tiers, type Effects } from './bank.ts'

/** A call the scripted model makes. */
export interface ScriptedCall {
  readonly id: string
  readonly tool: string
  readonly args: JsonObject
}

/** One framework: makes the calls one after the other through its own loop, then answers. */
export interface Framework {
  readonly name: string
  /** Where its tools come from, if not from us. */
  readonly tools?: (effects: Effects) => Promise<readonly GovernedTool[]>
  ask(run: Run, tools: readonly GovernedTool[], script: readonly ScriptedCall[]): Promise<string>
}

const ANSWER = 'Done.'

async function direct(
  run: Run,
  tools: readonly GovernedTool[],
  script: readonly ScriptedCall[],
): Promise<string> {
  for (const { id, tool, args } of script) {
    const found = tools.find(({ name }) => name === tool)!
    // As frameworks do: the model is told of a failure and goes on.
    await run.call(found, args as never, { id }).catch(() => undefined)
  }
  return ANSWER
}

const upp: Framework['ask'] = async (run, tools, script) => {
  const model = scripted([
    ...script.map(({ id, tool, args }) => calls(tool, args, { id })),
    says(ANSWER),
  ])
  const turn = await llm({ model, tools: uppTools(run, tools) }).generate('Go.')
  return turn.response.text
}

export const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** A model of the AI SDK that makes the calls, one per step, then answers. */
export function aiSdkModel(script: readonly ScriptedCall[]): MockLanguageModelV4 {
  let step = 0
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const call = script[step++]
      const content = call
        ? ({
            type: 'tool-call',
            toolCallId: call.id,
            toolName: call.tool,
            input: JSON.stringify(call.args),
          } as const)
        : ({ type: 'text', text: ANSWER } as const)
      const unified = call ? ('tool-calls' as const) : ('stop' as const)
      return { content: [content], finishReason: { unified, raw: undefined }, usage, warnings: [] }
    },
  })
}

const aiSdk: Framework['ask'] = async (run, tools, script) => {
  const set = aiSdkTools(run, tools)
  const { text } = await generateText({
    model: aiSdkModel(script),
    tools: set,
    prompt: 'Go.',
    stopWhen: stepCountIs(20),
  })
  return text
}

/** A model of the OpenAI Agents SDK that makes the calls, one per turn, then answers. */
export function openAiModel(script: readonly ScriptedCall[]): Model {
  let step = 0
  return {
    async getResponse(): Promise<ModelResponse> {
      const call = script[step++]
      return {
        usage: new Usage(),
        output: call
          ? [
              {
                type: 'function_call',
                callId: call.id,
                name: call.tool,
                arguments: JSON.stringify(call.args),
                status: 'completed',
              },
            ]
          : [
              {
                type: 'message',
                role: 'assistant',
                status: 'completed',
                content: [{ type: 'output_text', text: ANSWER }],
              },
            ],
      }
    },
    // oxlint-disable-next-line require-yield -- this model does not stream
    async *getStreamedResponse() {
      throw new Error('not streamed')
    },
  }
}

const openAiAgents: Framework['ask'] = async (run, tools, script) => {
  const agent = new Agent({
    name: 'clerk',
    instructions: 'Go.',
    model: openAiModel(script),
    tools: openAiAgentsTools(run, tools),
  })
  const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, 'Go.', {
    maxTurns: 20,
  })
  return String(finalOutput)
}

/** The node of a graph that makes the calls, one per visit, then answers. */
export function langGraphModel(
  script: readonly ScriptedCall[],
): (state: { messages: BaseMessage[] }) => { messages: BaseMessage[] } {
  return ({ messages }) => {
    const call = script[messages.filter((message) => message instanceof AIMessage).length]
    const tool_calls = call
      ? [{ id: call.id, name: call.tool, args: call.args, type: 'tool_call' as const }]
      : []
    return { messages: [new AIMessage({ content: call ? '' : ANSWER, tool_calls })] }
  }
}

const langGraph: Framework['ask'] = async (run, tools, script) => {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', langGraphModel(script))
    .addNode('tools', new ToolNode(langGraphTools(run, tools, { tool: langChainTool as never })))
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) =>
      (messages.at(-1) as AIMessage).tool_calls?.length ? 'tools' : END,
    )
    .addEdge('tools', 'model')
    .compile()
  const { messages } = await graph.invoke(
    { messages: [new HumanMessage('Go.')] },
    { recursionLimit: 50 },
  )
  return String(messages.at(-1)!.content)
}

/** A real MCP client and server in one process; the server has the bank's tools. */
export async function mcpClient(
  effects: Effects,
  annotations: Record<string, object> = {},
): Promise<Client> {
  const bare = bareTools(effects)
  const server = new Server({ name: 'bank', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.values(bare).map(({ name, description, parameters }) => ({
      name,
      description,
      inputSchema: parameters as { type: 'object' },
      ...(annotations[name] && { annotations: annotations[name] }),
    })),
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const result = bare[params.name as keyof typeof bare].run(params.arguments as never)
    return {
      content: [{ type: 'text', text: JSON.stringify(result) }],
      structuredContent: result as Record<string, unknown>,
    }
  })
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'governed', version: '1' })
  await Promise.all([server.connect(theirs), client.connect(ours)])
  return client
}

async function mcpTools(effects: Effects): Promise<readonly GovernedTool[]> {
  return (await governedMcpTools(
    (await mcpClient(effects)) as never,
    tiers as never,
  )) as readonly GovernedTool[]
}

export const frameworks: readonly Framework[] = [
  { name: 'run.call', ask: direct },
  { name: 'UPP', ask: upp },
  { name: 'AI SDK', ask: aiSdk },
  { name: 'OpenAI Agents', ask: openAiAgents },
  { name: 'LangGraph', ask: langGraph },
  { name: 'MCP tools', tools: mcpTools, ask: direct },
  { name: 'MCP tools in the AI SDK', tools: mcpTools, ask: aiSdk },
]

export { governedTools }
