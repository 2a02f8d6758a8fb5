import type { StopReason } from './event.ts'
import type { AssistantMessage, Message } from './message.ts'
import type { DeferRequest, ToolExecution } from './tool.ts'
import type { TokenUsage } from './usage.ts'
import type { Warning } from './warning.ts'

/** The complete result of one `generate` or `stream` call (UPP §7.1). Frozen. */
export interface Turn<Data = unknown> {
  /** Inputs and everything produced, in order; history is not part of it. */
  readonly messages: readonly Message[]
  readonly response: AssistantMessage
  readonly toolExecutions: readonly ToolExecution[]
  readonly usage: TokenUsage
  /** One entry per inference, with the vendor's raw numbers. */
  readonly usageByCycle: readonly TokenUsage[]
  readonly cycles: number
  /** Present only when `structure` was given. */
  readonly data?: Data
  readonly stopReason: StopReason
  readonly rawStopReason?: string
  readonly warnings: readonly Warning[]
  /** Calls of `response` that nobody answered: limit reached, deferred, or `maxIterations: 0`. */
  readonly openCalls: readonly OpenCall[]
}

/** A call left open at the end of a turn; `request` tells what it waits for, if it was deferred. */
export interface OpenCall {
  readonly toolCallId: string
  readonly request?: DeferRequest
}
