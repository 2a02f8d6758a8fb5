export { approve, signGrant } from './approvals.ts'
export { approvals, type ApprovalIssuer, type ApprovalsOptions } from './approvals.ts'
export { memorySpent } from './approvals.ts'
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
