import type { Clock, IdSource, JsonValue } from '@skein/base'
import {
  type Admission,
  type ApprovalAnswer,
  type CallOutcome,
  type Delivery,
  type GovernedContext,
  governor,
  type GovernorLimits,
  type Policy,
  type Settlement,
  standardPolicy,
} from '@skein/governance'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import type { RuntimeEvent } from '../event.ts'
import type { AuditLine, Blob, Store } from '../store/store.ts'
import { RuntimeError } from '../error.ts'
import type { ThreadState } from '../thread-state.ts'
import { type ApprovalDesk, createApprovalDesk } from './approval-desk.ts'
import type { GovernanceKeys } from './governance-keys.ts'
import { JournaledSession } from './journaled-session.ts'
import { createSessionTasks, requestIdOf } from './session-task.ts'

/** The session that is governed: one request of the governor. */
export interface GovernedSession {
  readonly threadId: string
  readonly rootId: string
  readonly tenant: string
  readonly owner: string | null
  /** The agent that the session began with, also after a handoff. */
  readonly agent: ResolvedAgent
  readonly sessionId: string
  /** What started it. */
  readonly input: JsonValue
  /** The tools of both sides, and those that their rollbacks name. */
  readonly tools: readonly ToolDefinition[]
  /**
   * Commits at once. Called before the inverse of a write runs, within `deliver` and `fail`, because
   * then the governor acts itself; without it a crash at that moment may run the inverse again.
   */
  readonly commit?: (writes: GovernanceWrites) => Promise<void>
}

/** What the governor wrote and has not been committed yet: goes into the next commit of the thread. */
export interface GovernanceWrites {
  readonly audit: readonly AuditLine[]
  readonly spent: readonly { readonly jti: string; readonly exp: number }[]
  readonly blobs: readonly Blob[]
  /** `gate_decided` and `evidence_added`. */
  readonly events: readonly RuntimeEvent[]
}

/**
 * The gates of one session, within one drain. Nothing it says is true before its writes are committed:
 * commit after `admit` and before the tool runs. When a commit is refused, this governor knows more than
 * the log and has to be thrown away; open it again. After `TOKEN_SPENT`, `admit` the call again without
 * the token: it is `review`, and the interrupt is opened anew (`APPROVAL_REPLAYED` is why).
 */
export interface SessionGovernor {
  /** The request in the audit log. */
  readonly requestId: string
  /**
   * Asks whether a call may run. `turnId` is for the events. Run what was judged: `call.args` and
   * `call.idempotency_key` of an `allow`.
   */
  admit(
    call: {
      /** Unique in the session: some vendors use a call id twice. */
      readonly id: string
      readonly tool: string
      readonly args: JsonValue
      readonly turnId: string
      /** The call's id in events; `id` by default. */
      readonly toolCallId?: string
    },
    answer?: ApprovalAnswer,
  ): Promise<Admission>
  /**
   * Says what came of an admitted call. The result is stored: take secrets out of it first. `earlier`: a
   * call that was admitted by a drain before this one.
   */
  settle(
    callId: string,
    outcome: CallOutcome,
    turnId: string,
    earlier?: { readonly tool: string; readonly args: JsonValue; readonly toolCallId?: string },
  ): Promise<Settlement>
  /**
   * Settles a call that was running when its process died: probes it, or finds that it may run again
   * (`absent`: admit it again). Undefined: the log has no write in doubt by this id.
   */
  recoverCall(callId: string): Promise<'applied' | 'absent' | 'in_doubt' | undefined>
  /** A person says what became of a call in doubt. `absent`: it may be admitted again. */
  settleInDoubt(callId: string, found: 'applied' | 'absent'): Promise<void>
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

export interface SessionGovernorsOptions {
  /** Names this installation in the audit log; approvals are addressed to it. */
  readonly id: string
  readonly store: Store
  readonly clock: Clock
  readonly ids: IdSource
  readonly keys: Pick<GovernanceKeys, 'approvals'>
  /** Where approvals are checked; by default a desk that takes only what `keys` signed. */
  readonly desk?: ApprovalDesk
  /** Default `standardPolicy`: low-risk writes are allowed, high-risk ones go to a person. */
  readonly policy?: Policy | readonly Policy[]
  /** An approval is waited for 7 days by default, as interrupts are; keep both the same. */
  readonly limits?: GovernorLimits
  /** Runs a tool as the inverse of a write; by default without a `ThreadState`. */
  readonly undo?: (inverse: InverseCall) => Promise<unknown>
}

/** A tool to be run because a session failed or is repaired. Nobody is asked: the write was admitted with it. */
interface InverseCall {
  readonly session: GovernedSession
  readonly tool: ToolDefinition
  readonly args: JsonValue
  /** The call that is inverted. */
  readonly callId: string
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

const WEEK_MS = 7 * 24 * 3_600_000

/** Governs sessions, one request each. Everything it knows is in the store. */
export function createSessionGovernors(options: SessionGovernorsOptions): SessionGovernors {
  const { id, store, clock, ids, keys, policy = standardPolicy } = options
  const limits = { approvalTtlMs: WEEK_MS, ...options.limits }
  const desk = options.desk ?? createApprovalDesk({ id, keys, clock, ids })
  /** Sessions that are being ended here, by request: inverses run in them. */
  const ending = new Map<string, GovernedSession>()
  const tasks = createSessionTasks((tool, args, context) =>
    invert({ undo: options.undo, session: ending.get(context.requestId) }, tool, args, context),
  )
  return {
    open: (session) =>
      JournaledSession.open({
        session,
        requestId: requestIdOf(session),
        store,
        clock,
        desk,
        ending,
        task: tasks(session),
        govern: (parts) => governor({ id, clock, ids, policy, limits, ...parts }),
      }),
  }
}

async function invert(
  {
    undo,
    session,
  }: {
    readonly undo: SessionGovernorsOptions['undo']
    readonly session: GovernedSession | undefined
  },
  tool: ToolDefinition,
  args: JsonValue,
  { callId, idempotencyKey, signal }: GovernedContext,
): Promise<unknown> {
  if (undo && session) return undo({ session, tool, args, callId, idempotencyKey, signal })
  if (!tool.run) throw noState(tool.name, 'runs at the client')
  return tool.run(args, {
    get state(): ThreadState {
      throw noState(tool.name, 'asked for its thread')
    },
    signal,
    toolCallId: callId,
    toolName: tool.name,
    idempotencyKey,
  })
}

function noState(tool: string, what: string): RuntimeError {
  return new RuntimeError(`"${tool}" ${what}, and cannot be run as the inverse of a write.`, {
    code: 'TOOL_NOT_ALLOWED',
    hint: 'Declare a rollback by a tool that needs no thread, or of type "manual".',
  })
}
