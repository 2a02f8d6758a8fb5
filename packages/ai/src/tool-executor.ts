import type { Clock } from '@skein/base'
import type { ToolExecutionEndEvent, ToolExecutionStartEvent } from './event.ts'
import type { Tool, ToolCall, ToolContext, ToolOutcome, ToolUseStrategy } from './tool.ts'
import type { Warning } from './warning.ts'

/** One batch of calls from one assistant message (SEAMS: the only place where tools run). */
export interface ToolBatch {
  readonly calls: readonly ToolCall[]
  readonly tools: readonly Tool[]
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Default `parallel`; `sequential` runs calls one by one in call order. */
  readonly mode?: 'parallel' | 'sequential'
  readonly strategy?: ToolUseStrategy
  /** Extra fields of the second argument of `run`; the agent layer passes its own. */
  readonly context?: (call: ToolCall) => object
  /** Names of tools that succeeded earlier in this conversation: they satisfy `dependsOn`. */
  readonly succeeded?: ReadonlySet<string>
  /** Outcomes known already, by call id: they are not run again (resume). */
  readonly settled?: ReadonlyMap<string, ToolOutcome>
  /** Block index of each call in its message, for the events; default: position in `calls`. */
  readonly indexes?: ReadonlyMap<string, number>
  readonly hooks?: ToolHooks
  /** Awaited before a call starts and after it ended, so that a journal can make it durable. */
  readonly commit?: (effect: ToolEffect) => void | Promise<void>
}

/** The middleware's view of each call. */
export interface ToolHooks {
  onToolCall?(call: ToolCall): void | Promise<void>
  onToolResult?(call: ToolCall, result: unknown): void | Promise<void>
}

export type ToolEffect =
  | { readonly type: 'call_start'; readonly call: ToolCall }
  | { readonly type: 'call_end'; readonly call: ToolCall; readonly outcome: ToolOutcome }

/** One settled call; the list keeps call order. */
export interface SettledCall {
  readonly call: ToolCall
  readonly outcome: ToolOutcome
  readonly durationMs: number
}

export interface BatchResult {
  readonly settled: readonly SettledCall[]
  readonly warnings: readonly Warning[]
}

export type ToolExecutionEvent = ToolExecutionStartEvent | ToolExecutionEndEvent
export type { ToolContext }
