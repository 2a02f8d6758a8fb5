import type { Clock, IdSource, JsonValue } from '@skein/base'
import {
  governor,
  standardPolicy,
  type GovernorLimits,
  type GovernedContext,
  type Policy,
} from '@skein/governance'
import type { ToolDefinition } from '../definitions/types.ts'
import { RuntimeError } from '../error.ts'
import type { Store } from '../store/store.ts'
import type { ThreadState } from '../thread-state.ts'
import { createApprovalDesk, type ApprovalDesk } from './approval-desk.ts'
import type { GovernanceKeys } from './governance-keys.ts'
import { JournaledSession } from './journaled-session.ts'
import type { GovernedSession, SessionGovernors } from './session-governor.ts'
import { requestIdOf } from './session-identity.ts'
import { createSessionTasks } from './session-task.ts'

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
export interface InverseCall {
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
