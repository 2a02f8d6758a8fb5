import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type {
  ModelReference,
  Params,
  ProviderConfig,
  Tool,
  ToolContext,
  ToolSchema,
} from '@skein/ai'
import type { Agent } from '@skein/agents'
import type { Governance, Risk, TaskClass } from '@skein/governance'
import type { ThreadState } from '../contract/thread-state.ts'
import type { HookName, HookSignatures } from './hooks.ts'

/** A definition, or the name of one that is registered. */
export type Ref<Definition> = string | Definition

/** An agent (Standard Agents §1): two sides, and when their conversation ends. */
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
  /** Whether prompts may list the agent as a tool: an `ai_human` agent is a handoff, a `dual_ai` one a subagent. */
  readonly exposeAsTool?: boolean
  readonly toolDescription?: string
  /** Default values of variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Used by prompts that list no hooks themselves. */
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
  readonly stopTool?: Ref<AnyTool>
  /** Property of the stop tool's arguments, else of its JSON result, that becomes the turn's text. */
  readonly stopToolResponseProperty?: string
  /** Steps of this side in one session, after which the session fails. */
  readonly maxSteps?: number
  readonly sessionStop?: SessionToolBinding
  readonly sessionFail?: SessionToolBinding
  readonly sessionStatus?: SessionToolBinding
}

/** A tool whose success controls the session (Standard Agents §4). */
export type SessionToolBinding =
  | Ref<AnyTool>
  | {
      readonly name: Ref<AnyTool>
      readonly messageProperty?: string
      readonly attachmentsProperty?: string
    }

/** The text, the model and the tools of one side. */
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
  /** The side answers in JSON of this shape. */
  readonly output?: ToolSchema<unknown>
  readonly variables?: readonly VariableDefinition[]
  readonly tools?: readonly PromptTool[]
  readonly env?: Readonly<Record<string, string>>
  readonly reasoning?: ReasoningOptions
  /** Images older than this many messages become a line of text. Default 10. */
  readonly recentImageThreshold?: number
  /** Options for the vendor; they override those of the model definition. */
  readonly providerOptions?: Params
  /** An empty list means no hooks; without a list the agent's hooks are used. */
  readonly hooks?: readonly Ref<HookDefinition>[]
  readonly compaction?: CompactionOptions
}

/** How much the model reasons, and what becomes of its reasoning. */
export interface ReasoningOptions {
  /** Translated to the setting of the vendor, if it has one. */
  readonly effort?: 'low' | 'medium' | 'high'
  /** Reasoning is neither stored nor sent back to the model. */
  readonly exclude?: boolean
}

/** When and how a long conversation is summarised for the model. The log keeps everything. */
export interface CompactionOptions {
  /** Estimated tokens of a request at which it is summarised. Default: 80 % of the model's context. */
  readonly maxTokens?: number
  /** Messages at the end that are not summarised. Default 20. */
  readonly keepMessages?: number
  /** False never compacts. */
  readonly enabled?: boolean
}

/** One part of a prompt's text. */
export type PromptPart =
  | { readonly type: 'text'; readonly content: string }
  | { readonly type: 'include'; readonly prompt: Ref<PromptDefinition> }
  /** The value of a variable. A secret is refused when the prompt is loaded. */
  | { readonly type: 'env'; readonly property: string }

/** A variable of the thread that a prompt or a tool reads. */
export interface VariableDefinition {
  readonly name: string
  readonly type?: 'text' | 'secret'
  readonly required?: boolean
  /** Belongs to one child thread and is never inherited by others. */
  readonly scoped?: boolean
  readonly description?: string
}

/** What a prompt may list as a tool. */
export type PromptTool = Ref<AnyTool> | AgentDefinition | SubagentToolConfig | PromptToolConfig

/** A tool with settings of its own in this prompt. */
export interface PromptToolConfig {
  readonly name: Ref<AnyTool>
  /** Values of the tool's variables; they override all others. */
  readonly env?: Readonly<Record<string, string>>
  readonly options?: JsonObject
}

/** A `dual_ai` agent as a tool (Standard Agents §7.4). */
export interface SubagentToolConfig {
  readonly name: Ref<AgentDefinition>
  /** The parent waits for the result. Default true. */
  readonly blocking?: boolean
  /** Name of the argument that is the child's first message. Default: all arguments as JSON. */
  readonly initUserMessageProperty?: string
  /** Name of the argument that holds the path, or the paths, of files for the child. */
  readonly initAttachmentsProperty?: string
  /** Name of the argument that names the instance. */
  readonly initAgentNameProperty?: string
  /** Creates the child as soon as the prompt becomes active, before the first step. */
  readonly immediate?: boolean | ImmediateOptions
  /** Name of a variable. The tool exists only while its value is `true`, `1` or `yes`. */
  readonly optional?: string
  readonly resumable?: false | ResumableOptions
}

/** Settings of a subagent that is created at once. */
export interface ImmediateOptions {
  readonly nameEnv?: string
  readonly descriptionEnv?: string
  /** Variables handed to the child, never shown to a model. */
  readonly scopedEnv?: readonly string[]
}

/** Settings of a subagent that lives on after its first session. */
export interface ResumableOptions {
  /** Which side gets the parent's messages: `side_a` (default) or `side_b`. */
  readonly receives_messages?: 'side_a' | 'side_b'
  readonly receivesMessages?: 'side_a' | 'side_b'
  readonly maxInstances?: number
  /** Default `implicit`: the parent gets a message when a session of the child ends. */
  readonly parentCommunication?: 'implicit' | 'explicit'
}

/** A model, its fallbacks and its prices. */
export interface ModelDefinition {
  readonly kind: 'model'
  readonly name: string
  readonly model: ModelReference
  readonly config?: ProviderConfig
  /** Used in this order when the model fails. */
  readonly fallbacks?: readonly (Ref<ModelDefinition> | ModelReference)[]
  /** US dollars per million tokens. */
  readonly inputPrice?: number
  readonly outputPrice?: number
  readonly cachedPrice?: number
  readonly capabilities?: { readonly maxContextTokens?: number; readonly maxOutputTokens?: number }
  /** Sent to the vendor unchanged. */
  readonly providerOptions?: Params
}

/** The risk of a tool, how to undo it, and how to find out whether it ran; see `@skein/governance`. */
export interface ToolGovernance<Args = never, Result = unknown> extends Governance<Args, Result> {
  readonly risk: Risk
}

/**
 * A tool of any origin: made with `defineTool`, with `tool()` of `@skein/ai`, with `governed()` of
 * `@skein/governance`, by an MCP server, or an object of UPP's shape. One that declares no `risk` counts as
 * `write_low_risk`. A tool that wants the thread finds its state in the context (`context.state`).
 */
export type AnyTool = ToolDefinition | Tool

/** A tool as the runtime uses it; see `defineTool`. */
export interface ToolDefinition {
  readonly kind: 'tool'
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  /** Absent for a tool that runs at the client: its calls wait for a result. */
  readonly run?: (params: JsonValue, context: RuntimeToolContext) => Promise<unknown>
  /** The tier, as in `governance`; here for those who take the tool as a UPP tool. */
  readonly risk?: Risk
  readonly governance: ToolGovernance
  readonly variables?: readonly VariableDefinition[]
  /** The only tools that this one may queue or invoke. */
  readonly uses?: readonly Ref<AnyTool>[]
  readonly timeoutMs?: number
}

/** What a tool is given in the runtime: the context of UPP, and the thread. */
export interface RuntimeToolContext extends ToolContext {
  readonly state: ThreadState
  /** The same for every attempt of one call, also after a crash. */
  readonly idempotencyKey: string
  /** Settings of the prompt for this tool. */
  readonly options?: JsonObject
}

/** Code that runs at a fixed point of a thread; see `HookSignatures`. */
export interface HookDefinition<Name extends HookName = HookName> {
  readonly kind: 'hook'
  readonly id: string
  readonly hook: Name
  readonly execute: HookSignatures[Name]
  /** Default 5 s. A hook that takes longer is logged, and its result is ignored. */
  readonly timeoutMs?: number
}

/** Scheduled work: once after a delay, or repeatedly by a calendar. */
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
  /** E.g. `orders/[id]`; `[*]` matches the rest of the path. */
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly execute: (
    request: Request,
    state: ThreadState,
    params: Readonly<Record<string, string>>,
  ) => Response | Promise<Response>
}
