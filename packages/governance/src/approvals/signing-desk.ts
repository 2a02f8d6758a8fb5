import type { Clock } from '@skein/base'
import type { ApprovalRequest, Approvals } from '../contract/approval.ts'
import { memorySpent } from '../contract/spent-store.ts'
import { approve } from './approval-token.ts'
import { generateKey } from '../keys/keys.ts'
import { approvals } from './approvals.ts'

/** Signs and checks approvals. */
export interface SigningDesk {
  readonly approvals: Approvals
  /**
   * Signs an approval that a person gave through the agent framework's own approval mechanism. Called on
   * your server after the person was authenticated; must throw if the person may not approve.
   */
  readonly sign: (request: ApprovalRequest, context: unknown) => Promise<string>
}

/** Signs as "developer" with a key that was made in this process. */
export async function developmentDesk(audience: string, clock: Clock): Promise<SigningDesk> {
  const { publicJwk, privateJwk: key } = await generateKey()
  const issuer = 'development'
  const issuers = { [issuer]: { keys: [publicJwk], may: () => true } }
  return {
    approvals: approvals({ audience, issuers, spent: memorySpent({ clock }), clock }),
    sign: (request) =>
      approve(request, { audience, issuer, approver: 'developer', key, ttlMs: 60_000, clock }),
  }
}
