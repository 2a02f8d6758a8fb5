import type { Actor, Hash } from './envelope.ts'
import type { Action } from './policy.ts'
import type { Reason } from './reason.ts'

/** What is shown to a person who may approve. Plain data: it can be stored and sent. */
export interface ApprovalRequest {
  readonly id: string
  /** `actionDigest(action)`; what the token has to carry. */
  readonly digest: Hash
  readonly action: Action
  /** RFC 3339. After this time no token counts. */
  readonly expires_at: string
  /** How many different approvers are needed. */
  readonly quorum: number
  /** Who may not approve: always the acting agent; the agent's user where policy asks for four eyes. */
  readonly excluded: readonly string[]
}

/** The answer to an approval request. A denial needs no signature: refusing is always safe. */
export type ApprovalAnswer =
  | { readonly type: 'approve'; readonly tokens: readonly string[] }
  | { readonly type: 'deny'; readonly reason: string; readonly by?: Actor }
  | { readonly type: 'wait' }

/** Who approved, or why the tokens do not count. */
export type Redemption =
  | { readonly ok: true; readonly approvers: readonly Approver[] }
  | { readonly ok: false; readonly reason: Reason }

/** One person or system that approved. */
export interface Approver {
  readonly id: string
  readonly issuer: string
  /** The token's id, now spent. */
  readonly jti: string
  readonly type: 'human' | 'system'
}

/**
 * Checks and spends approvals. `redeem` verifies signature, type, issuer, audience, times, digest,
 * separation of duty and revocation. Of the tokens given it uses only those for this request, and spends
 * them before it answers. Whatever it cannot decide is a refusal.
 */
export interface Approvals {
  redeem(tokens: readonly string[], request: ApprovalRequest): Promise<Redemption>
  /** Checks a signed standing grant that a policy named. It is not spent. */
  checkGrant?(grant: string, request: ApprovalRequest): Promise<Redemption>
}

/** Remembers spent tokens. */
export interface SpentStore {
  /** True for the first caller only, in all processes that share the store; atomic. `exp` in ms. */
  spend(jti: string, exp: number): Promise<boolean>
}
