/**
 * Small applications on each framework's real runner, for one matrix of tests. Each has a model that
 * answers from what it sees, with a new id for each call, as all vendors do. After every answer of a person
 * the application is built anew, as in another process: only the log, the payloads, the spent tokens and
 * what the framework itself stores remain.
 */
import { randomUUID } from 'node:crypto'
import {
  AIMessage as CoreAiMessage,
  type BaseMessage,
  HumanMessage,
} from '@langchain/core/messages'
import { FakeListChatModel } from '@langchain/core/utils/testing'
import { tool as coreTool } from '@langchain/core/tools'
import {
  Command,
  END,
  interrupt as coreInterrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { ToolNode } from '@langchain/langgraph/prebuilt'
import {
  Agent,
  type Model,
  type ModelResponse,
  Runner,
  RunState,
  tool as openAiTool,
  Usage,
} from '@openai/agents'
import { isAssistantMessage, llm, type Message } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import type { JsonValue, ManualClock } from '@skein/base'
import {
  generateText,
  type ModelMessage,
  stepCountIs,
  streamText,
  tool as aiSdkTool,
  type ToolSet,
} from 'ai'
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test'
import { z } from 'zod'
import { aiSdkModel } from '../src/adapters/ai-sdk-model.ts'
import { aiSdkTools } from '../src/adapters/ai-sdk-tools.ts'
import { langChainModel } from '../src/adapters/langgraph-model.ts'
import { langGraphTools } from '../src/adapters/langgraph-tools.ts'
import { openAiAgentsModel } from '../src/adapters/openai-agents-model.ts'
import { openAiAgentsTools } from '../src/adapters/openai-agents-tools.ts'
import { uppModel } from '../src/adapters/upp-model.ts'
import { uppTools } from '../src/adapters/upp-tools.ts'
import { governAiSdk, governLangChain, governOpenAiAgents } from '../src/govern/index.ts'
import {
  type ApprovalRequest,
  type AuditLog,
  defineTaskClass,
  governed,
  type GovernedTool,
  governor,
  type PayloadStore,
  type Run,
  standardPolicy,
} from '../src/index.ts'
import { approvals, approve, type PrivateJwk, type PublicJwk } from '../src/approvals/index.ts'
import type { SpentStore } from '../src/index.ts'
import { identity } from './bank.ts'
import { usage } from './frameworks.ts'
import { peersOf } from '../../../scripts/peers.ts'

/** What outlives a process: the bank, and what is stored. */
export interface World {
  readonly effects: string[]
  readonly clock: ManualClock
  readonly audit: AuditLog
  readonly payloads: PayloadStore
  readonly spent: SpentStore
  readonly publicJwk: PublicJwk
  readonly privateJwk: PrivateJwk
  /** What the framework itself stores between two processes, as text. */
  saved?: string
  /** How often a model was asked. */
  inferences: number
}

/** The model: a function of the results of tools that it sees. */
export type Script = (
  results: readonly string[],
) => { readonly wires: readonly string[] } | { readonly text: string }

/** The model's last word: what the results of its calls say. */
const summary = (results: readonly string[]): { text: string } => ({
  text: results
    .map((text) => {
      const found = /W-\d/.exec(text)?.[0]
      return text.includes('ok') && found ? `Reversed ${found}.` : 'A reversal did not happen.'
    })
    .join(' '),
})

/** One call. */
export const once: Script = (results) =>
  results.length === 0 ? { wires: ['W-1'] } : summary(results)

/** Two calls in one message. */
export const both: Script = (results) =>
  results.length === 0 ? { wires: ['W-1', 'W-2'] } : summary(results)

/** Two calls, the second after the result of the first. */
export const twice: Script = (results) =>
  results.length < 2 ? { wires: [`W-${results.length + 1}`] } : summary(results)

export interface Outcome {
  readonly waiting: readonly ApprovalRequest[]
  readonly text: string | undefined
}

export type Decide = (request: ApprovalRequest) => boolean

/** One process of an application. */
export interface App {
  start(): Promise<Outcome>
  /** Goes on with the answers of a person to what waits. */
  answer(waiting: readonly ApprovalRequest[], decide: Decide): Promise<Outcome>
}

/** Builds the application anew over what is stored. */
export interface Framework {
  readonly name: string
  open(world: World, script: Script): () => App
}

const NONE: Outcome = { waiting: [], text: undefined }
const newId = (): string => `call_${randomUUID()}`
const wire = z.object({ wire: z.string() })
const rollback = ({ wire: id }: { wire: string }) => ({
  type: 'tool_call',
  target: 'reinstate',
  payload: { wire: id },
})

function reverse({ effects }: World, id: string): { ok: true; wire: string } {
  effects.push(`reverse ${id}`)
  return { ok: true, wire: id }
}

function reinstate({ effects }: World, id: string): { ok: true } {
  effects.push(`reinstate ${id}`)
  return { ok: true }
}

const sign = (world: World, request: ApprovalRequest): Promise<string> =>
  approve(request, {
    audience: 'bank',
    issuer: 'bank',
    approver: 'ana',
    key: world.privateJwk,
    ttlMs: 60_000,
    clock: world.clock,
  })

const desk = (world: World) =>
  approvals({
    audience: 'bank',
    issuers: { bank: { keys: [world.publicJwk], may: () => true } },
    spent: world.spent,
    clock: world.clock,
  })

// One governed run around the framework, with its model recorded.

type Ask = (
  run: Run,
  tools: readonly GovernedTool[],
  world: World,
  script: Script,
) => Promise<string>

function inRun(name: string, ask: Ask): Framework {
  const open = (world: World, script: Script) => {
    let request = ''
    return (): App => {
      const { audit, payloads, clock } = world
      const tool = (toolName: string, run: (id: string) => JsonValue) => ({
        name: toolName,
        description: toolName,
        parameters: {
          type: 'object',
          properties: { wire: { type: 'string' } },
          required: ['wire'],
        },
        run: async (args: { wire: string }) => run(args.wire),
      })
      const tools: GovernedTool[] = [
        governed(
          tool('reverse', (id) => reverse(world, id)),
          { risk: 'write_high_risk', rollback },
        ),
        governed(
          tool('reinstate', (id) => reinstate(world, id)),
          { risk: 'write_low_risk' },
        ),
      ]
      const task = defineTaskClass({ name: 'wires', tools, needs: [], verifiers: [] })
      const gov = governor({
        id: 'bank',
        audit,
        payloads,
        clock,
        policy: standardPolicy,
        approvals: desk(world),
      })
      const body = (run: Run): Promise<string> => ask(run, tools, world, script)
      const told = (result: Awaited<ReturnType<typeof gov.run<string>>>): Outcome => {
        if (result.outcome === 'pending') {
          request = result.request_id
          return { ...NONE, waiting: result.waiting }
        }
        if (result.state === 'deliver') return { ...NONE, text: result.value }
        throw new Error(`failed safe: ${JSON.stringify(result.reasons)}`)
      }
      return {
        start: async () => told(await gov.run(task, { identity, input: null }, body)),
        answer: async (waiting, decide) => {
          request = waiting[0]?.action.request_id ?? request
          const yes = waiting.filter(decide)
          const denials = waiting
            .filter((one) => !decide(one))
            .map(({ id }) => ({ id, reason: 'no' }))
          const tokens = await Promise.all(yes.map((one) => sign(world, one)))
          return told(await gov.resume(request, task, body, { tokens, denials }))
        },
      }
    }
  }
  return { name, open }
}

// The AI SDK.

type LanguageModelV4StreamPart =
  Awaited<ReturnType<MockLanguageModelV4['doStream']>>['stream'] extends ReadableStream<infer Part>
    ? Part
    : never

export function aiSdkScripted(world: World, script: Script): MockLanguageModelV4 {
  const answer = (prompt: readonly { role: string; content: unknown }[]) => {
    world.inferences += 1
    const results = prompt
      .filter(({ role }) => role === 'tool')
      .flatMap(({ content }) => content as { type: string; output?: unknown }[])
      .filter(({ type }) => type === 'tool-result')
      .map(({ output }) => JSON.stringify(output))
    const said = script(results)
    if ('text' in said) return { said, content: [{ type: 'text' as const, text: said.text }] }
    const content = said.wires.map((id) => ({
      type: 'tool-call' as const,
      toolCallId: newId(),
      toolName: 'reverse',
      input: JSON.stringify({ wire: id }),
    }))
    return { said, content }
  }
  const reasonOf = (said: object) => ({
    unified: 'text' in said ? ('stop' as const) : ('tool-calls' as const),
    raw: undefined,
  })
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const { said, content } = answer(prompt)
      const response = { timestamp: new Date(0), headers: { secret: 's' } }
      return { content, finishReason: reasonOf(said), usage, warnings: [], response }
    },
    doStream: async ({ prompt }) => {
      const { said, content } = answer(prompt)
      const parts = content.flatMap((part): LanguageModelV4StreamPart[] =>
        part.type === 'text'
          ? [
              { type: 'text-start' as const, id: '1' },
              { type: 'text-delta' as const, id: '1', delta: part.text },
              { type: 'text-end' as const, id: '1' },
            ]
          : [part],
      )
      const finish = { type: 'finish' as const, finishReason: reasonOf(said), usage }
      const start = { type: 'stream-start' as const, warnings: [] }
      const chunks: LanguageModelV4StreamPart[] = [start, ...parts, finish]
      return { stream: simulateReadableStream({ chunks }) }
    },
  })
}

const aiSdkOptions = (run: Run, tools: readonly GovernedTool[], world: World, script: Script) => ({
  model: aiSdkModel(run, aiSdkScripted(world, script)),
  tools: aiSdkTools(run, tools),
  prompt: 'Go.',
  stopWhen: stepCountIs(10),
})

const aiSdkGenerate: Ask = async (...args) => (await generateText(aiSdkOptions(...args))).text

const aiSdkStream: Ask = async (...args) => {
  const result = streamText({ ...aiSdkOptions(...args), onError: () => undefined })
  await result.consumeStream({ onError: () => undefined })
  return result.text
}

/** The tools of an application of the AI SDK, governed. */
export function governedAiSdk(world: World): ToolSet {
  const { audit, payloads, clock } = world
  return governAiSdk({
    id: 'bank',
    identity: () => identity,
    audit,
    payloads,
    clock,
    desk: { approvals: desk(world), sign: (request) => sign(world, request) },
    tools: {
      reverse: {
        tool: aiSdkTool({
          description: 'reverse',
          inputSchema: wire,
          execute: ({ wire: id }) => JSON.stringify(reverse(world, id)),
        }),
        risk: 'write_high_risk',
        rollback: ({ wire: id }) => rollback({ wire: id }),
      },
      reinstate: {
        tool: aiSdkTool({
          inputSchema: wire,
          execute: ({ wire: id }) => reinstate(world, id),
        }),
        risk: 'write_low_risk',
      },
    },
  })
}

/** The application as it was before, with its tools governed; the history is what a client holds. */
const aiSdkChat: Framework = {
  name: 'AI SDK, governAiSdk',
  open: (world, script) => {
    return () => {
      const asked: ApprovalRequest[] = []
      const tools = governedAiSdk(world)
      const ask = async (messages: readonly ModelMessage[]): Promise<Outcome> => {
        const model = aiSdkScripted(world, script)
        const result = await generateText({
          model,
          messages: [...messages],
          tools,
          stopWhen: stepCountIs(10),
        })
        world.saved = JSON.stringify([...messages, ...result.responseMessages])
        for (const part of result.content) {
          if (part.type !== 'tool-approval-request') continue
          const { toolCallId, input } = part.toolCall
          // What the page shows, in the form of this test.
          asked.push({
            id: part.approvalId,
            action: { call_id: toolCallId, args: input },
          } as unknown as ApprovalRequest)
        }
        return asked.length > 0 ? { ...NONE, waiting: asked } : { ...NONE, text: result.text }
      }
      return {
        start: () => ask([{ role: 'user', content: 'Go.' }]),
        answer: (waiting, decide) => {
          const messages = JSON.parse(world.saved ?? '[]') as ModelMessage[]
          const content = waiting.map((one) => ({
            type: 'tool-approval-response' as const,
            approvalId: one.id,
            approved: decide(one),
          }))
          return ask(content.length > 0 ? [...messages, { role: 'tool', content }] : messages)
        },
      }
    }
  },
}

// OpenAI Agents.

function openAiScripted(world: World, script: Script): Model {
  return {
    async getResponse({ input }): Promise<ModelResponse> {
      world.inferences += 1
      const items = typeof input === 'string' ? [] : input
      const results = items
        .filter((item) => item.type === 'function_call_result')
        .map(({ output }) => JSON.stringify(output))
      const said = script(results.map((text) => text.replaceAll('\\"', '"')))
      return {
        usage: new Usage({ requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }),
        output:
          'text' in said
            ? [
                {
                  type: 'message',
                  role: 'assistant',
                  status: 'completed',
                  content: [{ type: 'output_text', text: said.text }],
                },
              ]
            : said.wires.map((id) => ({
                type: 'function_call' as const,
                callId: newId(),
                name: 'reverse',
                arguments: JSON.stringify({ wire: id }),
                status: 'completed' as const,
              })),
      }
    },
    // oxlint-disable-next-line require-yield -- this model does not stream
    async *getStreamedResponse() {
      throw new Error('not streamed')
    },
  }
}

const runner = new Runner({ tracingDisabled: true })

const openAiRun: Ask = async (run, tools, world, script) => {
  const agent = new Agent({
    name: 'clerk',
    instructions: 'Go.',
    model: openAiAgentsModel(run, openAiScripted(world, script)),
    tools: openAiAgentsTools(run, tools),
  })
  return String((await runner.run(agent, 'Go.')).finalOutput)
}

const openAiOwn: Framework = {
  name: 'OpenAI Agents, governOpenAiAgents',
  open: (world, script) => {
    return () => {
      const { audit, payloads, clock } = world
      const tool = (name: string, run: (id: string) => JsonValue) =>
        openAiTool({
          name,
          description: name,
          parameters: wire,
          execute: (args) => JSON.stringify(run(args.wire)),
        })
      const tools = governOpenAiAgents({
        id: 'bank',
        identity: () => identity,
        audit,
        payloads,
        clock,
        desk: { approvals: desk(world), sign: (request) => sign(world, request) },
        tools: [
          { tool: tool('reverse', (id) => reverse(world, id)), risk: 'write_high_risk', rollback },
          { tool: tool('reinstate', (id) => reinstate(world, id)), risk: 'write_low_risk' },
        ],
      })
      const model = openAiScripted(world, script)
      const agent = new Agent({ name: 'clerk', instructions: 'Go.', model, tools })
      const told = (result: {
        interruptions: readonly { rawItem: unknown }[]
        state: { toString(): string }
        finalOutput?: unknown
      }): Outcome => {
        world.saved = result.state.toString()
        if (result.interruptions.length === 0) return { ...NONE, text: String(result.finalOutput) }
        const waiting = result.interruptions.map(({ rawItem }) => {
          const item = rawItem as { callId: string; arguments: string }
          const action = { call_id: item.callId, args: JSON.parse(item.arguments) as JsonValue }
          return { id: item.callId, action } as unknown as ApprovalRequest
        })
        return { ...NONE, waiting }
      }
      return {
        start: async () => told(await runner.run(agent, 'Go.')),
        answer: async (waiting, decide) => {
          const state = await RunState.fromString(agent, world.saved ?? '')
          for (const item of state.getInterruptions()) {
            const { callId } = item.rawItem as { callId: string }
            const one = waiting.find(({ id }) => id === callId)
            if (one && decide(one)) state.approve(item)
            else if (one) state.reject(item)
          }
          return told(await runner.run(agent, state))
        },
      }
    }
  },
}

// `llm()` of @skein/ai.

const upp =
  (isStreamed: boolean): Ask =>
  async (run, tools, world, script) => {
    const model = scripted((request) => {
      world.inferences += 1
      const said = script(resultsIn(request.messages))
      return 'text' in said
        ? says(said.text)
        : said.wires.map((id) => calls('reverse', { wire: id }, { id: newId() }))
    })
    const asked = llm({ model: uppModel(run, model), tools: uppTools(run, tools) })
    const turn = isStreamed ? await asked.stream('Go.').turn : await asked.generate('Go.')
    return turn.response.text
  }

function resultsIn(messages: readonly Message[]): string[] {
  return messages
    .filter((message) => !isAssistantMessage(message) && message.type === 'tool_result')
    .flatMap((message) => (message as unknown as { results: readonly unknown[] }).results)
    .map((result) => JSON.stringify(result))
}

// LangGraph and LangChain.

function messageOf(
  world: World,
  script: Script,
  messages: readonly BaseMessage[],
): {
  content: string
  tool_calls: { id: string; name: string; args: object; type: 'tool_call' }[]
} {
  world.inferences += 1
  const results = messages
    .filter((message) => message.getType() === 'tool')
    .map(({ content }) => String(content))
  const said = script(results)
  if ('text' in said) return { content: said.text, tool_calls: [] }
  const tool_calls = said.wires.map((id) => ({
    id: newId(),
    name: 'reverse',
    args: { wire: id },
    type: 'tool_call' as const,
  }))
  return { content: '', tool_calls }
}

interface ChatModel {
  bindTools(tools: unknown): ChatModel
  invoke(messages: BaseMessage[]): Promise<BaseMessage>
}

/** A chat model over LangChain's own base class; `core` is the copy of the package that is used. */
function chatModel(world: World, script: Script, core: LangChainCore): ChatModel {
  class Scripted extends core.FakeListChatModel {
    // A private member, which a model that is wrapped carelessly loses.
    readonly #script = script
    override async _generate(messages: BaseMessage[]) {
      const message = new core.AIMessage(messageOf(world, this.#script, messages))
      return { generations: [{ message, text: String(message.content) }] }
    }
    override bindTools(): this {
      return this
    }
  }
  return new Scripted({ responses: ['unused'] }) as unknown as ChatModel
}

interface LangChainCore {
  readonly AIMessage: typeof CoreAiMessage
  readonly FakeListChatModel: typeof FakeListChatModel
}

const core: LangChainCore = { AIMessage: CoreAiMessage, FakeListChatModel }

function graphOf(model: ChatModel, tools: unknown[], checkpointer?: MemorySaver) {
  const bound = model.bindTools(tools)
  return new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await bound.invoke(messages)] }))
    .addNode('tools', new ToolNode(tools as never))
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) =>
      (messages.at(-1) as CoreAiMessage).tool_calls?.length ? 'tools' : END,
    )
    .addEdge('tools', 'model')
    .compile({ checkpointer })
}

const langGraphRun: Ask = async (run, tools, world, script) => {
  const model = langChainModel(run, chatModel(world, script, core), { AIMessage: CoreAiMessage })
  const graph = graphOf(model, langGraphTools(run, tools, { tool: coreTool as never }))
  const { messages } = await graph.invoke({ messages: [new HumanMessage('Go.')] })
  return String(messages.at(-1)!.content)
}

interface LangChain {
  createAgent(options: object): Graph
  tool: typeof coreTool
  AIMessage: typeof CoreAiMessage
}

interface Graph {
  invoke(input: unknown, config?: object): Promise<GraphResult>
}

interface GraphResult {
  readonly messages: readonly BaseMessage[]
  readonly __interrupt__?: readonly { readonly value?: unknown }[]
}

const peers = peersOf('frameworks')
const langChain = peers.isInstalled ? await peers.load<LangChain>('langchain') : undefined
const langChainCore: LangChainCore | undefined = langChain && {
  AIMessage: langChain.AIMessage,
  ...(await peers.load<Pick<LangChainCore, 'FakeListChatModel'>>('@langchain/core/utils/testing')),
}
const langGraph = peers.isInstalled
  ? await peers.load<{
      MemorySaver: typeof MemorySaver
      Command: typeof Command
      interrupt: typeof coreInterrupt
    }>('@langchain/langgraph')
  : undefined

const langChainRun: Ask = async (run, tools, world, script) => {
  const { createAgent, AIMessage, tool } = langChain!
  const model = langChainModel(run, chatModel(world, script, langChainCore!), { AIMessage })
  const agent = createAgent({ model, tools: langGraphTools(run, tools, { tool: tool as never }) })
  const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'Go.' }] })
  return String(messages.at(-1)!.content)
}

interface GraphKit {
  readonly core: LangChainCore
  readonly tool: typeof coreTool
  readonly MemorySaver: typeof MemorySaver
  readonly Command: typeof Command
  readonly interrupt: typeof coreInterrupt
  readonly compile: (model: ChatModel, tools: unknown[], checkpointer: MemorySaver) => Graph
}

/** A graph with a checkpointer, whose tools interrupt it. */
function ownGraph(name: string, kit: () => GraphKit): Framework {
  const open = (world: World, script: Script) => {
    const own = kit()
    return (): App => {
      const checkpointer = new own.MemorySaver()
      if (world.saved !== undefined) Object.assign(checkpointer, thaw(world.saved))
      const { audit, payloads, clock } = world
      const tool = (toolName: string, run: (id: string) => JsonValue) =>
        own.tool(async (args) => JSON.stringify(run((args as { wire: string }).wire)), {
          name: toolName,
          description: toolName,
          schema: wire,
        })
      const tools = governLangChain({
        id: 'bank',
        identity: () => identity,
        audit,
        payloads,
        clock,
        desk: { approvals: desk(world), sign: (request) => sign(world, request) },
        interrupt: own.interrupt,
        tools: [
          { tool: tool('reverse', (id) => reverse(world, id)), risk: 'write_high_risk', rollback },
          { tool: tool('reinstate', (id) => reinstate(world, id)), risk: 'write_low_risk' },
        ],
      })
      const graph = own.compile(chatModel(world, script, own.core), tools, checkpointer)
      const thread = { configurable: { thread_id: 't1' } }
      const told = (result: GraphResult): Outcome => {
        world.saved = freeze(checkpointer)
        const waiting = (result.__interrupt__ ?? []).map(({ value }) => value as ApprovalRequest)
        if (waiting.length > 0) return { ...NONE, waiting }
        return { ...NONE, text: String(result.messages.at(-1)!.content) }
      }
      return {
        start: async () =>
          told(await graph.invoke({ messages: [{ role: 'user', content: 'Go.' }] }, thread)),
        answer: async (waiting, decide) => {
          const resume = waiting.map((one) => ({
            id: one.id,
            approved: decide(one),
          }))
          return told(await graph.invoke(new own.Command({ resume }), thread))
        },
      }
    }
  }
  return { name, open }
}

/** What the memory of a graph holds, as text; a checkpointer with a database would store the same. */
function freeze({ storage, writes }: MemorySaver): string {
  return JSON.stringify({ storage, writes }, (_key, value: unknown) =>
    value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value,
  )
}

function thaw(text: string): Partial<MemorySaver> {
  return JSON.parse(text, (_key, value: { readonly base64?: string } | null) =>
    value?.base64 === undefined ? value : new Uint8Array(Buffer.from(value.base64, 'base64')),
  ) as Partial<MemorySaver>
}

export const frameworks: readonly Framework[] = [
  inRun('llm(), generate', upp(false)),
  inRun('llm(), stream', upp(true)),
  inRun('AI SDK, generateText', aiSdkGenerate),
  inRun('AI SDK, streamText', aiSdkStream),
  aiSdkChat,
  inRun('OpenAI Agents', openAiRun),
  openAiOwn,
  inRun('LangGraph', langGraphRun),
  ownGraph('LangGraph, governLangChain', () => ({
    core,
    tool: coreTool,
    MemorySaver,
    Command,
    interrupt: coreInterrupt,
    compile: (model, tools, checkpointer) =>
      graphOf(model, tools, checkpointer) as unknown as Graph,
  })),
  ...(langChain && langChainCore && langGraph
    ? [
        inRun('LangChain', langChainRun),
        ownGraph('LangChain, governLangChain', () => ({
          core: langChainCore,
          ...langGraph,
          tool: langChain.tool,
          compile: (model, tools, checkpointer) =>
            langChain.createAgent({ model, tools, checkpointer }),
        })),
      ]
    : []),
]
