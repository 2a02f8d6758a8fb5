import type { JsonValue } from '@skein/base'
import type {
  Admission,
  ApprovalAnswer,
  GovernedOutcome,
  Reason,
  Settlement,
  Undo,
} from '@skein/governance'
import type { DelegateSession } from './delegates.ts'
import type { RuntimeEvent, SessionName, WriteLeft } from '../contract/event.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { AuditLine, Blob } from '../store/commit.ts'

/** A session whose calls and result a governor judges. For the governor it is one request. */
export interface GovernedSession {
  readonly threadId: string
  readonly rootId: string
  readonly tenant: string
  readonly owner: string | null
  /** The agent that the session began with, also after a handoff. */
  readonly agent: ResolvedAgent
  readonly sessionId: string
  /** The message that started the session. */
  readonly input: JsonValue
  /** The tools of both sides, and the tools that their rollbacks name. */
  readonly tools: readonly ToolDefinition[]
  /** The sessions of threads above that this one works for, the outermost first. */
  readonly callers?: readonly SessionName[]
  /**
   * Finds the sessions of subagents that worked for this one. When it fails, their writes are undone with its own.
   * Without it, the session has no subagents. See `findDelegates`.
   */
  readonly delegates?: (request: {
    readonly requestId: string
    readonly from: number
  }) => Promise<readonly DelegateSession[]>
  /** Returns the tools of another agent, and the tools that their rollbacks name. */
  readonly toolsOf?: (agent: ResolvedAgent) => readonly ToolDefinition[]
  /** Whether the thread may have standing grants. Without this function, grants are not looked up. */
  readonly hasGrants?: () => boolean
  /**
   * Commits immediately. `deliver`, `fail` and `undoDecided` call it before they undo a write, because the governor itself runs
   * the tool that undoes it. Without `commit`, a crash at that moment may undo the write twice.
   */
  readonly commit?: (writes: GovernanceWrites) => Promise<void>
}

/** The writes of the governor that are not committed yet. They become part of the thread's next commit. */
export interface GovernanceWrites {
  readonly audit: readonly AuditLine[]
  readonly spent: readonly { readonly jti: string; readonly exp: number }[]
  readonly blobs: readonly Blob[]
  /** Events of type `gate_decided` and `evidence_added`. */
  readonly events: readonly RuntimeEvent[]
}

/**
 * The governor of one session, for one stretch of work on the thread (a drain). Its answers are valid only
 * after its writes are committed, so commit after `admit` and before the tool runs. When a commit is refused,
 * the state of this governor is ahead of the log: discard it and open it again. After `TOKEN_SPENT`, call
 * `admit` again without the token; it answers `review`, and the person is asked again with the reason
 * `APPROVAL_REPLAYED`.
 */
export interface SessionGovernor {
  /** The id under which the audit log records this session, as one request. */
  readonly requestId: string
  /**
   * Decides whether a call may run. `turnId` is written to the events. After `allow`, run the tool with
   * `call.args` and `call.idempotency_key` of the answer, because exactly these were judged.
   */
  admit(
    call: {
      /**
       * An id that is unique in the session; the vendor's call id is not enough, because some vendors use an
       * id twice.
       */
      readonly id: string
      readonly tool: string
      /** The parsed arguments, with which the call would run. */
      readonly args: JsonValue
      /** What the model sent, if the tool has made other arguments of it; people see both. */
      readonly sent?: JsonValue
      readonly turnId: string
      /** The call's id in events; `id` by default. */
      readonly toolCallId?: string
    },
    answer?: ApprovalAnswer,
  ): Promise<Admission>
  /**
   * Records the outcome of an admitted call. The result is stored, so secrets must be removed first.
   * `earlier` describes a call that was admitted before this governor was opened.
   */
  settle(
    callId: string,
    outcome: GovernedOutcome,
    turnId: string,
    earlier?: { readonly tool: string; readonly args: JsonValue; readonly toolCallId?: string },
  ): Promise<Settlement>
  /**
   * Settles a call that was running when its process died. `absent` means that it may run again, after
   * another `admit`. Undefined means that the log has no write with this id whose outcome is open.
   */
  recoverCall(callId: string): Promise<'applied' | 'absent' | 'in_doubt' | undefined>
  /**
   * Records a person's answer about a call that a crash interrupted. After `absent` the call may be admitted
   * again. Records nothing if the answer is known: work that ended the session, and died, stores it with the first undo.
   */
  settleInDoubt(callId: string, found: 'applied' | 'absent'): Promise<void>
  /**
   * Records how a call ended whose outcome was recorded as unknown (in doubt), or never recorded. Returns false, and
   * records nothing, if the outcome of the call is known, or if the request is being ended.
   */
  settleLate(callId: string, outcome: GovernedOutcome, turnId: string): Promise<boolean>
  /**
   * Judges the result of the session. If the agent has no rules for results (task class), all are delivered. A session
   * that fails has undone nothing yet: `fail` does that.
   */
  deliver(candidate: JsonValue): Promise<SessionDelivery>
  /**
   * Ends the request of a session that failed, was stopped or terminated, and undoes its writes and those of the
   * subagents that worked for it. Returns what became of each; undefined if the result was delivered before. With
   * `leavesWrites`, a session above does that.
   */
  fail(
    code: string,
    message: string,
    options?: { readonly leavesWrites?: boolean },
  ): Promise<FailedSession | undefined>
  /** Returns the writes that have to be committed, and clears them. */
  takeWrites(): GovernanceWrites
}

/** The judgement of the result of a session. */
export type SessionDelivery =
  | { readonly type: 'delivered' }
  | { readonly type: 'repair'; readonly why: readonly Reason[]; readonly undo: readonly Undo[] }
  | { readonly type: 'failing'; readonly reasons: readonly Reason[] }

/** How a session failed, with every write of it and of its subagents, the last one first. */
export interface FailedSession {
  readonly reasons: readonly Reason[]
  readonly writes: readonly FailedWrite[]
}

/** A write of a session that failed. */
export interface FailedWrite extends Undo {
  /** The thread that made the write, and its agent. */
  readonly threadId: string
  readonly agent: string
  readonly arguments: JsonValue
  /** Whether this session has undone it, or tried to; else the subagent did when its own session failed. */
  readonly isOwn: boolean
}

/** What became of a write after a person's decision. */
export interface DecidedUndo extends Pick<Undo, 'status' | 'error'> {
  readonly writes: GovernanceWrites
}

/** A person's decision about a write in doubt. */
export interface WriteDecision extends Pick<WriteLeft, 'requestId' | 'call'> {
  /** A UUID that is the same whenever this decision is carried out. */
  readonly id: string
  readonly found: 'applied' | 'absent' | 'unknown'
  readonly by: string
}
