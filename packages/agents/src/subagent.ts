import {
  isStandardSchema,
  systemClock,
  uuidV4,
  type Clock,
  type IdSource,
  type JsonSchema,
  type JsonValue,
} from '@skein/base'
import {
  defer,
  tool,
  withToolContext,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolSchema,
} from '@skein/ai'
import { agent as defineAgent } from './agent.ts'
import type {
  Agent,
  AgentInput,
  AgentStreamResult,
  GenerateResult,
  ModellessAgent,
} from './agent.ts'
import { invalidRequest, messageOf } from './agent-error.ts'
import { childRequestOf, type ChildRequest } from './answers.ts'
import type { SubagentEvent } from './event.ts'
import type { InternalRunOptions } from './run-agent.ts'
import { AgentState } from './state.ts'
import type { RunTotals } from './strategy.ts'
import type { AgentContext } from './tool-context.ts'

/** A tool that runs an agent. Its interface is written out: nothing is guessed from the agent (UAP §8.1). */
export interface SubagentDefinition<Args = Record<string, unknown>> extends Pick<
  Tool,
  'approval' | 'metadata' | 'sequential' | 'dependsOn' | 'timeoutMs'
> {
  readonly name: string
  readonly description: string
  /** JSON Schema, or a Standard Schema, by which arguments are then checked. */
  readonly parameters: JsonSchema | ToolSchema<Args>
  /** One without a model runs with its caller's. */
  readonly agent: Agent | ModellessAgent
  /** What the agent is asked. */
  readonly prompt: (args: Args) => AgentInput
  /** The tool's result. Default: the text of the answer. */
  readonly result?: (result: GenerateResult) => unknown
  /** `subagentType` in events and traces. Default: the tool's name. */
  readonly type?: string
  /** Lets the caller's stop condition end the sub-agent too, its tokens counted in. Default false. */
  readonly sharesBudget?: boolean
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Makes a tool that runs an agent: its events show in the caller's stream while they happen, its
 * trace and tokens are kept, it ends when the caller is aborted, and its interrupts become the
 * caller's.
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
  const { name, description, parameters } = definition
  const run = (args: Args, context: ToolContext): Promise<unknown> =>
    new SubagentRun(definition, context as AgentContext).run(args) // agents pass the superset
  const rest = { name, description, run, ...toolOptions(definition) }
  if (!isStandardSchema(parameters))
    return withToolContext({ ...rest, parameters: parameters as JsonSchema })
  // A schema that validates also has to describe itself, which `tool` demands by type.
  return tool({ ...rest, parameters: parameters as ToolSchema<Args> })
}

/** What a tool may have beside its interface. `approval` sees checked arguments where a schema checks. */
function toolOptions<Args>(definition: SubagentDefinition<Args>): ToolOptions<Args> {
  const names = ['approval', 'metadata', 'sequential', 'dependsOn', 'timeoutMs']
  const given = Object.entries(definition).filter(([name]) => names.includes(name))
  return Object.fromEntries(given) as ToolOptions<Args> // the names just above
}

type ToolOptions<Args> = Omit<
  ToolDefinition<Args, unknown>,
  'name' | 'description' | 'parameters' | 'run'
>

/** UAP §8.1: explicit name, description and schema, or none at all. */
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
  throw invalidRequest(
    `subagent() needs ${missing.join(', ')}.`,
    'The interface of a sub-agent is written out; nothing is taken from the agent.',
  )
}

/** One call of the tool. */
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
    const prompt = child?.prompt ?? textOf(asked ?? '')
    const timestamp = this.#clock.now()
    this.#tell({ type: 'subagent_start', ...this.#identity, prompt, timestamp })
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

  /** UAP §8.4: its own model, or its caller's; decided now, not when the tool was made. */
  #effectiveAgent(): Agent {
    const { agent } = this.#definition
    if (agent.model) return agent as Agent // it has just been seen to have a model
    const { parentModel: model, parentConfig } = this.#context
    const config = agent.config ?? parentConfig
    return defineAgent({ ...agent, model, ...(config && { config }) })
  }

  #options(agent: Agent): InternalRunOptions {
    const { signal, shouldStop } = this.#context
    const { sharesBudget = false } = this.#definition
    return {
      signal,
      parentContext: this.#context,
      takesInterrupts: true,
      // Several runs of one agent must not overwrite each other's checkpoints.
      ...(agent.checkpoints && agent.sessionId === undefined && { sessionId: this.#ids() }),
      ...(sharesBudget && { shouldStop: ({ usage }: RunTotals) => shouldStop(usage) }),
    }
  }

  async #follow(stream: AgentStreamResult): Promise<GenerateResult> {
    for await (const innerEvent of stream)
      this.#tell({ type: 'subagent_event', ...this.#identity, innerEvent })
    return stream.result
  }

  #end(result: GenerateResult, prompt: string): unknown {
    const { turn, state, interrupts } = result
    if (interrupts) {
      this.#fail('It waits for an answer.', turn, result)
      return defer({ kind: 'child', request: this.#childRequest(result, prompt) })
    }
    this.#tell({
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
    return request as unknown as JsonValue // JSON throughout: toJSON has checked the state
  }

  #fail(error: string, turn: GenerateResult['turn'] | undefined, result?: GenerateResult): void {
    this.#tell({
      type: 'subagent_end',
      ...this.#identity,
      success: false,
      error,
      timestamp: this.#clock.now(),
      ...(turn && { toolExecutions: turn.toolExecutions, usage: turn.usage }),
      ...(result && { children: newTraces(result.state, this.#context) }),
    })
  }

  #tell(event: SubagentEvent): void {
    this.#context.onSubagentEvent?.(event)
  }
}

/** The sub-agents of this run; a resumed state also has those of the runs before, told already. */
function newTraces(state: AgentState, { deferred }: AgentContext): AgentState['subagentTraces'] {
  const child = deferred && childRequestOf(deferred)
  return state.subagentTraces.slice(child?.state.subagentTraces?.length ?? 0)
}

function textOf(input: AgentInput): string {
  return typeof input === 'string' ? input : input.text
}
