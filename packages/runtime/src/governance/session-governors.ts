import type { Clock, IdSource, JsonValue } from '@skein/base'
import {
  governor,
  standardPolicy,
  type GovernedContext,
  type GovernorLimits,
  type Policy,
} from '@skein/governance'
import { createApprovalSigner, type ApprovalSigner } from './approval-signer.ts'
import { recordFinding, type Finding } from './findings.ts'
import { recordResidency, type ResidencyDecision } from './residency-record.ts'
import type { GovernanceKeys } from './governance-keys.ts'
import { usableGrant, withGrants, type GrantPolicyOptions, type ToolGrant } from './grant-policy.ts'
import { JournaledSession, type JournaledSessionParts } from './journaled-session.ts'
import { recordGrant, type GrantChange } from './record-grant.ts'
import type {
  DecidedUndo,
  GovernanceWrites,
  GovernedSession,
  SessionGovernor,
  WriteDecision,
} from './session-governor.ts'
import { sessionRequestId } from './session-identity.ts'
import { createSessionTasks } from './session-tasks.ts'
import { RuntimeError } from '../contract/error.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Store } from '../store/store.ts'

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
  /** Signs and checks approvals. Default: a signer that accepts only signatures of `keys`. */
  readonly signer?: ApprovalSigner
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
  const signer = options.signer ?? createApprovalSigner({ id, keys, clock, ids })
  /** Sessions that are ending, by request id. They are needed when a tool undoes one of their writes. */
  const ending = new Map<string, GovernedSession>()
  const tasks = createSessionTasks((tool, args, context) =>
    invert({ undo: options.undo, session: ending.get(context.requestId) }, tool, args, context),
  )
  const policies = [policy].flat()
  return {
    async signGrant(grant) {
      return (await signer.signToolGrant(grant)).grant
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
      signer: signer,
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
