import {
  type Clock,
  type IdSource,
  type JsonObject,
  SkeinError,
  systemClock,
  uuidV4,
} from '@skein/base'
import type {
  ApprovalRequest,
  Approvals,
  Approver,
  Redemption,
  SpentStore,
} from '../contract/approval.ts'
import {
  actionDetails,
  APPROVAL_TYP,
  type CheckContext,
  checkTimes,
  checkUse,
  createIssuerKeys,
  GRANT_TYP,
  isDigestOfAction,
  type IssuerKey,
  type KnownIssuer,
  MAX_SKEW_MS,
  parseJws,
  readClaims,
  signJws,
  type TokenClaims,
  verifyJws,
} from './approval-token.ts'
import { type KeyAlgorithm, type PrivateJwk, type SigningKey, toSigningKey } from '../keys/keys.ts'
import type { Action } from '../contract/policy.ts'
import { reason, type Reason } from '../contract/reason.ts'

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
  const expired = new BoundedSet()

  async function check(token: unknown, use: Use): Promise<TokenClaims | Reason> {
    const { request, typ } = use
    const subject = request.action.tool
    const jws = parseJws(token)
    const claims = jws && readClaims(jws.payload)
    const issuer = claims && issuers.get(claims.issuer)
    if (!jws || !claims || !issuer || jws.header.typ !== typ || claims.audience !== audience)
      return reason('APPROVAL_INVALID', subject, 'Not an approval for this governor.')
    if (!(await isSigned(jws, issuer)))
      return reason('APPROVAL_INVALID', subject, 'The signature is not by a key of its issuer.')
    const context: CheckContext = { request, issuer, skewMs, now: clock.now(), kind: use.kind }
    // A token that was once found expired stays expired, even if the clock is set back.
    const seen = expired.has(tokenKey(claims))
    const found = seen ? reason('APPROVAL_EXPIRED', subject) : checkTimes(claims, context)
    if (found?.code === 'APPROVAL_EXPIRED') expired.add(tokenKey(claims))
    return found ?? checkUse(claims, context) ?? (await checkRevoked(claims, subject)) ?? claims
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
      if (!isDigestOfAction(request)) return refused([reason('APPROVAL_SCOPE', subject)], request)
      const reasons: Reason[] = []
      const fitting = new Map<string, TokenClaims>()
      for (const token of new Set(tokens)) {
        const checked = await check(token, { request, typ: APPROVAL_TYP, kind: 'uaicp_action' })
        if ('code' in checked) reasons.push(checked)
        // Each person counts only once, whichever issuer signed the token.
        else if (!fitting.has(checked.approver)) fitting.set(checked.approver, checked)
      }
      const quorum = Math.max(1, request.quorum)
      if (fitting.size < quorum) return refused(reasons, request)
      const approvers: Approver[] = []
      for (const claims of fitting.values()) {
        if (approvers.length === quorum) break
        const failure = await spend(claims, subject)
        if (failure === undefined) approvers.push(approverOf(claims))
        else reasons.push(failure)
      }
      return approvers.length === quorum ? { ok: true, approvers } : refused(reasons, request)
    },
    async checkGrant(grant, request) {
      if (!isDigestOfAction(request))
        return refused([reason('APPROVAL_SCOPE', request.action.tool)], request)
      const checked = await check(grant, { request, typ: GRANT_TYP, kind: 'uaicp_grant' })
      if ('code' in checked) return refused([checked], request)
      return { ok: true, approvers: [approverOf(checked)] }
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
function refused(reasons: readonly Reason[], { action, quorum }: ApprovalRequest): Redemption {
  const useful = reasons.find(({ code }) => code !== 'APPROVAL_SCOPE') ?? reasons[0]
  const detail = `${Math.max(1, quorum)} approval${quorum > 1 ? 's' : ''} needed.`
  return { ok: false, reason: useful ?? reason('APPROVAL_REQUIRED', action.tool, detail) }
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

/**
 * Creates a store of spent tokens in memory, for tests and for systems with a single process whose tokens
 * need not stay spent after it ends.
 */
export function memorySpent({ clock = systemClock }: { readonly clock?: Clock } = {}): SpentStore {
  const spent = new Map<string, number>()
  let sweptAt = -Infinity
  return {
    async spend(jti, exp) {
      const now = clock.now()
      if (now >= sweptAt + 60_000) {
        for (const [key, end] of spent) if (end < now) spent.delete(key)
        sweptAt = now
      }
      // A token that had expired at the last sweep may have been spent and forgotten. If the clock was set
      // back since, the token looks valid again.
      if (exp < sweptAt || spent.has(jti)) return false
      spent.set(jti, exp)
      return true
    },
  }
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
