import type { JsonValue } from '@skein/base'

/** A call of the recorded run, as running the thread again would make it. */
export interface ListedEffect {
  readonly threadId: string
  readonly toolName: string
  readonly arguments: JsonValue
  readonly risk: 'read_only' | 'write_low_risk' | 'write_high_risk' | 'unknown'
  /** Whether the policy or the risk needs a person's approval. */
  readonly needsApproval: boolean
}
