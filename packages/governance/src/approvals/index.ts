export { approve, signGrant, type ApproveOptions, type GrantScope } from './approve.ts'
export {
  approvals,
  type ApprovalIssuer,
  type ApprovalsOptions,
  type TokenReference,
} from './approvals.ts'
export { APPROVAL_TYP, GRANT_TYP } from './approval-token.ts'
export { memorySpent } from './approvals.ts'
export type { IssuerKey } from './jws.ts'
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
