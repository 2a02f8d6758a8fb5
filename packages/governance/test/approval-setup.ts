import { manualClock, type ManualClock } from '@skein/base'
import {
  type Action,
  actionDigest,
  type ApprovalRequest,
  type Approvals,
  hashJson,
  type SpentStore,
} from '../src/index.ts'
import {
  type ApprovalIssuer,
  approvals,
  type ApprovalsOptions,
} from '../src/approvals/approvals.ts'
import { generateKey, type PrivateJwk, type PublicJwk } from '../src/keys/keys.ts'
import { memorySpent } from '../src/contract/spent-store.ts'
import { type ApproveOptions, approve } from '../src/approvals/approval-token.ts'

export const START: number = Date.UTC(2026, 0, 1, 12)
export const AUDIENCE = 'governor.test'
export const ISSUER = 'bank'

export function action(changes: Partial<Action> = {}): Action {
  const args = changes.args ?? { wire: 'W-1', amount: 250 }
  return {
    request_id: '0190aaaa-0000-7000-8000-000000000001',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    call_id: 'c1',
    task: 'wire-reversal',
    tool: 'reverse_wire',
    risk: 'write_high_risk',
    identity: {
      agent_id: 'agent-1',
      owner_id: 'bank',
      user_id: 'uma',
      control_class: 'human-supervised',
    },
    depth: 0,
    rollback: { type: 'tool_call', target: 'reinstate_wire', payload: { wire: 'W-1' } },
    policy_hash: hashJson('policy'),
    ...changes,
    args,
    args_hash: changes.args_hash ?? hashJson(args),
  }
}

export function request(
  changes: Partial<Action> = {},
  rest: Partial<ApprovalRequest> = {},
): ApprovalRequest {
  const subject = action(changes)
  return {
    id: 'r1',
    digest: actionDigest(subject),
    action: subject,
    expires_at: new Date(START + 600_000).toISOString(),
    quorum: 1,
    excluded: ['agent-1'],
    ...rest,
  }
}

export interface Desk {
  readonly clock: ManualClock
  readonly approvals: Approvals
  readonly publicJwk: PublicJwk
  readonly privateJwk: PrivateJwk
  /** Signs as a person of the desk. */
  sign(request: ApprovalRequest, changes?: Partial<ApproveOptions>): Promise<string>
}

/** A governor's approvals with one issuer and its key. */
export async function desk(
  options: Partial<ApprovalsOptions> & {
    issuer?: Partial<ApprovalIssuer>
    spent?: SpentStore
  } = {},
): Promise<Desk> {
  const clock = manualClock(START)
  const { publicJwk, privateJwk } = await generateKey({ alg: options.issuer?.alg ?? 'Ed25519' })
  const { issuer, ...rest } = options
  return {
    clock,
    publicJwk,
    privateJwk,
    approvals: approvals({
      audience: AUDIENCE,
      issuers: { [ISSUER]: { keys: [publicJwk], may: () => true, ...issuer } },
      spent: memorySpent({ clock }),
      clock,
      ...rest,
    }),
    sign: (asked, changes = {}) =>
      approve(asked, {
        audience: AUDIENCE,
        issuer: ISSUER,
        approver: 'ana',
        key: privateJwk,
        ttlMs: 60_000,
        clock,
        ...changes,
      }),
  }
}
