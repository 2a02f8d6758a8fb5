import {
  type Clock,
  type IdSource,
  type JsonObject,
  SkeinError,
  systemClock,
  uuidV4,
} from '@skein/base'
import type { ApprovalRequest } from '../contract/approval.ts'
import { actionDetails, APPROVAL_TYP, GRANT_TYP, isDigestOfAction } from './approval-token.ts'
import { signJws } from './jws.ts'
import { type PrivateJwk, type SigningKey, toSigningKey } from '../keys/keys.ts'

/** Who signs, for which governor, for how long. */
export interface ApproveOptions {
  /** The governor's id, its `aud`. */
  readonly audience: string
  /** Name under which the governor knows the signing key. */
  readonly issuer: string
  /** The person, or the system, that approves. */
  readonly approver: string
  readonly key: PrivateJwk | SigningKey
  readonly ttlMs: number
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Signs an approval of exactly the action in the request. Runs wherever the person is and needs no
 * governor. Refuses a request that shows one action and carries the digest of another.
 */
export async function approve(request: ApprovalRequest, options: ApproveOptions): Promise<string> {
  if (!isDigestOfAction(request)) {
    const { id, action } = request
    throw new SkeinError(
      `Approval request "${id}" shows a call of "${action.tool}", but its digest is that of another action.`,
      {
        code: 'APPROVAL_REQUEST_INVALID',
        hint: 'The request was changed on its way. Do not sign it; fetch it again from the governor.',
      },
    )
  }
  // Rounded down to seconds: a token must never outlive the request.
  const latest = Math.floor(Date.parse(request.expires_at) / 1000)
  return sign(actionDetails(request), options, { typ: APPROVAL_TYP, latest })
}

/** What a standing grant covers. Every member that is given has to equal the action's. */
export interface GrantScope {
  readonly tool: string
  readonly risk: 'write_low_risk' | 'write_high_risk'
  readonly request_id?: string
  readonly task?: string
  readonly agent_id?: string
  readonly owner_id?: string
  readonly user_id?: string
  readonly args_hash?: string
  /** Namespaced members of the identity. */
  readonly [namespaced: `${string}:${string}`]: string
}

/**
 * Signs a standing grant: a wider consent that expires ("this tool, for this agent, until five"). A grant
 * approves nothing by itself. A policy has to name it in its decision, and every use of it is logged.
 */
export async function signGrant(scope: GrantScope, options: ApproveOptions): Promise<string> {
  return sign({ type: 'uaicp_grant', ...scope }, options, { typ: GRANT_TYP, latest: Infinity })
}

async function sign(
  details: JsonObject,
  { audience, issuer, approver, key, ttlMs, clock = systemClock, ids = uuidV4 }: ApproveOptions,
  { typ, latest }: { readonly typ: string; readonly latest: number },
): Promise<string> {
  if (!(ttlMs > 0))
    throw new SkeinError(`An approval cannot be valid for ${ttlMs} ms.`, {
      code: 'APPROVAL_TTL_INVALID',
      hint: 'Give ttlMs as a positive number of milliseconds.',
    })
  const iat = Math.floor(clock.now() / 1000)
  const exp = Math.min(Math.floor((clock.now() + ttlMs) / 1000), latest)
  const claims = { iss: issuer, sub: approver, aud: audience, jti: ids(), iat, nbf: iat, exp }
  return signJws({ ...claims, authorization_details: [details] }, toSigningKey(key), { typ })
}
