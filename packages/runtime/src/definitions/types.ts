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
import type { Governance, Probed, Risk, TaskClass } from '@skein/governance'
import type { ThreadState } from '../contract/thread-state.ts'
import type { HookName, HookSignatures } from './hooks.ts'

/** A definition, or the name of a registered definition. */
export type Ref<Definition> = string | Definition

/**
 * An agent (Standard Agents §1): who talks on side A and on side B of its conversations, and when a session ends.
 */
export interface AgentDefinition<Data = unknown> {
  readonly name: string
  readonly sideA: SideConfig
  /** Required for `dual_ai`. */
  readonly sideB?: SideConfig
  /** Default `ai_human`. */
  readonly type?: 'ai_human' | 'dual_ai'
  /** The total turns of both sides of the conversation after which a session fails. Default 250 for `dual_ai`. */
  readonly maxSessionTurns?: number
  readonly title?: string
  readonly description?: string
  readonly icon?: string
  /**
   * Whether prompts may list the agent as a tool. An `ai_human` agent is then a handoff, a `dual_ai` agent a
   * subagent.
   */
  readonly exposeAsTool?: boolean
  readonly toolDescription?: string
  /** Default values of variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Hooks for prompts that list no hooks themselves. */
  readonly hooks?: readonly Ref<HookDefinition>[]
  readonly packageName?: string
  readonly version?: string
  readonly author?: string
  readonly license?: string
  /** The conditions under which a session of this agent may deliver its result (UAICP). */
  readonly taskClass?: AgentTaskClass
  readonly budget?: Budget
  /** Never set; only carries the type of the data that a session returns (`output`). */
  readonly '~data'?: Data
}

/**
 * An agent that talks with a person and has one prompt: its fields are those of `AgentDefinition` and of
 * `PromptDefinition`, where `instructions` is the text of the prompt. `defineAgent` makes side A and its prompt of them.
 */
export interface SimpleAgent<Data = unknown>
  extends
    Omit<AgentDefinition<Data>, 'sideA' | 'sideB' | 'type' | 'toolDescription' | 'env' | 'hooks'>,
    Omit<PromptDefinition<Data>, 'kind' | 'name' | 'prompt'>,
    Pick<SideConfig, 'maxSteps' | 'label'> {
  /** The text of the prompt: what the agent is and how it works. */
  readonly instructions: PromptDefinition['prompt']
  readonly sideA?: undefined
}

/** The rules of governance for an agent (a UAICP task class). The tools are the agent's own, so none are listed. */
export type AgentTaskClass = Omit<TaskClass, 'tools'>

/** Limits of one thread or, with `tree`, of a thread and all its descendants. */
export interface Budget {
  readonly maxTokens?: number
  readonly maxCostUsd?: number
  readonly maxDurationMs?: number
  readonly tree?: Omit<Budget, 'tree'>
}

/**
 * One of the two sides that talk with each other (Standard Agents §3): a prompt, or an `agent()` of `@skein/agents`.
 * `human`, `handler` and `subagents` are fields of Standard Agents 0.2.0. An agent that uses one of them needs no
 * `type`: it is `ai_human` if its side B is a person or absent, else `dual_ai`.
 */
export interface SideConfig<Data = unknown> {
  readonly prompt?: Ref<PromptDefinition<Data>>
  /**
   * An `agent()` of `@skein/agents` instead of a prompt, with its model, system text, tools, params and execution
   * strategy. Its inferences and calls are committed and judged like those of a prompt, so its strategy must make
   * the same requests when it is run again (see `InferenceRecorded`).
   */
  readonly agent?: Agent
  /** This side of the conversation is a person. Only side B can be one. */
  readonly human?: true
  /**
   * A function that answers in place of a model. It may run again if the process dies before its answer is
   * stored; its changes to the thread are stored together with the answer.
   */
  readonly handler?: SideHandler
  /** Agents that this side of the conversation may create as children, in addition to those that its prompt lists. */
  readonly subagents?: readonly (Ref<AgentDefinition> | SideSubagent)[]
  readonly label?: string
  /** Whether text without tool calls ends the turn. Default true. */
  readonly stopOnResponse?: boolean
  /** A tool whose call ends the turn, whether or not the call succeeds. */
  readonly stopTool?: Ref<AnyTool>
  /**
   * The property of the stop tool's arguments, or else of its JSON result, that becomes the text of the turn.
   */
  readonly stopToolResponseProperty?: string
  /** The number of steps of this side of the conversation in one session after which the session fails. */
  readonly maxSteps?: number
  /**
   * Whether the session ends when this side of the conversation ends its turn; the text of the turn is then the
   * result, and the other side never speaks. Default false. `asSubagent` sets it.
   */
  readonly sessionStopOnResponse?: boolean
  readonly sessionStop?: SessionToolBinding
  readonly sessionFail?: SessionToolBinding
  readonly sessionStatus?: SessionToolBinding
}

/** Answers a message in place of a model: returns the text of the answer, or ends the session through `state`. */
export type SideHandler = (
  state: ThreadState,
  given: {
    /** The text that the side of the conversation has to answer; empty if a session began without one. */
    readonly message: string
    readonly signal: AbortSignal
    /** A key that is the same for every attempt of one answer, even after a crash. */
    readonly idempotencyKey: string
  },
) => string | void | Promise<string | void>

/** An agent that a side of the conversation may create as a child, with its settings (Standard Agents 0.2.0). */
export interface SideSubagent extends Omit<SubagentToolConfig, 'name'> {
  readonly agent: Ref<AgentDefinition>
  /** The name of the tool. Default: the name of the agent. */
  readonly as?: string
  /** Default: the `toolDescription` of the agent. */
  readonly description?: string
  /** Whether the child is hidden from models. It can then only start by itself (`immediate`). */
  readonly hidden?: boolean
  /** Variables that are passed to the child and never shown to a model. */
  readonly scopedEnv?: readonly string[]
}

/** A tool that controls the session, e.g. ends it, when its call succeeds (Standard Agents §4). */
export type SessionToolBinding =
  | Ref<AnyTool>
  | {
      readonly name: Ref<AnyTool>
      readonly messageProperty?: string
      readonly attachmentsProperty?: string
    }

/** The text, the model and the tools of one side of an agent's conversation. */
export interface PromptDefinition<Data = unknown> {
  readonly kind: 'prompt'
  readonly name: string
  readonly prompt: string | readonly PromptPart[]
  readonly model: Ref<ModelDefinition> | ModelReference
  readonly toolDescription?: string
  /** Whether the stored conversation is sent to the model. Default true. */
  readonly includeChat?: boolean
  /** Whether calls and results of earlier turns are sent to the model. Default true. */
  readonly includePastTools?: boolean
  /** Whether consecutive calls of `read_only` tools may run in parallel. Default false. */
  readonly parallelToolCalls?: boolean
  readonly toolChoice?: 'auto' | 'none' | 'required'
  /** The schema of the arguments when an agent whose side A uses this prompt is called as a tool. */
  readonly requiredSchema?: ToolSchema<unknown>
  /** The schema of the JSON with which this side of the conversation answers. */
  readonly output?: ToolSchema<Data>
  readonly variables?: readonly VariableDefinition[]
  readonly tools?: readonly PromptTool[]
  readonly env?: Readonly<Record<string, string>>
  readonly reasoning?: ReasoningOptions
  /**
   * The number of last messages whose images and other media are sent; in older messages a line of text
   * replaces them. Default 10.
   */
  readonly recentImageThreshold?: number
  /** Vendor options; they override those of the model definition. */
  readonly providerOptions?: Params
  /** An empty list means no hooks; without a list the agent's hooks are used. */
  readonly hooks?: readonly Ref<HookDefinition>[]
  readonly compaction?: CompactionOptions
}

/** How much the model reasons, and whether its reasoning is kept. */
export interface ReasoningOptions {
  /** Translated to the vendor's setting, if the vendor has such a setting. */
  readonly effort?: 'low' | 'medium' | 'high'
  /** Whether reasoning is dropped instead of stored and sent back to the model. */
  readonly exclude?: boolean
}

/** When and how a long conversation is summarised for the model. The log keeps everything. */
export interface CompactionOptions {
  /** The estimated tokens of a request above which messages are summarised. Default: 80 % of the model's context. */
  readonly maxTokens?: number
  /** The number of last messages that are not summarised. Default 20. */
  readonly keepMessages?: number
  /** False disables compaction. */
  readonly enabled?: boolean
}

/** One part of a prompt's text. */
export type PromptPart =
  | { readonly type: 'text'; readonly content: string }
  | { readonly type: 'include'; readonly prompt: Ref<PromptDefinition> }
  /** The value of a variable. Loading rejects a prompt that contains a secret. */
  | { readonly type: 'env'; readonly property: string }

/** A variable of the thread that a prompt or a tool reads. */
export interface VariableDefinition {
  readonly name: string
  readonly type?: 'text' | 'secret'
  readonly required?: boolean
  /** Whether the variable belongs to a single child thread and is never inherited. */
  readonly scoped?: boolean
  readonly description?: string
}

/** An entry in the tools of a prompt. */
export type PromptTool =
  | Ref<AnyTool>
  | AgentDefinition
  | PromptDefinition
  | SubagentToolConfig
  | PromptToolConfig
  | SubpromptConfig

/**
 * A prompt as a tool: a call of it is one request to the model of that prompt, in the same thread and without a
 * session of its own. Its arguments follow the `requiredSchema` of the prompt; its result is the text of the answer,
 * or the data of the prompt's `output`. Its model is shown the conversation only with `includeChat: true`.
 */
export interface SubpromptConfig {
  readonly name: Ref<PromptDefinition>
  /** Name of the argument that becomes the message. Default: all arguments as JSON. */
  readonly initUserMessageProperty?: string
  /** Name of the argument that contains the path or paths of files, which the message names. */
  readonly initAttachmentsProperty?: string
  /** Whether the calling model is shown the answer. Default true. */
  readonly includeTextResponse?: boolean
  /** Whether the calling model is shown why a request failed. Default true. */
  readonly includeErrors?: boolean
  /** Accepted but without effect, because a prompt that is a tool makes no calls. */
  readonly includeToolCalls?: boolean
}

/** A tool with settings for this prompt. */
export interface PromptToolConfig {
  readonly name: Ref<AnyTool>
  /** Values of the tool's variables; they override all other values. */
  readonly env?: Readonly<Record<string, string>>
  readonly options?: JsonObject
}

/** A `dual_ai` agent as a tool (Standard Agents §7.4). */
export interface SubagentToolConfig {
  readonly name: Ref<AgentDefinition>
  /** Whether the parent waits for the result. Default true. */
  readonly blocking?: boolean
  /** Name of the argument that becomes the child's first message. Default: all arguments as JSON. */
  readonly initUserMessageProperty?: string
  /** Name of the argument that contains the path or paths of files for the child. */
  readonly initAttachmentsProperty?: string
  /** Name of the argument that contains a name for the new child. */
  readonly initAgentNameProperty?: string
  /** Whether the child is created as soon as the prompt becomes active, before the first step. */
  readonly immediate?: boolean | ImmediateOptions
  /** Name of a variable. The tool is available only while its value is `true`, `1` or `yes`. */
  readonly optional?: string
  readonly resumable?: false | ResumableOptions
}

/** Settings of a subagent that is created immediately. */
export interface ImmediateOptions {
  readonly nameEnv?: string
  readonly descriptionEnv?: string
  /** Variables that are passed to the child and never shown to a model. */
  readonly scopedEnv?: readonly string[]
}

/** Settings of a subagent that continues to exist after its first session. */
export interface ResumableOptions {
  /** The side of the child's conversation that receives the parent's messages: `side_a` (default) or `side_b`. */
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
  /** Models that are tried in this order when the model fails. */
  readonly fallbacks?: readonly (Ref<ModelDefinition> | ModelReference)[]
  /** US dollars per million tokens. */
  readonly inputPrice?: number
  readonly outputPrice?: number
  readonly cachedPrice?: number
  readonly capabilities?: {
    readonly maxContextTokens?: number
    readonly maxOutputTokens?: number
    /** Whether the model takes images and PDFs. Default: as its provider and the catalog say. */
    readonly supportsImages?: boolean
    /** Whether the model takes audio. Default: as its provider and the catalog say. */
    readonly supportsAudio?: boolean
  }
  /** Options that are sent to the vendor unchanged. */
  readonly providerOptions?: Params
}

/** The risk of a tool, how to undo a call, and how to find out whether it ran; see `@skein/governance`. */
export interface ToolGovernance<Args = never, Result = unknown> extends Governance<Args, Result> {
  readonly risk: Risk
}

/**
 * A tool of any origin: made with `defineTool`, with `tool()` of `@skein/ai`, with `governed()` of
 * `@skein/governance`, by an MCP server, or any object with the fields of a `Tool`. Without a `risk` it is
 * treated as `write_low_risk`, or as `write_high_risk` if it comes from an MCP server. A tool can access the state of its thread as `context.state`.
 */
export type AnyTool = ToolDefinition | Tool

/** A tool as the runtime uses it; see `defineTool`. */
export interface ToolDefinition {
  readonly kind: 'tool'
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  /** Runs the tool. Absent for a tool that runs at the client: its calls wait for a result. */
  readonly run?: (params: JsonValue, context: RuntimeToolContext) => Promise<unknown>
  /** The same risk as in `governance`, for code that uses the tool as a `Tool` of `@skein/ai`. */
  readonly risk?: Risk
  /** As in `governance`. */
  readonly idempotent?: boolean
  readonly governance: ToolGovernance
  readonly variables?: readonly VariableDefinition[]
  /** The only tools that this tool may queue or invoke. */
  readonly uses?: readonly Ref<AnyTool>[]
  readonly timeoutMs?: number
}

/** The context that a tool receives in the runtime: the context of every `Tool`, and the thread. */
export interface RuntimeToolContext extends ToolContext {
  readonly state: ThreadState
  /** A key that is the same for every attempt of one call, even after a crash. */
  readonly idempotencyKey: string
  /** The prompt's settings for this tool. */
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

/**
 * Scheduled work that runs once after a delay, or repeatedly by a cron expression. It runs at most once for
 * each scheduled time, also when a process dies, unless it declares that it may run again: see `idempotent`. After a
 * failure it runs again as `retry` says.
 */
export interface EffectDefinition {
  readonly kind: 'effect'
  readonly name: string
  readonly description?: string
  readonly run: (state: ThreadState, args: JsonValue, context: EffectContext) => Promise<unknown>
  /**
   * The risk of the scheduled effect. With it, every run is judged by the policy and recorded in the audit log, and a
   * person has to approve `write_high_risk`. Without it, the effect counts as `write_low_risk` and is judged
   * only if the agent of its thread has rules of governance (`taskClass`).
   */
  readonly risk?: Risk
  /**
   * Whether running the effect twice with one idempotency key does the same as running it once. It then runs again if a
   * process died during it. Default false, also with `retry`.
   */
  readonly idempotent?: boolean
  /** Finds out whether the effect happened, after a process died during it. It must not change anything. */
  readonly probe?: (
    args: JsonValue,
    context: EffectContext,
  ) => Probed | boolean | Promise<Probed | boolean>
  /**
   * How often a scheduled effect is tried, and the delay between attempts, which doubles. A crash is an attempt. An
   * attempt whose outcome is unknown is repeated only if the effect is declared `idempotent`, or reads only.
   */
  readonly retry?: { readonly attempts: number; readonly backoffMs: number }
  /** Default 60 s. */
  readonly timeoutMs?: number
}

/** The context of one attempt of a scheduled effect. */
export interface EffectContext {
  readonly signal: AbortSignal
  readonly effectId: string
  /** The number of the attempt, from 1; attempts that a crash cut off are counted. */
  readonly attempt: number
  /** A key that is the same for every attempt of one run, and different for each run of a cron expression. */
  readonly idempotencyKey: string
}

/** A route of a thread: `{prefix}/threads/{threadId}/x/{path}`. */
export interface EndpointDefinition {
  readonly kind: 'endpoint'
  /** E.g. `orders/[id]`; `[*]` matches the rest of the path. */
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Whether `execute` may be called again if a value that it read was changed before its own changes were
   * stored. Set it to false for code with side effects that must not be repeated; such a request is then
   * answered with `STATE_CONFLICT` (409). Default true.
   */
  readonly isRepeatable?: boolean
  readonly execute: (
    request: Request,
    state: ThreadState,
    params: Readonly<Record<string, string>>,
  ) => Response | Promise<Response>
}
