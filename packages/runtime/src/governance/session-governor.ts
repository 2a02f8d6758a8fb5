import type { JsonValue } from '@skein/base'
import type {
  Admission,
  ApprovalAnswer,
  CallOutcome,
  Delivery,
  Settlement,
} from '@skein/governance'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import type { RuntimeEvent } from '../event.ts'
import type { AuditLine, Blob } from '../store/store.ts'

/** The session that is governed: one request of the governor. */
export interface GovernedSession {
  readonly threadId: string
  readonly rootId: string
  readonly tenant: string
  readonly owner: string | null
  readonly agent: ResolvedAgent
  readonly sessionId: string
  /** What started it. */
  readonly input: JsonValue
  /** The tools of both sides, by name. */
  readonly tools: readonly ToolDefinition[]
}

/** What the governor wrote and has not been committed yet: goes into the next commit of the thread. */
export interface GovernanceWrites {
  readonly audit: readonly AuditLine[]
  readonly spent: readonly { readonly jti: string; readonly exp: number }[]
  readonly blobs: readonly Blob[]
  /** `gate_decided` and `evidence_added`. */
  readonly events: readonly RuntimeEvent[]
}

/** The gates of one session, within one drain. Nothing it says is true before its writes are committed. */
export interface SessionGovernor {
  /** Asks whether a call may run. `turnId` is for the events. */
  admit(
    call: {
      readonly id: string
      readonly tool: string
      readonly args: JsonValue
      readonly turnId: string
    },
    answer?: ApprovalAnswer,
  ): Promise<Admission>
  settle(callId: string, outcome: CallOutcome, turnId: string): Promise<Settlement>
  /** Judges the session's result. Sessions without a task class are always delivered. */
  deliver(candidate: JsonValue): Promise<Delivery>
  /** Ends the request of a session that failed, was stopped or terminated; inverts its writes. */
  fail(code: string, message: string): Promise<void>
  /** What has to be committed; empties itself. */
  takeWrites(): GovernanceWrites
}

/** Opens the governor of a session, or takes it up again from the audit log. */
export interface SessionGovernors {
  open(session: GovernedSession): Promise<SessionGovernor>
}
