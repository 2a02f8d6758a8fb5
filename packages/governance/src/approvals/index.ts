export { approve, signGrant, type ApproveOptions, type GrantScope } from './approvals.ts'
export { approvals, type ApprovalIssuer, type ApprovalsOptions } from './approvals.ts'
export { APPROVAL_TYP, GRANT_TYP } from './approval-token.ts'
export { memorySpent } from './approvals.ts'
export type { IssuerKey } from './approval-token.ts'
export {
  fromCryptoKeyPair,
  generateKey,
  thumbprint,
  toSigningKey,
  toVerifyKey,
  type GenerateKeyOptions,
  type KeyAlgorithm,
  type PrivateJwk,
  type PublicJwk,
  type SigningKey,
  type VerifyKey,
} from '../keys/keys.ts'
