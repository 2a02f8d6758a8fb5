import type { KeyAlgorithm, PrivateJwk, PublicJwk, SigningKey, VerifyKey } from './keys.ts'

type NodeCrypto = typeof import('node:crypto')
type KeyObject = import('node:crypto').KeyObject

/**
 * Returns a function that verifies signatures synchronously with node:crypto, because WebCrypto would
 * send each check through the thread pool. Returns undefined on other platforms and for keys that
 * node:crypto does not support; `keys.ts` then uses WebCrypto.
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

/**
 * Returns a function that signs synchronously with node:crypto; undefined on other platforms and for keys
 * that node:crypto does not support.
 */
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

/**
 * Creates a key object; undefined if node:crypto does not support the key, so that WebCrypto is used
 * instead.
 */
function attempt(make: () => KeyObject): KeyObject | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}
