import type { Agent } from '@skein/agents'
import type { TaskClass } from '@skein/governance'
import type { HookDefinition } from './hook-definition.ts'
import type { PromptDefinition, SubagentToolConfig } from './prompt-definition.ts'
import type { AnyTool } from './tool-definition.ts'
import type { ThreadState } from '../contract/thread-state.ts'

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
  /** The total turns of both sides after which a session fails. Default 250 for `dual_ai`. */
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
  /** This side is a person. Only side B can be one. */
  readonly human?: true
  /**
   * A function that answers in place of a model. It may run again if the process dies before its answer is
   * stored; its changes to the thread are stored together with the answer.
   */
  readonly handler?: SideHandler
  /** Agents that this side may create as children, in addition to those that its prompt lists. */
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
  /** The number of steps of this side in one session after which the session fails. */
  readonly maxSteps?: number
  /**
   * Whether the session ends when this side ends its turn; the text of the turn is then the result, and the other side
   * never speaks. Default false. `asSubagent` sets it.
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
    /** The text that the side has to answer; empty if a session began without one. */
    readonly message: string
    readonly signal: AbortSignal
    /** A key that is the same for every attempt of one answer, even after a crash. */
    readonly idempotencyKey: string
  },
) => string | void | Promise<string | void>

/** An agent that a side may create as a child, with its settings (Standard Agents 0.2.0). */
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
