import { type Clock, type IdSource, type JsonValue } from '@skein/base'
import {
  type Admission,
  type ApprovalAnswer,
  defineTaskClass,
  type GovernedOutcome,
  type GovernedContext,
  governor,
  type GovernorLimits,
  type Policy,
  type Reason,
  type Settlement,
  standardPolicy,
  governed,
  type GovernedTool,
  type TaskClass,
  type Undo,
} from '@skein/governance'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import type { RuntimeEvent, SessionName, WriteLeft } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { AuditLine, Blob, Store } from '../store/store.ts'
import { RuntimeError } from '../contract/error.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import {
  type ApprovalDesk,
  createApprovalDesk,
  type GrantPolicyOptions,
  type ToolGrant,
  withGrants,
  type GrantChange,
  usableGrant,
  recordGrant,
} from './approval-desk.ts'
import type { DelegateSession } from './delegates.ts'
import { type Finding, recordFinding } from './findings.ts'
import { recordResidency, type ResidencyDecision } from './residency-record.ts'
import type { GovernanceKeys } from './governance-keys.ts'
import { JournaledSession, type JournaledSessionParts } from './journaled-session.ts'
import { sessionRequestId } from './session-journal.ts'

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
  /** The tools of both sides of the conversation, and the tools that their rollbacks name. */
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
   * Commits at once. `deliver`, `fail` and `undoDecided` call it before they undo a write, because the governor itself runs
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
   * again.
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

/** Opens the governor of a session, or restores it from the audit log. */
export interface SessionGovernors {
  open(session: GovernedSession): Promise<SessionGovernor>
  /**
   * Carries out a person's decision about a write that was in doubt when its session failed: a request of its own, whose
   * last entries have to be committed with the answer. `session.delegates` returns the session that made the write.
   */
  undoDecided(session: GovernedSession, decision: WriteDecision): Promise<DecidedUndo>
  /** Signs a person's consent to all calls of a tool in a thread until a time (ms). */
  signGrant(
    grant: Required<Omit<ToolGrant, 'grant'>> & { readonly grantId: string },
  ): Promise<string>
  /** Returns the lines of the audit log that say who has made or revoked a grant, and when. */
  recordGrant(change: GrantChange): Promise<Pick<GovernanceWrites, 'audit' | 'blobs'>>
  /** Returns the lines of the audit log that say what was found out about a call after its session had ended. */
  recordFinding(finding: Finding): Promise<Pick<GovernanceWrites, 'audit' | 'blobs'>>
  /** Returns the lines of the audit log that say where a request to a model was processed. */
  recordResidency(decision: ResidencyDecision): Promise<GovernanceWrites>
}

/** Options of `createSessionGovernors`. */
export interface SessionGovernorsOptions {
  /** Name of this installation in the audit log; approvals are addressed to it. */
  readonly id: string
  readonly store: Store
  readonly clock: Clock
  readonly ids: IdSource
  readonly keys: Pick<GovernanceKeys, 'approvals'>
  /** The desk that checks approvals. Default: a desk that accepts only signatures of `keys`. */
  readonly desk?: ApprovalDesk
  /**
   * Decides about calls. Default `standardPolicy`: low-risk writes are allowed, a person decides about
   * high-risk writes.
   */
  readonly policy?: Policy | readonly Policy[]
  /**
   * Default: the governor waits 7 days for an approval. Use the same time as `interruptTtlMs` of the runtime.
   */
  readonly limits?: GovernorLimits
  /** Returns the standing grants of a thread as the store has them now. Default: threads have none. */
  readonly grants?: (threadId: string) => Promise<KernelState['grants'] | undefined>
  /** Runs a tool that undoes a write. By default it runs without a `ThreadState`. */
  readonly undo?: (inverse: InverseCall) => Promise<unknown>
}

/**
 * A call of the tool that undoes a write, because the session failed or its result has to be made anew. The
 * call was admitted together with the write.
 */
interface InverseCall {
  readonly session: GovernedSession
  readonly tool: ToolDefinition
  readonly args: JsonValue
  /** Id of the call whose write is undone. */
  readonly callId: string
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

const WEEK_MS = 7 * 24 * 3_600_000

/** Creates the object that opens the governor of each session. All state of the governors is in the store. */
export function createSessionGovernors(options: SessionGovernorsOptions): SessionGovernors {
  const { id, store, clock, ids, keys, policy = standardPolicy } = options
  const limits = { approvalTtlMs: WEEK_MS, ...options.limits }
  const desk = options.desk ?? createApprovalDesk({ id, keys, clock, ids })
  /** Sessions that are ending, by request id. They are needed when a tool undoes one of their writes. */
  const ending = new Map<string, GovernedSession>()
  const tasks = createSessionTasks((tool, args, context) =>
    invert({ undo: options.undo, session: ending.get(context.requestId) }, tool, args, context),
  )
  const policies = [policy].flat()
  return {
    async signGrant(grant) {
      return (await desk.signToolGrant(grant)).grant
    },
    recordGrant: (change) => recordGrant({ id, clock, ids, store }, change),
    recordResidency: (decision) => recordResidency({ id, clock, ids, store }, decision),
    recordFinding: (finding) => recordFinding({ id, clock, ids, store }, finding),
    open: (session) => JournaledSession.open(partsOf(session, sessionRequestId(session))),
    undoDecided: (session, decision) =>
      JournaledSession.undoDecided(partsOf(session, decision.id), decision),
  }

  function partsOf(session: GovernedSession, requestId: string): JournaledSessionParts {
    return {
      session,
      requestId,
      store,
      clock,
      desk,
      ending,
      tasks,
      govern: (parts) => {
        const find: GrantPolicyOptions['find'] = async ({ threadId, tool, risk }) => {
          // A grant that another process has just made is not seen yet: then a person is asked.
          if (session.hasGrants?.() !== true) return undefined
          return usableGrant(await options.grants?.(threadId), { threadId, tool, risk })
        }
        const own = session.hasGrants ? withGrants(policies, { find, clock }) : policies
        return governor({ id, clock, ids, policy: own, limits, ...parts })
      },
    }
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

/** Runs a tool in order to undo a write. */
type Invert = (tool: ToolDefinition, args: JsonValue, context: GovernedContext) => Promise<unknown>

/**
 * Returns the rules for a session: the task class of its agent, with the session's tools. Built once per
 * agent.
 */
export type SessionTasks = (session: Pick<GovernedSession, 'agent' | 'tools'>) => TaskClass

/** Creates the function that builds the rules of sessions; `invert` runs a tool in order to undo a write. */
export function createSessionTasks(invert: Invert): SessionTasks {
  const known = new WeakMap<
    ResolvedAgent,
    { readonly tools: readonly ToolDefinition[]; readonly task: TaskClass }
  >()
  return ({ agent, tools }) => {
    const before = known.get(agent)
    const isSame =
      before?.tools.length === tools.length && tools.every((one, at) => one === before.tools[at])
    if (before && isSame) return before.task
    // Both sides of the conversation may list the same tool.
    const byName = new Map(tools.map((tool) => [tool.name, tool]))
    const { taskClass = PLAIN } = agent.definition
    const list = [...byName.values()].map((tool) => toGoverned(tool, invert))
    const task = defineTaskClass({ ...taskClass, tools: list })
    known.set(agent, { tools: [...tools], task })
    return task
  }
}

/** The rules (task class) for agents without their own: only calls are judged, and every result is delivered. */
const PLAIN = { name: 'session', needs: [], verifiers: [], acceptInDoubt: true } as const

/**
 * Converts a tool for the governor. The governor never makes the calls of a session, so it uses `run` only to
 * undo a write.
 */
function toGoverned(tool: ToolDefinition, invert: Invert): GovernedTool {
  const { name, description, parameters, governance } = tool
  const run = (args: JsonValue, context: GovernedContext): Promise<unknown> =>
    invert(tool, args, context)
  // The casts treat all arguments as JSON; the tool's own `run` checks them.
  return governed(
    { name, description, parameters, run } as Parameters<typeof governed<JsonValue, unknown>>[0],
    governance as Parameters<typeof governed<JsonValue, unknown>>[1],
  ) as GovernedTool
}
