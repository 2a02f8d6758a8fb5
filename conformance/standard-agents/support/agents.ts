import { calls, scripted, type ScriptedModel } from '@skein/ai/testing'
import type { LLMRequest } from '@skein/ai'
import {
  defineAgent,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type PromptDefinition,
  type SideConfig,
  type ThreadState,
  type ToolDefinition,
} from '@skein/runtime'
import { z } from 'zod'

type Script = Parameters<typeof scripted>[0]

/** One side in one object: how its model answers, what it may use, and how its turns end. */
export interface SideSetup extends Omit<SideConfig, 'prompt'> {
  /** What the model answers, or a scripted model of the test's own. */
  readonly script: Script | ScriptedModel
  /** Default: a text that names the side. */
  readonly system?: PromptDefinition['prompt']
  readonly tools?: PromptDefinition['tools']
  /** Anything else of the prompt. */
  readonly prompt?: Partial<Omit<PromptDefinition, 'kind'>>
}

/** An `ai_human` agent. */
export function solo(
  name: string,
  side: SideSetup,
  agent: Partial<AgentDefinition> = {},
): AgentDefinition {
  return defineAgent({ name, sideA: sideOf(`${name}_a`, side), ...agent })
}

/** A `dual_ai` agent that may be used as a tool. */
export function pair(
  name: string,
  sides: { readonly a: SideSetup; readonly b: SideSetup },
  agent: Partial<AgentDefinition> = {},
): AgentDefinition {
  return defineAgent({
    name,
    type: 'dual_ai',
    maxSessionTurns: 20,
    exposeAsTool: true,
    toolDescription: `Two who do ${name}.`,
    sideA: sideOf(`${name}_a`, sides.a),
    sideB: sideOf(`${name}_b`, sides.b),
    ...agent,
  })
}

function sideOf(name: string, { script, system, tools, prompt, ...side }: SideSetup): SideConfig {
  const model = isModel(script) ? script : scripted(script, { modelId: name })
  return {
    ...side,
    prompt: definePrompt({
      name,
      prompt: system ?? `You are ${name}.`,
      model,
      ...(tools && { tools }),
      ...prompt,
    }),
  }
}

function isModel(script: Script | ScriptedModel): script is ScriptedModel {
  return 'requests' in script
}

/** What the model of a side was asked so far. */
export function requestsOf(agent: AgentDefinition, side: 'a' | 'b' = 'a'): readonly LLMRequest[] {
  const config = side === 'a' ? agent.sideA : agent.sideB
  const { model } = config!.prompt as PromptDefinition // made by `sideOf`
  return (model as ScriptedModel).requests
}

/** A tool that reads, takes anything, and answers `ok` or what `execute` gives. */
export function tool(
  name: string,
  execute: (
    state: ThreadState,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ) => unknown = () => 'ok',
  options: Partial<Omit<Parameters<typeof defineTool>[0], 'name' | 'execute'>> = {},
): ToolDefinition {
  return defineTool({
    name,
    description: `Does ${name}.`,
    risk: 'read_only',
    // The types cannot see that a test which raises the risk also gives a rollback; loading checks it.
    ...(options as typeof options & { readonly risk?: 'read_only' }),
    args: z.looseObject({}),
    execute: (state, args, { signal }) => execute(state, args, signal),
  })
}

/**
 * The messages of a request, one line each: `user: hi`, `assistant: I look. [find({"id":1})]`,
 * `tool_result: find = "x"` or `tool_result: find ! it failed`.
 */
export function linesOf(request: LLMRequest | undefined): string[] {
  return (request?.messages ?? []).map((message) => {
    if (message.type === 'tool_result') {
      const results = message.results.map(({ toolName, result, isError }) =>
        isError ? `${toolName} ! ${String(result)}` : `${toolName} = ${JSON.stringify(result)}`,
      )
      return `tool_result: ${results.join(', ')}`
    }
    const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
    const called = calls.map((call) => ` [${call.toolName}(${JSON.stringify(call.arguments)})]`)
    return `${message.type}: ${message.text}${called.join('')}`
  })
}

/** The tool with which a `child` ends its session. What it returns must reach no one. */
export const finish: ToolDefinition = tool('finish', () => 'the tool says this')
const fail = tool('fail', () => 'the tool says this')

/** What the model of a `child` says to end its session. */
export const finished = (summary: string): ReturnType<typeof calls> => calls('finish', { summary })

/** An agent for a child, whose side A ends the session by itself: with `finish`, or with `fail`. */
export function child(name: string, side: Partial<SideSetup> = {}): AgentDefinition {
  const { tools = [], ...rest } = side
  return pair(name, {
    a: {
      script: () => finished(`${name} is done`),
      sessionStop: { name: finish, messageProperty: 'summary' },
      sessionFail: { name: fail, messageProperty: 'why' },
      ...rest,
      tools: [finish, fail, ...tools],
    },
    b: { script: [] },
  })
}

/** A tool that a person has to approve. */
export const burn: ToolDefinition = defineTool({
  name: 'burn',
  description: 'Burns.',
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: () => 'burnt',
})
