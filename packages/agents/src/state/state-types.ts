import type { JsonObject, JsonValue, RecordedArguments } from '@skein/base'
import type { DeferRequest, MessageJSON, TokenUsage, ToolResultMessage, Turn } from '@skein/ai'

/** A state as JSON (UAP §12.1). */
export interface AgentStateJSON {
  readonly version: string
  readonly id: string
  readonly messages: readonly MessageJSON[]
  readonly step: number
  readonly metadata: JsonObject
  readonly reasoning?: readonly string[]
  readonly plan?: readonly PlanStep[]
  readonly subagentTraces?: readonly SubagentExecutionTrace[]
  /** Set only while calls of the last message wait for an answer. */
  readonly suspension?: SuspensionJSON
  /** What the latest run has done; `resume` continues it, `generate` and `stream` start a new one. */
  readonly run?: RunAccount
}

/**
 * What one run has done so far, before and after each `resume`. It is kept in the state, so that limits do
 * not start again with `resume`.
 */
export type RunAccount = {
  /** The prefix of the idempotency keys of the run's calls and of the session ids of its sub-agents. */
  readonly id: string
  /** For a sub-agent: the id of the caller's message that contains its call. */
  readonly origin?: string
  /**
   * Increases with each state that is made to be saved; of two states of a run, the one with the higher
   * number is newer.
   */
  readonly revision: number
  readonly steps: number
  /** Finished rounds of tool calls. Absent before the first. */
  readonly rounds?: number
  /** New plans that failed steps have led to (`plan`). Absent before the first. */
  readonly replans?: number
  /** Steps of sub-agents that have ended and share the budget of this run. */
  readonly subagentSteps: number
  /** Milliseconds of work, without the time between an interrupt and `resume`. */
  readonly durationMs: number
  /** The agent's own tokens. */
  readonly usage: TokenUsage
  /** Tokens of all sub-agents that have ended, at any depth. */
  readonly subagentUsage: TokenUsage
}

/** What a run has done so far, before and after each `resume`, and the tokens it has used. */
export interface RunTotals {
  /** What this call of the agent has produced so far, as a turn. */
  readonly turn: Turn
  /** Tokens used, including those of all sub-agents. */
  readonly usage: TokenUsage
  /** The number of steps started by the run and by the sub-agents that share its budget. */
  readonly steps: number
  /** Milliseconds that the run has worked, without the time in which it waited for answers. */
  readonly durationMs: number
}

/** A suspension as JSON. */
export interface SuspensionJSON {
  readonly answered?: MessageJSON
  readonly deferred: Suspension['deferred']
}

/** The progress of a plan step. */
export type PlanStepStatus = 'pending' | 'in_progress' | 'completed' | 'failed'

/** One step of a plan (UAP §5.4). */
export interface PlanStep {
  readonly id: string
  readonly description: string
  /** The tool to use, if the planner named one. */
  readonly tool?: string
  /** Ids of the steps that must be completed first. */
  readonly dependsOn: readonly string[]
  readonly status: PlanStepStatus
}

/** One tool call of a sub-agent, as its trace stores it (UAP §8.8). */
export interface ToolExecutionTrace {
  readonly toolName: string
  readonly toolCallId?: string
  readonly arguments: JsonObject
  /** A string result unchanged; any other result as JSON text. */
  readonly result: string
  readonly isError?: boolean
  /** Milliseconds. */
  readonly duration?: number
}

/** The record of one sub-agent's run, stored in the state of the agent that called it (UAP §8.8). */
export interface SubagentExecutionTrace {
  readonly subagentId: string
  readonly subagentType: string
  readonly parentToolCallId: string
  readonly prompt: string
  /** Milliseconds since the epoch. */
  readonly startTime: number
  readonly endTime: number
  readonly success: boolean
  readonly result?: string
  readonly error?: string
  readonly toolExecutions?: readonly ToolExecutionTrace[]
  /** The sub-agent's own tokens, without those of its sub-agents. */
  readonly usage?: TokenUsage
  /** Traces of the sub-agents that this sub-agent called. */
  readonly children?: readonly SubagentExecutionTrace[]
}

/** A call that waits for an answer. Plain data: it can be stored and answered in another process. */
export interface Interrupt {
  /** The ids of the calls that lead to the waiting call, joined by `/`. The id stays the same after each resume. */
  readonly id: string
  readonly toolCallId: string
  /** The sub-agents that lead to the call, outermost first; empty for a call of this agent itself. */
  readonly path: readonly string[]
  readonly kind: DeferRequest['kind']
  readonly request: JsonValue
  /**
   * The arguments with which the call will run, if its tool parses them: with defaults and transforms. What the model
   * sent is in the messages.
   */
  readonly arguments?: JsonObject
}

/** The answer to an interrupt. To change arguments, deny the call: the model then calls again. */
export type Answer =
  /**
   * Lets the call run. The tool can read the token and the data in `context.answer`. `data` are the fields that a
   * person has filled in, e.g. those of an MCP server's question.
   */
  | { readonly type: 'approve'; readonly token?: string; readonly data?: JsonObject }
  | { readonly type: 'deny'; readonly reason: string }
  /** Becomes the call's result; the tool does not run. */
  | { readonly type: 'result'; readonly value: unknown }
  | { readonly type: 'error'; readonly message: string }

/**
 * Answers by interrupt id or by tool call id, in any order; interrupts without an answer stay open. If two
 * sub-agents use the same call id, only the interrupt id is unambiguous.
 */
export type Answers = Readonly<Record<string, Answer>>

/** The known results and the waiting calls of a suspended state's last message. */
export interface Suspension {
  /** The results that are already known, as one message, because the JSON of a message can contain bytes. */
  readonly answered?: ToolResultMessage
  /** The calls that wait. Calls that could not start because of these are neither here nor in `answered`. */
  readonly deferred: readonly DeferredCall[]
}

/** A call that waits, and what it waits for. */
export interface DeferredCall {
  readonly toolCallId: string
  readonly request: DeferRequest
  /** The parsed arguments, with which the call runs after an approval; undefined for a tool that parses nothing. */
  readonly parsed?: RecordedArguments
  /** The answer, if a run had it when its process died; `resume` uses it without asking again. */
  readonly answer?: Answer
  /** The answers for interrupts of the sub-agent inside this call, by the id that each has inside the sub-agent. */
  readonly answers?: Answers
}
