import type { JsonObject } from '@skein/base'
import type { CostUsd } from './thread-info.ts'
import type { Side } from './thread-state.ts'

/** One model request of a thread, with its answer or failure. */
export interface ModelLog {
  readonly logId: string
  readonly stepId: string
  readonly at: string
  readonly side: Side
  readonly prompt: string
  /** The call that made the request, where a prompt is used as a tool; absent for an agent's own requests. */
  readonly toolCallId?: string
  readonly provider: string
  readonly model: string
  readonly attempt: number
  readonly durationMs?: number
  readonly firstTokenMs?: number
  readonly finishReason?: string
  readonly usage?: JsonObject
  /** Absent until the request was answered; null when the price of the model is unknown. */
  readonly costUsd?: CostUsd
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string }
}

/** A model request as it was sent, rebuilt from the log. It never contains secrets. */
export interface ModelLogDetail extends ModelLog {
  readonly system: string | null
  readonly tools: readonly JsonObject[]
  readonly params: JsonObject
  /** The JSON Schema that the answer had to follow. */
  readonly structure?: JsonObject
  readonly messages: readonly JsonObject[]
  readonly messageId?: string
}
