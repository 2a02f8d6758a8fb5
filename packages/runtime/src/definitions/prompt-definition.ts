import type { ModelReference, Params, ToolSchema } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import type { AgentDefinition, Ref } from './agent-definition.ts'
import type { HookDefinition } from './hook-definition.ts'
import type { ModelDefinition } from './model-definition.ts'
import type { AnyTool } from './tool-definition.ts'

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
  /** The schema of the JSON with which this side answers. */
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
