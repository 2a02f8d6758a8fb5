export { approvals, type ApprovalIssuer, type ApprovalsOptions } from './approvals.ts'
export {
  fromCryptoKeyPair,
  generateKey,
  thumbprint,
  toSigningKey,
  toVerifyKey,
  type KeyAlgorithm,
  type PrivateJwk,
  type PublicJwk,
  type SigningKey,
  type VerifyKey,
} from '../keys/keys.ts'
export { memorySpent } from '../contract/spent-store.ts'
export { approve, signGrant } from './approval-token.ts'
