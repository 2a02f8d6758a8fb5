import { systemClock, uuidV4, type Clock, type IdSource } from '@skein/base'
import type { Action, ApprovalRequest, Approvals, SpentStore } from '@skein/governance'
import {
  approvals,
  approve,
  signGrant,
  toVerifyKey,
  type ApprovalIssuer,
  type ApprovalsOptions,
} from '@skein/governance/approvals'
import type { GovernanceKeys } from './governance-keys.ts'
import { HOUR_MS, RUNTIME_GRANTS, type ToolGrant } from './grant-policy.ts'
import { THREAD_MEMBER } from './session-identity.ts'
import { RuntimeError } from '../contract/error.ts'

interface ApprovalSignerOptions extends Pick<ApprovalsOptions, 'revoked' | 'skewMs'> {
  /** Id of this installation's governors, which judge calls; approval tokens are addressed to this id. */
  readonly id: string
  readonly keys: Pick<GovernanceKeys, 'approvals'>
  readonly clock?: Clock
  readonly ids?: IdSource
  /** Other issuers whose approvals are accepted, by name. */
  readonly issuers?: Readonly<Record<string, ApprovalIssuer>>
  /** Whether a person who is authenticated here may approve an action. Default: everybody may. */
  readonly may?: (action: Action, by: string) => boolean
  /** The longest time that a grant may be valid. Default 24 h. */
  readonly maxGrantMs?: number
}

/** Signs approvals for the people whom this installation authenticates, and checks signatures. */
export interface ApprovalSigner {
  /**
   * Signs an approval token for exactly this action. Throws if `by` is the acting agent or a person whom the
   * policy excludes.
   */
  signApproval(
    request: ApprovalRequest,
    options: { readonly by: string; readonly ttlMs?: number },
  ): Promise<string>
  /**
   * Signs a person's consent to all calls of a tool in a thread until a time (ms). The grant has an effect
   * only through `grantPolicy`.
   */
  signToolGrant(
    grant: Omit<ToolGrant, 'grant'> & {
      /** The id of the signed text; default a new one. */
      readonly grantId?: string
    },
  ): Promise<ToolGrant>
  /** Returns the object with which a governor checks approvals. */
  approvals(spent: SpentStore): Approvals
}

const RUNTIME = 'runtime'

/** Creates a signer, which signs and checks approvals. It has no state: signers with the same keys are equivalent. */
export function createApprovalSigner(options: ApprovalSignerOptions): ApprovalSigner {
  const { id: audience, keys, clock = systemClock, ids = uuidV4 } = options
  const { may = () => true, maxGrantMs = 24 * HOUR_MS, revoked, skewMs } = options
  const own = { keys: [toVerifyKey(keys.approvals.jwk)], alg: keys.approvals.alg, may }
  const issuers = {
    ...options.issuers,
    [RUNTIME]: own,
    [RUNTIME_GRANTS]: { ...own, maxTtlMs: maxGrantMs },
  }
  const signer = { audience, key: keys.approvals, clock, ids }
  return {
    async signApproval(request, { by, ttlMs = HOUR_MS }) {
      checkRequest(request, by, clock)
      return approve(request, { ...signer, issuer: RUNTIME, approver: by, ttlMs })
    },
    async signToolGrant({ threadId, tool, risk = 'write_high_risk', by, expiresAt, grantId }) {
      const ttlMs = expiresAt - clock.now()
      if (!(ttlMs > 0 && ttlMs <= maxGrantMs))
        throw new RuntimeError(`A grant of "${tool}" cannot end at that time.`, {
          code: 'ANSWER_INVALID',
          hint: `It has to end within the next ${maxGrantMs / HOUR_MS} hours.`,
        })
      const scope = { tool, risk, [THREAD_MEMBER]: threadId } as const
      const own = { issuer: RUNTIME_GRANTS, approver: by, ttlMs, ids: () => grantId ?? ids() }
      return {
        threadId,
        tool,
        risk,
        by,
        expiresAt,
        grant: await signGrant(scope, { ...signer, ...own }),
      }
    },
    approvals: (spent) =>
      approvals({
        audience,
        issuers,
        spent,
        clock,
        revoked,
        skewMs,
      }),
  }
}

/**
 * Throws if this person may not approve, or if the request has expired. The governor checks both again; the
 * check here lets the person see the error immediately.
 */
function checkRequest(request: ApprovalRequest, by: string, clock: Clock): void {
  const { action, excluded, expires_at } = request
  if (by === action.identity.agent_id || excluded.includes(by)) {
    throw new RuntimeError(`"${by}" may not approve this call of "${action.tool}".`, {
      code: 'ANSWER_INVALID',
      hint: 'No one may approve their own action. Let someone else decide.',
    })
  }
  if (Date.parse(expires_at) > clock.now()) return
  throw new RuntimeError(`The question about "${action.tool}" was open until ${expires_at}.`, {
    code: 'REQUEST_EXPIRED',
    hint: 'A new question is asked when the agent makes the call again.',
  })
}
