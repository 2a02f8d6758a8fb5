import type { ApprovalRequest } from '../approval.ts'
import type { TokenClaims } from './approval-token.ts'
import { isAtLeast } from '../envelope.ts'
import type { Risk } from '../envelope.ts'
import type { VerifyKey } from '../keys/keys.ts'
import type { Action } from '../policy.ts'
import { reason, type Reason } from '../reason.ts'

/** Clocks that differ by more are broken, not skewed. */
export const MAX_SKEW_MS = 300_000

/** An issuer with its defaults filled in. */
export interface KnownIssuer {
  readonly name: string
  /** The keys a token with this `kid` may have been signed by. */
  readonly keys: (kid: unknown) => Promise<readonly VerifyKey[]>
  readonly maxTtlMs: number
  readonly approvers: 'human' | 'system'
  readonly may: (action: Action, approver: string) => boolean
}

/** What claims are judged against. */
export interface CheckContext {
  readonly request: ApprovalRequest
  readonly issuer: KnownIssuer
  readonly now: number
  readonly skewMs: number
  readonly kind: 'uaicp_action' | 'uaicp_grant'
}

/** Why the token's times do not allow it now, or undefined. */
export function checkTimes(claims: TokenClaims, context: CheckContext): Reason | undefined {
  const { now, skewMs, issuer, request } = context
  const subject = request.action.tool
  const { issuedAt, notBefore, expires } = claims
  if (expires + skewMs <= now) return reason('APPROVAL_EXPIRED', subject)
  const end = Date.parse(request.expires_at)
  // Not `end <= now`: an unreadable time must refuse too.
  if (!(end > now)) return reason('APPROVAL_EXPIRED', subject, 'The request itself is over.')
  if (notBefore - skewMs > now || issuedAt - skewMs > now)
    return reason('APPROVAL_NOT_YET_VALID', subject)
  // From when it was issued, and from now: neither end of its life may be stretched.
  const longest = Math.max(expires - Math.min(issuedAt, notBefore), expires - now - skewMs)
  if (longest > issuer.maxTtlMs)
    return reason('APPROVAL_INVALID', subject, 'It is valid for longer than its issuer may say.')
  return undefined
}

/** Why this person's token does not fit this action, or undefined. */
export function checkUse(claims: TokenClaims, context: CheckContext): Reason | undefined {
  const { request, issuer, kind } = context
  const { action, excluded } = request
  const fits =
    kind === 'uaicp_action' ? isForAction(claims, request) : isForGrant(claims.details, action)
  if (!fits) return reason('APPROVAL_SCOPE', action.tool, 'It was given for something else.')
  // "Self" is the acting agent; policy adds the user where it wants four eyes.
  if (claims.approver === action.identity.agent_id || excluded.includes(claims.approver))
    return reason('APPROVAL_SELF', action.tool)
  if (!isAllowed(issuer, action, claims.approver))
    return reason('APPROVAL_SCOPE', action.tool, 'This person may not approve it.')
  return undefined
}

/** Every member that we would have written has to be there and equal. */
function isForAction(
  { details }: TokenClaims,
  { action, digest, quorum }: ApprovalRequest,
): boolean {
  return (
    details['type'] === 'uaicp_action' &&
    details['digest'] === digest &&
    details['request_id'] === action.request_id &&
    details['tool'] === action.tool &&
    details['risk'] === action.risk &&
    details['quorum'] === quorum
  )
}

const grantMembers = ['request_id', 'task', 'args_hash'] as const
const grantIdentity: ReadonlySet<string> = new Set(['agent_id', 'owner_id', 'user_id'])

function isForGrant(details: TokenClaims['details'], action: Action): boolean {
  const { type, tool, risk, ...scope } = details
  if (type !== 'uaicp_grant' || tool !== action.tool) return false
  if (risk !== 'write_low_risk' && risk !== 'write_high_risk') return false
  if (!isAtLeast(risk satisfies Risk, action.risk)) return false
  const facts: Record<string, unknown> = {}
  for (const name of grantMembers) facts[name] = action[name]
  for (const [name, value] of Object.entries(action.identity)) {
    if (name.includes(':') || grantIdentity.has(name)) facts[name] = value
  }
  // A limit that we do not know must limit, not vanish.
  return Object.entries(scope).every(([name, value]) => name in facts && facts[name] === value)
}

function isAllowed(issuer: KnownIssuer, action: Action, approver: string): boolean {
  try {
    return issuer.may(action, approver) === true
  } catch {
    return false // A rule that fails has not said yes.
  }
}
