import { uuidV4, type Clock, type IdSource } from '@skein/base'
import { llm, type LLMInstance, type LLMOptions, type Tool, type ToolUseStrategy } from '@skein/ai'
import type { Agent, ModellessOptions } from './agent.ts'
import { invalidRequest } from './agent-error.ts'
import { boundHooks } from './bound-hooks.ts'

/** What an agent has beside its options: made on first use and kept. */
export class AgentCore {
  readonly options: ModellessOptions
  readonly ids: IdSource
  readonly clock: Clock | undefined
  /** The public face; strategies and middleware get this very object. */
  agent!: Agent
  #llm: LLMInstance | undefined
  #sessionId: string | undefined

  constructor(options: ModellessOptions) {
    this.options = options
    this.ids = options.ids ?? uuidV4
    this.clock = options.clock
  }

  /** A21: an agent without a model can be made, but not run. */
  get llm(): LLMInstance {
    return (this.#llm ??= llm(this.#llmOptions()))
  }

  /** A22: given, or that of the state, or one made for this agent. */
  sessionOf(metadata: { readonly [name: string]: unknown }): string | undefined {
    const { sessionId, checkpoints } = this.options
    if (sessionId !== undefined) return sessionId
    const { sessionId: known } = metadata
    if (typeof known === 'string' && known !== '') return known
    return checkpoints && (this.#sessionId ??= this.ids())
  }

  #llmOptions(): LLMOptions {
    const { model, llmMiddleware } = this.options
    if (!model)
      throw invalidRequest(
        'This agent has no model.',
        'Pass `model` to agent(), or run it as a sub-agent: subagent() lends it its caller’s.',
      )
    const { config, params, system, structure, signal, clock, ids } = this.options
    return {
      model,
      tools: this.agent.tools,
      toolStrategy: this.agent.toolStrategy ?? unlimited,
      ...(config && { config }),
      ...(params && { params }),
      ...(system !== undefined && { system }),
      ...(structure && { structure }),
      ...(llmMiddleware && { middleware: llmMiddleware }),
      ...(signal && { signal }),
      ...(clock && { clock }),
      ...(ids && { ids }),
    }
  }
}

const unlimited: ToolUseStrategy = Object.freeze({ maxIterations: Infinity })

const toolHooks = [
  'onToolCall',
  'onBeforeCall',
  'onAfterCall',
  'onError',
  'onMaxIterations',
] as const satisfies readonly (keyof ToolUseStrategy)[]

/** UAP §2.4: no limit unless one is given. */
export function withoutLimit(strategy: ToolUseStrategy): ToolUseStrategy {
  if (strategy.maxIterations !== undefined) return strategy
  return boundHooks(strategy, toolHooks, { maxIterations: Infinity })
}

/** UAP §8.2: a tool is written out; an agent is none. */
export function checkTools(tools: readonly Tool[]): void {
  tools.forEach((tool: Partial<Tool> & { generate?: unknown }, index) => {
    if (typeof tool?.name === 'string' && typeof tool.run === 'function') return
    const isAgent = typeof tool?.generate === 'function'
    throw invalidRequest(
      `Item ${index} of the tools is ${isAgent ? 'an agent' : 'not a tool'}.`,
      isAgent
        ? 'Write a tool that runs it: subagent({ name, description, parameters, agent, prompt }).'
        : 'A tool has a name, a description, parameters and a function `run`.',
    )
  })
}
