import { type Clock, SkeinError, systemClock } from '@skein/base'
import type {
  ApprovalRequest,
  Approvals,
  Approver,
  Redemption,
  RefusedToken,
} from '../contract/approval.ts'
import type { SpentStore } from '../contract/spent-store.ts'
import {
  APPROVAL_TYP,
  type CheckContext,
  checkTimes,
  checkUse,
  GRANT_TYP,
  isDigestOfAction,
  type KnownIssuer,
  MAX_SKEW_MS,
  readClaims,
  type TokenClaims,
} from './approval-token.ts'
import { type KeyAlgorithm, parseJws, verifyJws } from '../keys/keys.ts'
import type { Action } from '../contract/policy.ts'
import { reason, type Reason, toLogText } from '../contract/reason.ts'
import { createIssuerKeys, type IssuerKey } from './issuer-keys.ts'

/** An issuer whose approval tokens are accepted: its keys, and which actions its approvers may approve. */
export interface ApprovalIssuer {
  /** Public keys: JWKs, WebCrypto keys, or a `VerifyKey` of your own; several while keys are rotated. */
  readonly keys: readonly IssuerKey[]
  /** The algorithm of all keys of the issuer; `Ed25519` by default. */
  readonly alg?: KeyAlgorithm
  /** Returns whether this approver may approve this action. If it throws, the approval is refused. */
  readonly may: (action: Action, approver: string) => boolean
  /** The longest lifetime of a token; one hour by default. */
  readonly maxTtlMs?: number
  /** Whether the approvers of this issuer are people or systems; `human` by default. */
  readonly approvers?: 'human' | 'system'
}

/** The description of a token that the revocation check gets. */
export interface TokenReference {
  readonly issuer: string
  readonly jti: string
  readonly approver: string
  /** Milliseconds since 1970. */
  readonly issuedAt: number
}

/** Options of `approvals`. */
export interface ApprovalsOptions {
  /** The governor's id. Tokens with another audience are refused. */
  readonly audience: string
  readonly issuers: Readonly<Record<string, ApprovalIssuer>>
  readonly spent: SpentStore
  /** How far clocks may differ; 30 s by default, 5 min at most. */
  readonly skewMs?: number
  /**
   * Returns true for a token that was revoked, or whose approver may no longer approve. If it throws, the
   * token is refused as revoked.
   */
  readonly revoked?: (token: TokenReference) => boolean | Promise<boolean>
  readonly clock?: Clock
}

/**
 * Creates the `Approvals` of a governor, which check approval tokens and spend each of them once. A token
 * that cannot be checked is refused.
 */
export function approvals(options: ApprovalsOptions): Approvals {
  const { audience, spent, skewMs = 30_000, clock = systemClock } = options
  if (!(skewMs >= 0 && skewMs <= MAX_SKEW_MS))
    throw new SkeinError(`A clock skew of ${skewMs} ms is not between 0 and ${MAX_SKEW_MS}.`, {
      code: 'APPROVAL_SKEW_INVALID',
    })
  const issuers = new Map(
    Object.entries(options.issuers).map(([name, issuer]): [string, KnownIssuer] => {
      const { alg = 'Ed25519', maxTtlMs = 3_600_000, approvers = 'human', may } = issuer
      const keys = createIssuerKeys(name, issuer.keys, alg)
      return [name, { name, keys, maxTtlMs, approvers, may }]
    }),
  )
  const expiredTokens = new BoundedSet()

  async function check(token: unknown, use: Use): Promise<TokenClaims | Refusal> {
    const { request, typ } = use
    const subject = request.action.tool
    const jws = parseJws(token)
    const claims = jws && readClaims(jws.payload)
    const issuer = claims && issuers.get(claims.issuer)
    const isSignedByIssuer = jws && issuer ? await isSigned(jws, issuer) : false
    const why =
      jws && claims && issuer && jws.header.typ === typ && claims.audience === audience
        ? isSignedByIssuer
          ? await checkSigned(claims, issuer, use)
          : reason('APPROVAL_INVALID', subject, 'The signature is not by a key of its issuer.')
        : reason('APPROVAL_INVALID', subject, 'Not an approval for this governor.')
    if (!why && claims) return claims
    const refusal = why ?? reason('APPROVAL_INVALID', subject)
    return { refusal, token: claims && refusedToken(claims, refusal, isSignedByIssuer) }
  }

  async function checkSigned(
    claims: TokenClaims,
    issuer: KnownIssuer,
    use: Use,
  ): Promise<Reason | undefined> {
    const { request } = use
    const subject = request.action.tool
    const context: CheckContext = { request, issuer, skewMs, now: clock.now(), kind: use.kind }
    // A token that was once found expired stays expired, even if the clock is set back.
    const isExpired = expiredTokens.has(tokenKey(claims))
    const problem = isExpired ? reason('APPROVAL_EXPIRED', subject) : checkTimes(claims, context)
    if (problem?.code === 'APPROVAL_EXPIRED') expiredTokens.add(tokenKey(claims))
    return problem ?? checkUse(claims, context) ?? (await checkRevoked(claims, subject))
  }

  async function checkRevoked(claims: TokenClaims, subject: string): Promise<Reason | undefined> {
    const { issuer, jti, approver, issuedAt } = claims
    try {
      if ((await options.revoked?.({ issuer, jti, approver, issuedAt })) !== true) return undefined
      return reason('APPROVAL_REVOKED', subject)
    } catch {
      return reason('APPROVAL_REVOKED', subject, 'Whether it was revoked could not be found out.')
    }
  }

  async function spend(claims: TokenClaims, subject: string): Promise<Reason | undefined> {
    try {
      // The token is stored as spent until no clock within the allowed difference would still accept it.
      const first = await spent.spend(tokenKey(claims), claims.expires + 2 * skewMs)
      return first === true ? undefined : reason('APPROVAL_REPLAYED', subject)
    } catch {
      return reason('APPROVAL_INVALID', subject, 'The store of spent tokens did not answer.')
    }
  }

  function approverOf({ approver, issuer, jti }: TokenClaims): Approver {
    return { id: approver, issuer, jti, type: issuers.get(issuer)!.approvers }
  }

  return {
    async redeem(tokens, request) {
      const subject = request.action.tool
      if (!isDigestOfAction(request))
        return refuseTokens([{ refusal: reason('APPROVAL_SCOPE', subject) }], request)
      const refusals: Refusal[] = []
      const fitting = new Map<string, TokenClaims>()
      for (const token of new Set(tokens)) {
        const verdict = await check(token, { request, typ: APPROVAL_TYP, kind: 'uaicp_action' })
        if ('refusal' in verdict) refusals.push(verdict)
        // Each person counts only once, whichever issuer signed the token.
        else if (!fitting.has(verdict.approver)) fitting.set(verdict.approver, verdict)
      }
      const quorum = Math.max(1, request.quorum)
      if (fitting.size < quorum) return refuseTokens(refusals, request)
      const approvers: Approver[] = []
      for (const claims of fitting.values()) {
        if (approvers.length === quorum) break
        const failure = await spend(claims, subject)
        if (failure === undefined) approvers.push(approverOf(claims))
        else refusals.push({ refusal: failure, token: refusedToken(claims, failure, true) })
      }
      return approvers.length === quorum ? { ok: true, approvers } : refuseTokens(refusals, request)
    },
    async checkGrant(grant, request) {
      if (!isDigestOfAction(request))
        return refuseTokens([{ refusal: reason('APPROVAL_SCOPE', request.action.tool) }], request)
      const verdict = await check(grant, { request, typ: GRANT_TYP, kind: 'uaicp_grant' })
      if ('refusal' in verdict) return refuseTokens([verdict], request)
      return { ok: true, approvers: [approverOf(verdict)] }
    },
  }
}

interface Use {
  readonly request: ApprovalRequest
  readonly typ: string
  readonly kind: CheckContext['kind']
}

/**
 * Builds a refusal with the most useful reason. APPROVAL_SCOPE is used last, because a caller may pass
 * the tokens of several calls together, and then most tokens are for another call.
 */
function refuseTokens(
  refusals: readonly Refusal[],
  { action, quorum }: ApprovalRequest,
): Redemption {
  const reasons = refusals.map(({ refusal }) => refusal)
  const tokens = refusals.flatMap(({ token }) => token ?? []).slice(0, MOST_REFUSED)
  const useful = reasons.find(({ code }) => code !== 'APPROVAL_SCOPE') ?? reasons[0]
  const detail = `${Math.max(1, quorum)} approval${quorum > 1 ? 's' : ''} needed.`
  const why = useful ?? reason('APPROVAL_REQUIRED', action.tool, detail)
  return tokens.length > 0
    ? { ok: false, reason: why, refused: tokens }
    : { ok: false, reason: why }
}

/** How many refused tokens of one answer the log names. */
const MOST_REFUSED = 20

/** Why a token is refused, and what could be read of it. */
interface Refusal {
  readonly refusal: Reason
  readonly token?: RefusedToken | undefined
}

/** Describes a refused token. The texts are cut to fit the log, because anybody may have written them. */
function refusedToken(
  { approver, issuer, jti }: TokenClaims,
  { code }: Reason,
  signed: boolean,
): RefusedToken {
  const names = { approver: toLogText(approver), issuer: toLogText(issuer), jti: toLogText(jti) }
  return { ...names, code, signed }
}

async function isSigned(
  jws: Parameters<typeof verifyJws>[0],
  issuer: KnownIssuer,
): Promise<boolean> {
  for (const key of await issuer.keys(jws.header.kid)) {
    if (await verifyJws(jws, key)) return true
  }
  return false
}

/**
 * Returns the key of a token in the store of spent tokens. It includes the issuer, because a `jti` is
 * unique only for its issuer; neither contains a line break, so the key is unambiguous.
 */
function tokenKey({ issuer, jti }: TokenClaims): string {
  return `${issuer}\n${jti}`
}

/** A set that keeps only the latest 10,000 members. Only tokens with a valid signature are added to it. */
class BoundedSet {
  readonly #members = new Set<string>()

  has(member: string): boolean {
    return this.#members.has(member)
  }

  add(member: string): void {
    this.#members.add(member)
    if (this.#members.size <= 10_000) return
    for (const oldest of this.#members) {
      this.#members.delete(oldest)
      break
    }
  }
}
