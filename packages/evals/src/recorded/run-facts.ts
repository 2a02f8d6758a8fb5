import type { JsonValue } from '@skein/base'
import type { RecordedCall, RecordedUsage } from './recorded-thread.ts'

/**
 * What a check looks at: the facts of one run of an agent, whether it was recorded, replayed or run again. A run is a
 * whole thread with its descendants.
 */
export interface RunFacts {
  readonly threadId: string
  readonly agent: string
  /** How the last session ended; absent while it runs. */
  readonly end?: { readonly outcome: string; readonly reason: string } | undefined
  /** The final text: what the last session delivered. */
  readonly text: string
  /** The final data, if the agent declares an output. */
  readonly data?: JsonValue | undefined
  readonly messages: readonly FactMessage[]
  /** All calls, also those of descendants, in the order in which the models made them. */
  readonly calls: readonly FactCall[]
  readonly gates: readonly FactGate[]
  readonly evidence: readonly FactEvidence[]
  /** Sums over all requests, also those of descendants. `costUsd` is null if any price is unknown. */
  readonly usage: RecordedUsage
  readonly costUsd: number | null
  /** Requests to models that were answered. */
  readonly steps: number
  /** From the first message to the last event, in ms, with all waiting. */
  readonly durationMs: number
  /** How long models worked, in ms. */
  readonly modelMs: number
}

/** A message that people saw. */
export interface FactMessage {
  readonly id: string
  readonly at: string
  readonly from: 'user' | 'agent'
  readonly text: string
  readonly threadId: string
}

/** A call, with its thread. */
export interface FactCall extends RecordedCall {
  readonly threadId: string
}

/** A governance check that decided about a call or an answer. */
export interface FactGate {
  readonly threadId: string
  readonly gate: string
  readonly result: string
  readonly toolCallId?: string | undefined
}

/** A recorded fact with its source. */
export interface FactEvidence {
  readonly threadId: string
  readonly evidenceId: string
  readonly kind: string
  readonly toolCallId?: string | undefined
}
