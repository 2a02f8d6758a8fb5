import type { JsonValue } from '@skein/base'
import type { DeferRequest, ToolResultMessage } from '@skein/ai'

/** A call that waits for somebody. Plain data: it can be stored and answered in another process. */
export interface Interrupt {
  /** The ids of the calls that lead to the waiting one, joined by `/`; the same after each resume. */
  readonly id: string
  readonly toolCallId: string
  /** The sub-agents down to the call, outermost first; empty for a call of this agent itself. */
  readonly path: readonly string[]
  readonly kind: DeferRequest['kind']
  readonly request: JsonValue
}

/** What an interrupt is answered with. Changed arguments are a denial: the model calls again. */
export type Answer =
  /** Lets the call run. The tool finds the token in `context.answer`. */
  | { readonly type: 'approve'; readonly token?: string }
  | { readonly type: 'deny'; readonly reason: string }
  /** Is the call's result; the tool does not run. */
  | { readonly type: 'result'; readonly value: unknown }
  | { readonly type: 'error'; readonly message: string }

/**
 * Answers by interrupt id or by tool call id, in any order; those left out stay open. Where two
 * sub-agents use the same call id, only the interrupt's id is clear.
 */
export type Answers = Readonly<Record<string, Answer>>

/** What a suspended state knows about the calls of its last message. */
export interface Suspension {
  /** The results that are there, in one message so that bytes survive JSON. */
  readonly answered?: ToolResultMessage
  /** The calls that wait, with what they wait for. Calls behind them are in neither list. */
  readonly deferred: readonly DeferredCall[]
}

export interface DeferredCall {
  readonly toolCallId: string
  readonly request: DeferRequest
}
