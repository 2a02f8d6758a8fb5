import type { Agent } from '@skein/agents'
import type { ModelReference } from '@skein/ai'
import type { Side } from '../thread-state.ts'
import type {
  AgentDefinition,
  EffectDefinition,
  EndpointDefinition,
  HookDefinition,
  ModelDefinition,
  PromptDefinition,
  PromptPart,
  PromptToolConfig,
  SideConfig,
  SubagentToolConfig,
  ToolDefinition,
  VariableDefinition,
} from './types.ts'

/** An agent with every reference found and every default in place. */
export interface ResolvedAgent {
  readonly definition: AgentDefinition
  readonly name: string
  readonly type: 'ai_human' | 'dual_ai'
  readonly a: ResolvedSide
  /** Present for `dual_ai` only. */
  readonly b: ResolvedSide | undefined
  /** Infinity for `ai_human` without a cap. */
  readonly maxSessionTurns: number
}

export interface ResolvedSide {
  readonly config: SideConfig
  readonly side: Side
  readonly label: string
  /** Of a side with an `agent`: a prompt made of the agent's model, system text and tools. */
  readonly prompt: ResolvedPrompt
  readonly agent: Agent | undefined
  /** The prompt's hooks, or the agent's when the prompt lists none. */
  readonly hooks: readonly HookDefinition[]
  readonly stopOnResponse: boolean
  readonly stopTool: string | undefined
  readonly stopToolResponseProperty: string | undefined
  readonly maxSteps: number
  readonly sessionStop: ResolvedBinding | undefined
  readonly sessionFail: ResolvedBinding | undefined
  readonly sessionStatus: ResolvedBinding | undefined
}

export interface ResolvedBinding {
  readonly name: string
  readonly messageProperty: string | undefined
  readonly attachmentsProperty: string | undefined
}

export interface ResolvedPrompt {
  readonly definition: PromptDefinition
  readonly name: string
  /** Includes are unfolded: text and variables alone. */
  readonly parts: readonly Exclude<PromptPart, { type: 'include' }>[]
  /** The model and then its fallbacks. */
  readonly models: readonly ResolvedModel[]
  readonly tools: readonly ResolvedTool[]
  readonly variables: readonly VariableDefinition[]
}

export interface ResolvedModel {
  /** Name of its definition, else of the model. */
  readonly name: string
  readonly model: ModelReference
  /** Absent when the prompt names a model directly. */
  readonly definition: ModelDefinition | undefined
}

/** What a call by this name does. */
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

/** A prompt's link to an agent that it may create children of. */
export interface Relation {
  /** Name of the agent; also the tool's name when it is not resumable. */
  readonly key: string
  readonly agent: string
  readonly description: string
  readonly config: SubagentToolConfig
  readonly isBlocking: boolean
  readonly isResumable: boolean
  readonly receives: Side
  /** Infinity without a cap. */
  readonly maxInstances: number
  readonly communication: 'implicit' | 'explicit'
  readonly isImmediate: boolean
  readonly nameEnv: string | undefined
  readonly descriptionEnv: string | undefined
  readonly scopedEnv: readonly string[]
  readonly optional: string | undefined
  /** Scoped variables that the child's prompts and their descendants require. */
  readonly requiredVariables: readonly VariableDefinition[]
}

/** Everything that is defined, found and checked. */
export interface Registry {
  readonly agents: ReadonlyMap<string, ResolvedAgent>
  readonly tools: ReadonlyMap<string, ToolDefinition>
  readonly hooks: ReadonlyMap<string, HookDefinition>
  readonly effects: ReadonlyMap<string, EffectDefinition>
  readonly endpoints: readonly EndpointDefinition[]
  readonly warnings: readonly Problem[]
  /** Throws `AGENT_NOT_FOUND` naming the agents there are. */
  agent(name: string): ResolvedAgent
}

/** Something wrong with a definition. */
export interface Problem {
  /** e.g. `agent "support"`. */
  readonly subject: string
  /** e.g. `sideA.prompt`. */
  readonly field: string
  readonly message: string
  /** The file it came from, where it was discovered. */
  readonly file?: string
}
