import type { JsonValue } from '@skein/base'
import type { Actor, Hash } from './envelope.ts'
import type { Action } from './policy.ts'
import type { Reason, ReasonCode } from './reason.ts'

/** The approval request that a person is shown. It is plain data, so it can be stored and sent. */
export interface ApprovalRequest {
  readonly id: string
  /** `actionDigest(action)`. A token is valid only if it contains this digest. */
  readonly digest: Hash
  readonly action: Action
  /**
   * What the model sent, if the tool made other arguments of it, e.g. with defaults. It is for people to see: the
   * action, which runs, has the arguments that the digest covers.
   */
  readonly sent?: JsonValue
  /** RFC 3339. No token is accepted after this time. */
  readonly expires_at: string
  /** How many different approvers are needed. */
  readonly quorum: number
  /**
   * Ids of the agents and people that may not approve: always the acting agent (`agent_id`) and, if a
   * policy requires `fourEyes`, also the user for whom the agent acts (`user_id`).
   */
  readonly excluded: readonly string[]
}

/** The answer to an approval request. A denial needs no signature, because refusing is always safe. */
export type ApprovalAnswer =
  | { readonly type: 'approve'; readonly tokens: readonly string[] }
  | { readonly type: 'deny'; readonly reason: string; readonly by?: Actor }
  | { readonly type: 'wait' }

/** The result of checking tokens: who approved, or why the tokens are not accepted. */
export type Redemption =
  | { readonly ok: true; readonly approvers: readonly Approver[] }
  | {
      readonly ok: false
      readonly reason: Reason
      /** The tokens that were refused, as far as they could be read; the log names them. */
      readonly refused?: readonly RefusedToken[]
    }

/** A token that was not accepted: who is said to have signed it, and for whom. */
export interface RefusedToken extends Pick<Approver, 'issuer' | 'jti'> {
  readonly approver: string
  readonly code: ReasonCode
  /** Whether the signature is by a key of the issuer; if not, anybody can have written the names. */
  readonly signed: boolean
}

/** One person or system that approved. */
export interface Approver {
  readonly id: string
  readonly issuer: string
  /** The id of the token that was spent, or of the standing grant that was used instead of a token. */
  readonly jti: string
  readonly type: 'human' | 'system'
}

/**
 * Checks approval tokens and marks them as spent, so that no token is used twice. `redeem` verifies
 * signature, type, issuer, audience, times, digest, separation of duty and revocation. It ignores tokens
 * that are not for this request, and spends the tokens that it uses before it resolves. A token that
 * cannot be checked is refused.
 */
export interface Approvals {
  redeem(tokens: readonly string[], request: ApprovalRequest): Promise<Redemption>
  /**
   * Checks a signed standing grant that a policy returned. A grant is not spent and can be used many
   * times.
   */
  checkGrant?(grant: string, request: ApprovalRequest): Promise<Redemption>
}
