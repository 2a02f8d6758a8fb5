import {
  isPlainObject,
  type JsonObject,
  type JsonValue,
  SkeinError,
  type Clock,
  type IdSource,
  systemClock,
  uuidV4,
} from '@skein/base'
import type { ApprovalRequest } from '../contract/approval.ts'
import { actionDigest, hashJson, isAtLeast, type Risk } from '../contract/envelope.ts'
import {
  type VerifyKey,
  type PrivateJwk,
  type SigningKey,
  toSigningKey,
  signJws,
} from '../keys/keys.ts'
import type { Action } from '../contract/policy.ts'
import { reason, type Reason } from '../contract/reason.ts'

/** The `typ` of an approval token. It differs from that of tokens for other purposes (RFC 8725 §3.11). */
export const APPROVAL_TYP = 'uaicp-approval+jwt'

/** The `typ` of a standing grant. */
export const GRANT_TYP = 'uaicp-grant+jwt'

/** The claims of a token, checked for the right types. Times are in milliseconds. */
export interface TokenClaims {
  readonly issuer: string
  readonly approver: string
  readonly audience: string
  readonly jti: string
  readonly issuedAt: number
  readonly notBefore: number
  readonly expires: number
  /** The one entry of `authorization_details` (RFC 9396). */
  readonly details: JsonObject
}

/** Reads the claims of a payload; undefined when one is missing, has a wrong type or is ambiguous. */
export function readClaims(payload: JsonObject): TokenClaims | undefined {
  const { iss, sub, aud, jti, iat, exp } = payload
  const nbf = payload['nbf'] ?? iat
  // A token for two audiences could be spent once at each of them, so exactly one audience is allowed.
  const audience = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  const detailList = payload['authorization_details']
  const details =
    Array.isArray(detailList) && detailList.length === 1 ? (detailList[0] as unknown) : undefined
  if (!isName(iss) || !isName(sub) || !isName(audience) || !isName(jti)) return undefined
  if (!isTime(iat) || !isTime(nbf) || !isTime(exp) || !isPlainObject(details)) return undefined
  return {
    issuer: iss,
    approver: sub,
    audience,
    jti,
    issuedAt: iat * 1000,
    notBefore: nbf * 1000,
    expires: exp * 1000,
    details: details as JsonObject,
  }
}

/** Returns the `authorization_details` entry that an approval of this request must contain. */
export function actionDetails({ action, digest, quorum }: ApprovalRequest): JsonObject {
  const { request_id, tool, risk } = action
  return { type: 'uaicp_action', request_id, tool, risk, digest, quorum }
}

/**
 * True when the request's digest belongs to the action in it, including the arguments. It is checked when
 * a person signs and again by the governor, so that the action that is shown is the one that is signed
 * and run.
 */
export function isDigestOfAction({ action, digest }: ApprovalRequest): boolean {
  try {
    return hashJson(action.args) === action.args_hash && actionDigest(action) === digest
  } catch {
    return false // Arguments that JSON cannot express have no digest.
  }
}

/**
 * Checks an id. Ids are used as keys of stores and as text in logs, so they must be short and without
 * control characters.
 */
function isName(value: JsonValue | undefined): value is string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return typeof value === 'string' && /^[^\u0000-\u001f\u007f]{1,512}$/.test(value)
}

/** Checks for a time in seconds since 1970 (RFC 7519 NumericDate), within the range of Date. */
function isTime(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && value <= 8.64e12
}

/** The largest clock difference that can be configured. */
export const MAX_SKEW_MS = 300_000

/** The settings of an accepted issuer, with all defaults filled in. */
export interface KnownIssuer {
  readonly name: string
  /** Returns the keys that may have signed a token with this `kid`. */
  readonly keys: (kid: unknown) => Promise<readonly VerifyKey[]>
  readonly maxTtlMs: number
  readonly approvers: 'human' | 'system'
  readonly may: (action: Action, approver: string) => boolean
}

/** The data that the claims of a token are checked against. */
export interface CheckContext {
  readonly request: ApprovalRequest
  readonly issuer: KnownIssuer
  readonly now: number
  readonly skewMs: number
  readonly kind: 'uaicp_action' | 'uaicp_grant'
}

/** Returns why a token is not valid at this time; undefined if it is valid. */
export function checkTimes(claims: TokenClaims, context: CheckContext): Reason | undefined {
  const { now, skewMs, issuer, request } = context
  const subject = request.action.tool
  const { issuedAt, notBefore, expires } = claims
  if (expires + skewMs <= now) return reason('APPROVAL_EXPIRED', subject)
  const end = Date.parse(request.expires_at)
  // Written as `!(end > now)`, so that an unreadable time (NaN) is refused too.
  if (!(end > now)) return reason('APPROVAL_EXPIRED', subject, 'The request itself is over.')
  if (notBefore - skewMs > now || issuedAt - skewMs > now)
    return reason('APPROVAL_NOT_YET_VALID', subject)
  // The lifetime is measured both from the time of issue and from now, so that a false time of issue
  // cannot make a token valid for longer.
  const longest = Math.max(expires - Math.min(issuedAt, notBefore), expires - now - skewMs)
  if (longest > issuer.maxTtlMs)
    return reason('APPROVAL_INVALID', subject, 'It is valid for longer than its issuer may say.')
  return undefined
}

/** Returns why this person's token is not valid for this action; undefined if it is valid. */
export function checkUse(claims: TokenClaims, context: CheckContext): Reason | undefined {
  const { request, issuer, kind } = context
  const { action, excluded } = request
  // An approval must contain every member that `actionDetails` writes, with the same value.
  const fits =
    kind === 'uaicp_action'
      ? Object.entries(actionDetails(request)).every(
          ([name, value]) => claims.details[name] === value,
        )
      : isForGrant(claims.details, action)
  if (!fits) return reason('APPROVAL_SCOPE', action.tool, 'It was given for something else.')
  // The acting agent may never approve its own action; with `fourEyes`, its user may not either.
  if (claims.approver === action.identity.agent_id || excluded.includes(claims.approver))
    return reason('APPROVAL_SELF', action.tool)
  let isAllowed = false
  try {
    isAllowed = issuer.may(action, claims.approver) === true
  } catch {
    // If the `may` function throws, the approval is not allowed.
  }
  return isAllowed
    ? undefined
    : reason('APPROVAL_SCOPE', action.tool, 'This person may not approve it.')
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
  // An unknown member of the scope makes the grant unusable, because ignoring it would widen the grant.
  return Object.entries(scope).every(([name, value]) => name in facts && facts[name] === value)
}

/** The options for signing an approval: who signs, for which governor, and for how long. */
export interface ApproveOptions {
  /** The governor's id, which becomes the token's `aud`. */
  readonly audience: string
  /** The name of the issuer in the governor's `issuers`; its keys must include the signing key. */
  readonly issuer: string
  /** The person or system that approves. */
  readonly approver: string
  readonly key: PrivateJwk | SigningKey
  readonly ttlMs: number
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Signs an approval of exactly the action in the request. It needs no governor, so it can run on the
 * person's own device. Throws if the digest of the request does not belong to the action that it shows.
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
  // Rounded down to seconds, because a token must not be valid for longer than the request.
  const latest = Math.floor(Date.parse(request.expires_at) / 1000)
  return sign(actionDetails(request), options, { typ: APPROVAL_TYP, latest })
}

/**
 * The actions that a standing grant covers. Every member that is given must be equal to that of the
 * action, except `risk`, which is the highest risk allowed.
 */
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
 * approves nothing by itself: a policy has to return it in its decision, and every use of it is logged.
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
  // The clock is read once. If a second began between two readings, the token would be valid for a second
  // longer than `ttlMs`, and an issuer with exactly that limit would refuse it.
  const now = clock.now()
  const iat = Math.floor(now / 1000)
  const exp = Math.min(Math.floor((now + ttlMs) / 1000), latest)
  const claims = { iss: issuer, sub: approver, aud: audience, jti: ids(), iat, nbf: iat, exp }
  return signJws({ ...claims, authorization_details: [details] }, toSigningKey(key), { typ })
}
