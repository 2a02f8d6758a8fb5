import type { JsonObject, JsonValue } from '@skein/base'
import type { ApprovalRequest } from '../approval.ts'
import { actionDigest, hashJson } from '../digest.ts'

/** `typ` of an approval; tokens made for anything else are refused by it (RFC 8725 §3.11). */
export const APPROVAL_TYP = 'uaicp-approval+jwt'

/** `typ` of a standing grant. */
export const GRANT_TYP = 'uaicp-grant+jwt'

/** What a token says, its claims of the right kind. Times in milliseconds. */
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

/** The claims of a payload, or undefined when one is missing, of another kind or ambiguous. */
export function readClaims(payload: JsonObject): TokenClaims | undefined {
  const { iss, sub, aud, jti, iat, exp } = payload
  const nbf = payload['nbf'] ?? iat
  // A token for two audiences could be spent once at each, so an array must name exactly one.
  const audience = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  const details = onlyDetails(payload['authorization_details'])
  if (!isName(iss) || !isName(sub) || !isName(audience) || !isName(jti)) return undefined
  if (!isTime(iat) || !isTime(nbf) || !isTime(exp) || details === undefined) return undefined
  return {
    issuer: iss,
    approver: sub,
    audience,
    jti,
    issuedAt: iat * 1000,
    notBefore: nbf * 1000,
    expires: exp * 1000,
    details,
  }
}

/** What an approval of this request carries as its `authorization_details` entry. */
export function actionDetails({ action, digest, quorum }: ApprovalRequest): JsonObject {
  const { request_id, tool, risk } = action
  return { type: 'uaicp_action', request_id, tool, risk, digest, quorum }
}

/**
 * True when the request's digest is that of the action it shows, arguments included. Both the
 * person's side and the governor's check this: what was looked at is what is signed and run.
 */
export function isDigestOfAction({ action, digest }: ApprovalRequest): boolean {
  try {
    return hashJson(action.args) === action.args_hash && actionDigest(action) === digest
  } catch {
    return false // Arguments that JSON cannot say have no digest.
  }
}

function onlyDetails(value: JsonValue | undefined): JsonObject | undefined {
  if (!Array.isArray(value) || value.length !== 1) return undefined
  const [entry] = value
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry) ? entry : undefined
}

/** Ids go into store keys and logs, so they are short and plain. */
function isName(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 512 && !hasControls(value)
}

function hasControls(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return /[\u0000-\u001f\u007f]/.test(text)
}

/** Seconds since 1970 (RFC 7519 NumericDate), within what a Date can say. */
function isTime(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && value <= 8.64e12
}
