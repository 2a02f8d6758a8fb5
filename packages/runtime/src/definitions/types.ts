import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { ModelReference, Params, ProviderConfig, ToolSchema } from '@skein/ai'
import type { Agent } from '@skein/agents'
import type { Governance, Policy, Risk, TaskClass } from '@skein/governance'
import type { ThreadState } from '../thread-state.ts'
import type { HookName, HookSignatures } from './hooks.ts'

/** A definition, or the name of one that is registered. */
export type Ref<Definition> = string | Definition

/** An agent (Standard Agents §1): two sides and how their conversation ends. */
export interface AgentDefinition {
  readonly name: string
  readonly sideA: SideConfig
  /** Required for `dual_ai`. */
  readonly sideB?: SideConfig
  /** Default `ai_human`. */
  readonly type?: 'ai_human' | 'dual_ai'
  /** Turns of both sides together after which a session fails. Default 250 for `dual_ai`. */
  readonly maxSessionTurns?: number
  readonly title?: string
  readonly description?: string
  readonly icon?: string
  /** Whether prompts may list it as a tool: `ai_human` is a handoff, `dual_ai` a subagent. */
  readonly exposeAsTool?: boolean
  readonly toolDescription?: string
  /** Default values of variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Used by prompts that list none themselves. */
  readonly hooks?: readonly Ref<HookDefinition>[]
  readonly packageName?: string
  readonly version?: string
  readonly author?: string
  readonly license?: string
  /** What must hold before a session of this agent may deliver (UAICP). */
  readonly taskClass?: AgentTaskClass
  readonly budget?: Budget
}

/** A task class whose tools are the agent's own. */
export type AgentTaskClass = Omit<TaskClass, 'tools'>

/** Limits of one thread, or with `tree` of a thread and all its descendants. */
export interface Budget {
  readonly maxTokens?: number
  readonly maxCostUsd?: number
  readonly maxDurationMs?: number
  readonly tree?: Omit<Budget, 'tree'>
}

/** One side of an agent (Standard Agents §3): a prompt, or an `agent()` of `@skein/agents`. */
export interface SideConfig {
  readonly prompt?: Ref<PromptDefinition>
  /**
   * An `agent()` of `@skein/agents`, in place of a prompt: its model, system text, tools, params and
   * execution strategy. Each of its inferences and calls is committed and gated like those of a prompt,
   * so its strategy has to ask the same again when it is run again (see `InferenceRecorded`).
   */
  readonly agent?: Agent
  readonly label?: string
  /** Text without tool calls ends the turn. Default true. */
  readonly stopOnResponse?: boolean
  /** A call of this tool ends the turn, whether or not it succeeds. */
  readonly stopTool?: Ref<ToolDefinition>
  /** Property of the stop tool's arguments, else of its JSON result, that becomes the turn's text. */
  readonly stopToolResponseProperty?: string
  /** Steps of this side in one session, after which the session fails. */
  readonly maxSteps?: number
  readonly sessionStop?: SessionToolBinding
  readonly sessionFail?: SessionToolBinding
  readonly sessionStatus?: SessionToolBinding
}

/** A tool whose success controls the session (§4). */
export type SessionToolBinding =
  | Ref<ToolDefinition>
  | {
      readonly name: Ref<ToolDefinition>
      readonly messageProperty?: string
      readonly attachmentsProperty?: string
    }

/** What one side is told and may use. */
export interface PromptDefinition {
  readonly kind: 'prompt'
  readonly name: string
  readonly prompt: string | readonly PromptPart[]
  readonly model: Ref<ModelDefinition> | ModelReference
  readonly toolDescription?: string
  /** Whether the stored conversation is sent. Default true. */
  readonly includeChat?: boolean
  /** Whether calls and results of earlier turns are sent. Default true. */
  readonly includePastTools?: boolean
  /** Lets neighbouring calls of `read_only` tools overlap. Default false. */
  readonly parallelToolCalls?: boolean
  readonly toolChoice?: 'auto' | 'none' | 'required'
  /** Arguments of an agent whose side A uses this prompt, when it is called as a tool. */
  readonly requiredSchema?: ToolSchema<unknown>
  /** Answers of the side are JSON of this shape. */
  readonly output?: ToolSchema<unknown>
  readonly variables?: readonly VariableDefinition[]
  readonly tools?: readonly PromptTool[]
  readonly env?: Readonly<Record<string, string>>
  readonly reasoning?: ReasoningOptions
  /** Images older than this many messages become a line of text. Default 10. */
  readonly recentImageThreshold?: number
  /** Merged over the model's. */
  readonly providerOptions?: Params
  /** An empty list means none; absent means the agent's. */
  readonly hooks?: readonly Ref<HookDefinition>[]
  readonly compaction?: CompactionOptions
}

export interface ReasoningOptions {
  /** In the vendor's own words, where it has any. */
  readonly effort?: 'low' | 'medium' | 'high'
  /** Reasoning is neither stored nor sent again. */
  readonly exclude?: boolean
}

/** When and how a long conversation is summarised. The log keeps everything. */
export interface CompactionOptions {
  /** Estimated tokens of the request at which it happens; default 80 % of the model's context. */
  readonly maxTokens?: number
  /** Messages at the end that stay as they are. Default 20. */
  readonly keepMessages?: number
  /** False never compacts. */
  readonly enabled?: boolean
}

export type PromptPart =
  | { readonly type: 'text'; readonly content: string }
  | { readonly type: 'include'; readonly prompt: Ref<PromptDefinition> }
  /** A variable of the thread; secrets are refused when the prompt is loaded. */
  | { readonly type: 'env'; readonly property: string }

export interface VariableDefinition {
  readonly name: string
  readonly type?: 'text' | 'secret'
  readonly required?: boolean
  /** Belongs to one child; never inherited by others. */
  readonly scoped?: boolean
  readonly description?: string
}

/** What a prompt may list as a tool. */
export type PromptTool =
  Ref<ToolDefinition> | AgentDefinition | SubagentToolConfig | PromptToolConfig

/** A tool with settings of its own in this prompt. */
export interface PromptToolConfig {
  readonly name: Ref<ToolDefinition>
  /** Strongest values of its variables. */
  readonly env?: Readonly<Record<string, string>>
  readonly options?: JsonObject
}

/** A `dual_ai` agent as a tool (§7.4). */
export interface SubagentToolConfig {
  readonly name: Ref<AgentDefinition>
  /** The parent waits for the result. Default true. */
  readonly blocking?: boolean
  /** Argument that is the child's first message; default: all arguments as JSON. */
  readonly initUserMessageProperty?: string
  /** Argument that holds the path, or the paths, of files to hand over. */
  readonly initAttachmentsProperty?: string
  /** Argument that names the instance. */
  readonly initAgentNameProperty?: string
  /** Created as soon as the prompt becomes active, before the first step. */
  readonly immediate?: boolean | ImmediateOptions
  /** Name of a variable; the branch exists only while it is `true`, `1` or `yes`. */
  readonly optional?: string
  readonly resumable?: false | ResumableOptions
}

export interface ImmediateOptions {
  readonly nameEnv?: string
  readonly descriptionEnv?: string
  /** Variables handed to the child, never shown to a model. */
  readonly scopedEnv?: readonly string[]
}

export interface ResumableOptions {
  /** Which side hears the parent: `side_a` (default) or `side_b`. */
  readonly receives_messages?: 'side_a' | 'side_b'
  readonly receivesMessages?: 'side_a' | 'side_b'
  readonly maxInstances?: number
  /** Default `implicit`: the end of a session is told to the parent. */
  readonly parentCommunication?: 'implicit' | 'explicit'
}

/** A model, its stand-ins and what it costs. */
export interface ModelDefinition {
  readonly kind: 'model'
  readonly name: string
  readonly model: ModelReference
  readonly config?: ProviderConfig
  /** Asked in order when the model fails. */
  readonly fallbacks?: readonly (Ref<ModelDefinition> | ModelReference)[]
  /** US dollars per million tokens. */
  readonly inputPrice?: number
  readonly outputPrice?: number
  readonly cachedPrice?: number
  readonly capabilities?: { readonly maxContextTokens?: number; readonly maxOutputTokens?: number }
  /** Go to the vendor unchanged. */
  readonly providerOptions?: Params
}

/** What a tool does to the world, and how to undo or look at it; see `@skein/governance`. */
export interface ToolGovernance<Args = never, Result = unknown> extends Governance<Args, Result> {
  readonly risk: Risk
}

/** A tool of the runtime; `run` has the shape of UPP, with `context.state` added. */
export interface ToolDefinition {
  readonly kind: 'tool'
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  /** Absent for a tool that runs at the client: its calls wait for a result. */
  readonly run?: (params: JsonValue, context: RuntimeToolContext) => Promise<unknown>
  readonly governance: ToolGovernance
  readonly variables?: readonly VariableDefinition[]
  /** The only tools it may queue or invoke. */
  readonly uses?: readonly Ref<ToolDefinition>[]
  readonly timeoutMs?: number
}

/** What a tool is given. */
export interface RuntimeToolContext {
  readonly state: ThreadState
  readonly signal: AbortSignal
  readonly toolCallId: string
  readonly toolName: string
  /** The same for every try of one call, also after a crash. */
  readonly idempotencyKey: string
  /** Settings of the prompt for this tool. */
  readonly options?: JsonObject
}

/** Code that runs at a fixed point; see `HookSignatures`. */
export interface HookDefinition<Name extends HookName = HookName> {
  readonly kind: 'hook'
  readonly id: string
  readonly hook: Name
  readonly execute: HookSignatures[Name]
  /** Default 5 s; a hook that takes longer is logged and passed over. */
  readonly timeoutMs?: number
}

/** Work that is scheduled: once after a delay, or by a calendar. */
export interface EffectDefinition {
  readonly kind: 'effect'
  readonly name: string
  readonly description?: string
  readonly run: (state: ThreadState, args: JsonValue, signal: AbortSignal) => Promise<unknown>
  readonly retry?: { readonly attempts: number; readonly backoffMs: number }
  /** Default 60 s. */
  readonly timeoutMs?: number
}

/** A route of a thread: `{prefix}/threads/{threadId}/x/{path}`. */
export interface EndpointDefinition {
  readonly kind: 'endpoint'
  /** e.g. `orders/[id]`; `[*]` takes the rest. */
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly execute: (
    request: Request,
    state: ThreadState,
    params: Readonly<Record<string, string>>,
  ) => Response | Promise<Response>
}

export type { Policy }
