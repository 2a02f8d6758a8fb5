import type { Agent } from '@skein/agents'
import type { LLMCapabilities, ModelReference } from '@skein/ai'
import type { ModelPrices } from '@skein/ai/middleware'
import type { Problem } from './definition-error.ts'
import type { AgentDefinition, SideConfig, SideHandler } from './agent-definition.ts'
import type { EffectDefinition } from './effect-definition.ts'
import type { EndpointDefinition } from './endpoint-definition.ts'
import type { HookDefinition } from './hook-definition.ts'
import type { ModelDefinition } from './model-definition.ts'
import type {
  PromptDefinition,
  PromptPart,
  PromptToolConfig,
  SubagentToolConfig,
  SubpromptConfig,
  VariableDefinition,
} from './prompt-definition.ts'
import type { ToolDefinition } from './tool-definition.ts'
import type { Side } from '../contract/thread-state.ts'

/** An agent with all references resolved and all defaults filled in. */
export interface ResolvedAgent {
  readonly definition: AgentDefinition
  readonly name: string
  readonly type: 'ai_human' | 'dual_ai'
  readonly a: ResolvedSide
  /** Only present for `dual_ai`. */
  readonly b: ResolvedSide | undefined
  /** Infinity for `ai_human` without a limit. */
  readonly maxSessionTurns: number
  /** A hash of the definitions of this agent and of all agents that it may reach; see `fillHashes`. */
  readonly hash: string
}

/** Whether a gate checks the answers of the agent before they are delivered (UAICP §4.1): it has a task class. */
export function checksAnswers({ definition }: Pick<ResolvedAgent, 'definition'>): boolean {
  return definition.taskClass !== undefined
}

/** A side with its prompt resolved and its defaults filled in. */
export interface ResolvedSide {
  readonly config: SideConfig
  readonly side: Side
  readonly label: string
  /** The prompt. If the side is defined with `agent()`, it is built from the agent's model, system text and tools. */
  readonly prompt: ResolvedPrompt
  readonly agent: Agent | undefined
  /** A function that answers in place of a model. The prompt then has no models. */
  readonly handler: SideHandler | undefined
  /** The prompt's hooks, or the agent's hooks when the prompt lists none. */
  readonly hooks: readonly HookDefinition[]
  readonly stopOnResponse: boolean
  readonly stopTool: string | undefined
  readonly stopToolResponseProperty: string | undefined
  readonly maxSteps: number
  readonly sessionStopOnResponse: boolean
  readonly sessionStop: ResolvedBinding | undefined
  readonly sessionFail: ResolvedBinding | undefined
  readonly sessionStatus: ResolvedBinding | undefined
}

/** A tool that controls the session, e.g. ends it. */
export interface ResolvedBinding {
  readonly name: string
  readonly messageProperty: string | undefined
  readonly attachmentsProperty: string | undefined
}

/** A prompt with all references resolved. */
export interface ResolvedPrompt {
  readonly definition: PromptDefinition
  readonly name: string
  /** Text and variables; includes are replaced with their contents. */
  readonly parts: readonly Exclude<PromptPart, { type: 'include' }>[]
  /** The model, followed by its fallbacks. */
  readonly models: readonly ResolvedModel[]
  readonly tools: readonly ResolvedTool[]
  readonly variables: readonly VariableDefinition[]
}

/** A model that a prompt uses, first or as a fallback. */
export interface ResolvedModel {
  /** The name of the model's definition; without a definition, the name of the model itself. */
  readonly name: string
  readonly model: ModelReference
  /** Absent when the prompt uses a vendor's model directly. */
  readonly definition: ModelDefinition | undefined
  /** Undefined when neither the definition, the option `prices` nor the published catalog states the price. */
  readonly price: ModelPrices | undefined
  /** Which media the model itself accepts, as far as is known; it may accept fewer than its vendor's API. */
  readonly inputs: Partial<LLMCapabilities>
}

/**
 * A resolved entry of a prompt's tools: a tool to run, an agent to hand the thread over to, a subagent to
 * create or message, or a prompt to ask.
 */
export type ResolvedTool =
  | {
      readonly kind: 'tool'
      readonly name: string
      readonly tool: ToolDefinition
      readonly config: PromptToolConfig | undefined
    }
  | {
      readonly kind: 'handoff'
      readonly name: string
      readonly agent: string
      readonly description: string
    }
  | { readonly kind: 'subagent'; readonly name: string; readonly relation: Relation }
  | Subprompt

/** A prompt that is a tool of another prompt. */
export interface Subprompt {
  readonly kind: 'prompt'
  readonly name: string
  readonly description: string
  readonly prompt: ResolvedPrompt
  readonly config: SubpromptConfig
}

/** The relation of a prompt to an agent whose threads it may create as children. */
export interface Relation {
  /** Name of the agent; also the name of the tool unless the child is resumable. */
  readonly key: string
  readonly agent: string
  readonly description: string
  readonly config: SubagentToolConfig
  readonly isBlocking: boolean
  readonly isResumable: boolean
  readonly receives: Side
  /** Infinity without a limit. */
  readonly maxInstances: number
  readonly communication: 'implicit' | 'explicit'
  readonly isImmediate: boolean
  readonly nameEnv: string | undefined
  readonly descriptionEnv: string | undefined
  readonly scopedEnv: readonly string[]
  readonly optional: string | undefined
  /** Whether the child is hidden from models, so that no call can create it. */
  readonly isHidden: boolean
  /** The scoped variables that the child's prompts and its descendants require. */
  readonly requiredVariables: readonly (VariableDefinition & {
    /** Whether every agent that requires the variable has a value of its own, so that the parent needs none. */
    readonly hasDefault?: boolean
  })[]
}

/** All definitions, resolved and checked. */
export interface Registry {
  readonly agents: ReadonlyMap<string, ResolvedAgent>
  readonly tools: ReadonlyMap<string, ToolDefinition>
  readonly hooks: ReadonlyMap<string, HookDefinition>
  readonly effects: ReadonlyMap<string, EffectDefinition>
  readonly endpoints: readonly EndpointDefinition[]
  readonly warnings: readonly Problem[]
  /** The definitions of the previous version, for sessions that began with them: see `registryOf`. */
  readonly previous?: Registry | undefined
  /** The problems of edited definitions that could not be loaded; the earlier definitions stay in use. */
  readonly problems?: readonly Problem[]
  /** Returns an agent. Throws `AGENT_NOT_FOUND`, which lists the existing agents. */
  agent(name: string): ResolvedAgent
}

/** Returns the names of all models that the agents of a registry use. */
export function modelNames({ agents }: Pick<Registry, 'agents'>): readonly string[] {
  return [...new Set(modelsIn(agents).map(({ name }) => name))].toSorted()
}

/** Finds a model that an agent of the registry uses, by its name. */
export function modelNamed(
  { agents }: Pick<Registry, 'agents'>,
  name: string,
): ResolvedModel | undefined {
  return modelsIn(agents).find((model) => model.name === name)
}

function modelsIn(agents: Registry['agents']): readonly ResolvedModel[] {
  const sides = [...agents.values()].flatMap(({ a, b }) => (b ? [a, b] : [a]))
  return sides.flatMap(({ prompt }) => prompt.models)
}
