import type { KeyAlgorithm, PrivateJwk, PublicJwk, SigningKey, VerifyKey } from './keys.ts'

type NodeCrypto = typeof import('node:crypto')
type KeyObject = import('node:crypto').KeyObject

/**
 * Verifies with node:crypto, synchronously: WebCrypto would add a trip through the thread pool to each check.
 * Undefined on other platforms; `keys.ts` then uses WebCrypto.
 */
export function nodeVerify(jwk: PublicJwk, alg: KeyAlgorithm): VerifyKey['verify'] | undefined {
  const node = nodeCrypto()
  const key = node && attempt(() => node.createPublicKey({ key: { ...jwk }, format: 'jwk' }))
  if (!node || !key) return undefined
  if (alg === 'Ed25519')
    return (data, signature) => signature.length === 64 && node.verify(null, data, key, signature)
  const p256 = { key, dsaEncoding: 'ieee-p1363' } as const
  return (data, signature) =>
    signature.length === 64 && node.verify('sha256', data, p256, signature)
}

/** As `nodeVerify`, for signing. */
export function nodeSign(jwk: PrivateJwk, alg: KeyAlgorithm): SigningKey['sign'] | undefined {
  const node = nodeCrypto()
  const key = node && attempt(() => node.createPrivateKey({ key: { ...jwk }, format: 'jwk' }))
  if (!node || !key) return undefined
  if (alg === 'Ed25519') return (data) => new Uint8Array(node.sign(null, data, key))
  const p256 = { key, dsaEncoding: 'ieee-p1363' } as const
  return (data) => new Uint8Array(node.sign('sha256', data, p256))
}

function nodeCrypto(): NodeCrypto | undefined {
  if (typeof process === 'undefined' || typeof process.getBuiltinModule !== 'function') return
  return process.getBuiltinModule('node:crypto')
}

/** A platform whose node:crypto does not know the key is treated like one without node:crypto. */
function attempt(make: () => KeyObject): KeyObject | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}
