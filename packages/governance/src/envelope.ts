import type { JsonObject, JsonValue } from '@skein/base'

/** The version this package writes. It reads 0.2.x and 0.3.x. */
export const UAICP_VERSION = '0.3'

/** The six phases of a run, in order. `deliver` and `fail_safe` are the only ends. */
export const STATES = ['intake', 'plan', 'execute', 'verify', 'deliver', 'fail_safe'] as const
export type State = (typeof STATES)[number]

/** What became of the thing an envelope speaks of. */
export const OUTCOMES = ['success', 'failure', 'uncertain', 'pending'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** How much freedom the acting agent has. */
export const CONTROL_CLASSES = ['autonomous', 'human-supervised', 'human-directed'] as const
export type ControlClass = (typeof CONTROL_CLASSES)[number]

/** Risk tiers of tools, rising. */
export const RISKS = ['read_only', 'write_low_risk', 'write_high_risk'] as const
export type Risk = (typeof RISKS)[number]

/** `sha256:` and 64 lower-case hex digits, over RFC 8785 canonical JSON. */
export type Hash = `sha256:${string}`

/** Who did what an entry records (§5.4): the governor, the agent, or a person. */
export interface Actor {
  readonly type: 'system' | 'agent' | 'human'
  readonly id: string
}

/** For whom and under whose control an agent acts. Further members are namespaced (`prefix:name`). */
export interface Identity {
  readonly agent_id: string
  readonly owner_id: string
  readonly user_id?: string
  readonly control_class: ControlClass
  readonly [namespaced: `${string}:${string}`]: JsonValue
}

/** How to invert a write (§5.3). `tool_call` runs the tool named by `target` with `payload`. */
export interface RollbackAction {
  readonly type: 'tool_call' | 'restore' | 'manual' | (string & {})
  readonly target: string
  readonly payload: JsonObject | string
}

/** Position of a chunk in a stream (§4.2). Before delivery `uaicp:verified` is false. */
export interface Streaming {
  readonly chunk_id: string
  readonly is_final: boolean
  readonly stream_index: number
  readonly [namespaced: `${string}:${string}`]: JsonValue
}

/** UAICP message envelope: one line of the audit log. Extensions live in `metadata`. */
export interface Envelope {
  readonly uaicp_version: string
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id?: string
  readonly state: State
  readonly timestamp: string
  readonly identity: Identity
  readonly outcome: Outcome
  readonly streaming?: Streaming
  readonly rollback_action?: RollbackAction
  readonly metadata?: JsonObject
}

/** True when `risk` is at or above `floor`. */
export function isAtLeast(risk: Risk, floor: Risk): boolean {
  return RISKS.indexOf(risk) >= RISKS.indexOf(floor)
}
