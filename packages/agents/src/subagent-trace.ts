import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '@skein/ai'

/** One tool call of a sub-agent, as its trace keeps it (UAP §8.8). */
export interface ToolExecutionTrace {
  readonly toolName: string
  readonly toolCallId?: string
  readonly arguments: JsonObject
  /** A string as it is; anything else as JSON. */
  readonly result: string
  readonly isError?: boolean
  /** Milliseconds. */
  readonly duration?: number
}

/** What one sub-agent did, kept in the state of the agent that called it (UAP §8.8). */
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
  /** Traces of the sub-agents that it called in turn. */
  readonly children?: readonly SubagentExecutionTrace[]
}
