import {
  type Clock,
  type IdSource,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  messageOf,
  systemClock,
  uuidV4,
} from '@skein/base'
import {
  defer,
  deriveTool,
  type Tool,
  tool,
  type ToolDeclaration,
  type ToolSchema,
} from '@skein/ai'
import { agent as defineAgent } from './agent.ts'
import { invalidUse } from './contract/agent-error.ts'
import type {
  Agent,
  AgentContext,
  AgentInput,
  AgentStreamResult,
  GenerateResult,
  ModellessAgent,
  RunTotals,
} from './contract/agent-types.ts'
import type { SubagentEvent } from './contract/event.ts'
import type { InternalRunOptions } from './run/run-agent.ts'
import { AgentState } from './state/state.ts'
import { type ChildRequest, childRequestOf } from './state/interrupts.ts'

/**
 * The definition of a tool that runs an agent. All fields are explicit:
 * none is derived from the agent (UAP §8.1).
 */
export interface SubagentDefinition<Args = Record<string, unknown>> extends Pick<
  Tool,
  'approval' | 'metadata' | 'risk' | 'sequential' | 'dependsOn' | 'timeoutMs'
> {
  readonly name: string
  readonly description: string
  /** JSON Schema, or a Standard Schema, which also validates the arguments. */
  readonly parameters: JsonSchema | ToolSchema<Args>
  /** An agent without a model runs with the model of its caller. */
  readonly agent: Agent | ModellessAgent
  /** Returns the input of the agent. */
  readonly prompt: (args: Args) => AgentInput
  /** Returns the tool's result. Default: the text of the answer. */
  readonly result?: (result: GenerateResult) => unknown
  /** `subagentType` in events and traces. Default: the tool's name. */
  readonly type?: string
  /**
   * Whether the caller's stop condition, which includes the sub-agent's
   * tokens, can end the sub-agent too. Default false.
   */
  readonly sharesBudget?: boolean
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Makes a tool that runs an agent. The caller's stream contains the sub-agent's events while they happen, and
 * the caller's state contains its trace and tokens. Aborting the caller aborts the sub-agent, and interrupts
 * of the sub-agent become interrupts of the caller.
 *
 *     const explore = subagent({
 *       name: 'explore',
 *       description: 'Explores the code base.',
 *       parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
 *       agent: explorer,
 *       prompt: ({ query }) => `Find: ${query}`,
 *     })
 */
export function subagent<Args = Record<string, unknown>>(
  definition: SubagentDefinition<Args>,
): Tool {
  check(definition)
  const { name, description, parameters, metadata, risk, sequential, dependsOn, timeoutMs } =
    definition
  const made = tool<Args, unknown, AgentContext>({
    name,
    description,
    parameters: parameters as ToolSchema<Args>, // or JSON Schema; `tool` checks which of the two it is
    metadata,
    risk,
    sequential,
    dependsOn,
    timeoutMs,
    approval: definition.approval as ToolDeclaration<Args, unknown, AgentContext>['approval'], // `Tool` has no argument types
    run: (args, context) => new SubagentRun(definition, context).run(args),
  })
  return deriveTool(made, { [marker]: true })
}

const marker = Symbol.for('skein.subagent')

/** True for a tool made by `subagent()`, also by another copy of this package. */
export function isSubagent(tool: Tool): boolean {
  return marker in tool
}

/** Checks that name, description, parameters, agent and prompt are given (UAP §8.1). */
function check(definition: object): void {
  const { name, description, parameters, agent, prompt } = definition as Record<string, unknown>
  const missing = [
    ...(typeof name === 'string' && name !== '' ? [] : ['name']),
    ...(typeof description === 'string' && description !== '' ? [] : ['description']),
    ...(typeof parameters === 'object' || isStandardSchema(parameters) ? [] : ['parameters']),
    ...(typeof (agent as Partial<Agent> | undefined)?.generate === 'function' ? [] : ['agent']),
    ...(typeof prompt === 'function' ? [] : ['prompt']),
  ]
  if (missing.length === 0) return
  throw invalidUse(
    `subagent() needs ${missing.join(', ')}.`,
    'The interface of a sub-agent is written out; nothing is derived from the agent.',
  )
}

/** One call of a tool made by `subagent()`. */
class SubagentRun<Args> {
  readonly #definition: SubagentDefinition<Args>
  readonly #context: AgentContext
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #identity: Pick<SubagentEvent, 'subagentId' | 'subagentType' | 'parentToolCallId'>

  constructor(definition: SubagentDefinition<Args>, context: AgentContext) {
    const { agent } = definition
    this.#definition = definition
    this.#context = context
    this.#clock = definition.clock ?? agent.clock ?? systemClock
    this.#ids = definition.ids ?? agent.ids ?? uuidV4
    this.#identity = {
      subagentId: this.#ids(),
      subagentType: definition.type ?? definition.name,
      parentToolCallId: context.toolCallId,
    }
  }

  async run(args: Args): Promise<unknown> {
    const { deferred } = this.#context
    const child = deferred && childRequestOf(deferred)
    const asked = child ? undefined : this.#definition.prompt(args)
    const prompt = child?.prompt ?? (typeof asked === 'object' ? asked.text : (asked ?? ''))
    const timestamp = this.#clock.now()
    this.#emit({ type: 'subagent_start', ...this.#identity, prompt, timestamp })
    try {
      const result = await this.#runAgent(asked, child)
      return this.#end(result, prompt)
    } catch (error) {
      this.#fail(messageOf(error), (error as { turn?: GenerateResult['turn'] }).turn)
      throw error
    }
  }

  #runAgent(
    asked: AgentInput | undefined,
    child: ChildRequest | undefined,
  ): Promise<GenerateResult> {
    const agent = this.#effectiveAgent()
    const { streaming, answers = {} } = this.#context
    const options = this.#options(agent)
    if (child) {
      const state = AgentState.fromJSON(child.state, { ids: this.#ids })
      return streaming
        ? this.#follow(agent.resumeStream(state, answers, options))
        : agent.resume(state, answers, options)
    }
    const state = AgentState.initial({ ids: this.#ids })
    return streaming
      ? this.#follow(agent.stream(asked ?? '', state, options))
      : agent.generate(asked ?? '', state, options)
  }

  /**
   * Returns the agent with its own model, or the model of its caller,
   * which is known only during the call (UAP §8.4).
   */
  #effectiveAgent(): Agent {
    const { agent } = this.#definition
    if (agent.model) return agent as Agent // it has a model, so it is an `Agent`
    const { parentModel: model, parentConfig } = this.#context
    return defineAgent({ ...agent, model, config: agent.config ?? parentConfig })
  }

  #options(agent: Agent): InternalRunOptions {
    const { signal, shouldStop } = this.#context
    const { sharesBudget = false } = this.#definition
    return {
      signal,
      parentContext: this.#context,
      passesInterrupts: true,
      // Several runs of the same agent must not overwrite each other's checkpoints.
      sessionId: agent.checkpoints && agent.sessionId === undefined ? this.#ids() : undefined,
      shouldStop: sharesBudget ? ({ usage }: RunTotals) => shouldStop(usage) : undefined,
    }
  }

  async #follow(stream: AgentStreamResult): Promise<GenerateResult> {
    for await (const innerEvent of stream)
      this.#emit({ type: 'subagent_event', ...this.#identity, innerEvent })
    return stream.result
  }

  #end(result: GenerateResult, prompt: string): unknown {
    const { turn, state, interrupts } = result
    if (interrupts) {
      this.#fail('The sub-agent waits for an answer.', turn, result)
      return defer({ kind: 'child', request: this.#childRequest(result, prompt) })
    }
    this.#emit({
      type: 'subagent_end',
      ...this.#identity,
      success: true,
      result: turn.response.text,
      timestamp: this.#clock.now(),
      toolExecutions: turn.toolExecutions,
      usage: turn.usage,
      children: newTraces(state, this.#context),
    })
    return this.#definition.result?.(result) ?? turn.response.text
  }

  #childRequest({ state, interrupts = [] }: GenerateResult, prompt: string): JsonValue {
    const { subagentType: subagent } = this.#identity
    const request: ChildRequest = { subagent, prompt, state: state.toJSON(), interrupts }
    return request as unknown as JsonValue // all fields are JSON: `toJSON` has checked the state
  }

  #fail(error: string, turn: GenerateResult['turn'] | undefined, result?: GenerateResult): void {
    this.#emit({
      type: 'subagent_end',
      ...this.#identity,
      success: false,
      error,
      timestamp: this.#clock.now(),
      toolExecutions: turn?.toolExecutions,
      usage: turn?.usage,
      children: result && newTraces(result.state, this.#context),
    })
  }

  #emit(event: SubagentEvent): void {
    this.#context.onSubagentEvent?.(event)
  }
}

/** Returns the traces of this run's sub-agents, without those that a resumed state already contained. */
function newTraces(state: AgentState, { deferred }: AgentContext): AgentState['subagentTraces'] {
  const child = deferred && childRequestOf(deferred)
  return state.subagentTraces.slice(child?.state.subagentTraces?.length ?? 0)
}
