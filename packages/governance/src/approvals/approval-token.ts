import {
  decodeBase64Url,
  encodeBase64Url,
  isPlainObject,
  type JsonObject,
  type JsonValue,
  SkeinError,
} from '@skein/base'
import type { ApprovalRequest } from '../contract/approval.ts'
import { actionDigest, hashJson, isAtLeast, type Risk } from '../contract/envelope.ts'
import {
  type KeyAlgorithm,
  type PublicJwk,
  type SigningKey,
  toVerifyKey,
  type VerifyKey,
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
  // A token for two audiences could be spent once at each of them, so an array must contain exactly one.
  const audience = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  const listed = payload['authorization_details']
  const details = Array.isArray(listed) && listed.length === 1 ? (listed[0] as unknown) : undefined
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

/** The protected header of a compact JWS (RFC 7515). */
interface JwsHeader {
  readonly alg: string
  readonly kid?: string
  readonly typ?: string
  readonly [parameter: string]: unknown
}

/** A parsed compact JWS. Nothing in it can be trusted before `verifyJws`. */
interface ParsedJws {
  readonly header: JwsHeader
  readonly payload: JsonObject
  /** The ASCII bytes that were signed: header and payload exactly as received, not encoded again. */
  readonly signed: Uint8Array
  readonly signature: Uint8Array
}

/**
 * The maximum length of a token. An approval contains digests and no arguments, so a valid token is far
 * shorter.
 */
const MAX_TOKEN_CHARACTERS = 16_384

const utf8 = new TextEncoder()
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Signs a payload as a compact JWS; `alg` and `kid` come from the key. */
export async function signJws(
  payload: JsonObject,
  key: SigningKey,
  { typ }: { readonly typ: string },
): Promise<string> {
  const header = { alg: key.alg, kid: key.kid, typ }
  const signed = `${encodeJson(header)}.${encodeJson(payload)}`
  return `${signed}.${encodeBase64Url(await key.sign(utf8.encode(signed)))}`
}

/** Parses a compact JWS; undefined for anything else. */
export function parseJws(token: unknown): ParsedJws | undefined {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_CHARACTERS) return undefined
  const first = token.indexOf('.')
  const second = token.indexOf('.', first + 1)
  if (first < 1 || second < 0 || token.includes('.', second + 1)) return undefined
  try {
    const header = decodeJson(token.slice(0, first))
    const payload = decodeJson(token.slice(first + 1, second))
    const signature = decodeBase64Url(token.slice(second + 1))
    if (!isPlainObject(header) || !isPlainObject(payload)) return undefined
    // `crit` lists extensions that the reader must understand; none is supported here (RFC 7515 §4.1.11).
    if (typeof header['alg'] !== 'string' || 'crit' in header) return undefined
    return {
      header: header as JwsHeader,
      payload: payload as JsonObject,
      signed: utf8.encode(token.slice(0, second)),
      signature,
    }
  } catch {
    return undefined // Not base64url, not UTF-8 or not JSON.
  }
}

/**
 * True when this key signed these bytes with the key's own algorithm. The header's `alg` must be that of
 * the key, so a token cannot choose "none" or HMAC with the public key as secret.
 */
export async function verifyJws(jws: ParsedJws, key: VerifyKey): Promise<boolean> {
  if (jws.header.alg !== key.alg) return false
  try {
    return await key.verify(jws.signed, jws.signature)
  } catch {
    return false // A signature that the platform cannot read is not valid.
  }
}

function encodeJson(value: unknown): string {
  return encodeBase64Url(utf8.encode(JSON.stringify(value)))
}

function decodeJson(part: string): unknown {
  return JSON.parse(strictUtf8.decode(decodeBase64Url(part)))
}

/** A public key of an issuer, in any of the supported forms. */
export type IssuerKey = PublicJwk | VerifyKey | CryptoKey

/**
 * Returns a function that finds an issuer's keys by `kid`. The `kid` only reduces the number of keys to
 * try and proves nothing. Keys without a `kid` are always tried.
 */
export function createIssuerKeys(
  issuer: string,
  keys: readonly IssuerKey[],
  alg: KeyAlgorithm,
): (kid: unknown) => Promise<readonly VerifyKey[]> {
  const plain = keys.flatMap((key): NamedKey[] =>
    isCryptoKey(key) ? [] : [{ name: key.kid, key: toVerifyKey(key) }],
  )
  for (const { key } of plain) if (key.alg !== alg) throw wrongAlgorithm(issuer, key.alg, alg)
  let all: Promise<readonly NamedKey[]> | undefined
  return async (kid) => {
    all ??= Promise.all(
      keys.filter(isCryptoKey).map((key) => fromCryptoKey(issuer, key, alg)),
    ).then((exported) => [...plain, ...exported])
    const known = await all
    return known
      .filter(({ name }) => name === undefined || kid === undefined || name === kid)
      .map(({ key }) => key)
  }
}

interface NamedKey {
  readonly name: string | undefined
  readonly key: VerifyKey
}

function isCryptoKey(key: IssuerKey): key is CryptoKey {
  return typeof CryptoKey === 'function' && key instanceof CryptoKey
}

async function fromCryptoKey(issuer: string, key: CryptoKey, alg: KeyAlgorithm): Promise<NamedKey> {
  const jwk = (await crypto.subtle.exportKey('jwk', key)) as unknown as PublicJwk
  const { kty, crv, x, y } = jwk
  const found = toVerifyKey(y === undefined ? { kty, crv, x } : { kty, crv, x, y })
  if (found.alg !== alg || key.type !== 'public') throw wrongAlgorithm(issuer, found.alg, alg)
  return { name: undefined, key: found }
}

function wrongAlgorithm(issuer: string, found: string, wanted: string): SkeinError {
  return new SkeinError(`Issuer "${issuer}" is set to ${wanted}, but has a key for ${found}.`, {
    code: 'KEY_INVALID',
    hint: `Set alg: '${found}' for the issuer, or give it public keys of one kind.`,
  })
}
