import { afterEach, describe, expect, test } from 'vitest'
import {
  generateKey,
  toSigningKey,
  toVerifyKey,
  type KeyAlgorithm,
  type SigningKey,
  type VerifyKey,
} from './keys.ts'

const builtin = process.getBuiltinModule
afterEach(() => void (process.getBuiltinModule = builtin))

/** Makes keys as on a platform without node:crypto. */
function portable<T>(make: () => T): T {
  process.getBuiltinModule = undefined as never
  try {
    return make()
  } finally {
    process.getBuiltinModule = builtin
  }
}

const data = new TextEncoder().encode('what is signed')

for (const alg of ['Ed25519', 'ES256'] as KeyAlgorithm[]) {
  describe(alg, () => {
    test('WebCrypto and node:crypto make and take the same signatures', async () => {
      const { publicJwk, privateJwk } = await generateKey({ alg })
      const signers: SigningKey[] = [
        toSigningKey(privateJwk),
        portable(() => toSigningKey(privateJwk)),
      ]
      const verifiers: VerifyKey[] = [
        toVerifyKey(publicJwk),
        portable(() => toVerifyKey(publicJwk)),
      ]
      for (const signer of signers) {
        const signature = await signer.sign(data)
        expect(signature).toHaveLength(64)
        const broken = signature.map((byte, index) => (index === 40 ? byte ^ 1 : byte))
        for (const verifier of verifiers) {
          expect(await verifier.verify(data, signature)).toBe(true)
          expect(await verifier.verify(data.slice(1), signature)).toBe(false)
          expect(await verifier.verify(data, broken)).toBe(false)
          expect(await verifier.verify(data, signature.slice(0, 63))).toBe(false)
          expect(await verifier.verify(data, new Uint8Array(0))).toBe(false)
        }
      }
    })

    test('the fast path answers at once, the portable one with a promise', async () => {
      const { publicJwk } = await generateKey({ alg })
      expect(toVerifyKey(publicJwk).verify(data, new Uint8Array(64))).toBe(false)
      expect(
        portable(() => toVerifyKey(publicJwk)).verify(data, new Uint8Array(64)),
      ).toBeInstanceOf(Promise)
    })
  })
}

test('keys of other kinds, or that contradict themselves, are refused', async () => {
  const { publicJwk } = await generateKey()
  const { publicJwk: p256 } = await generateKey({ alg: 'ES256' })
  const bad = [
    { kty: 'oct', k: 'AA' },
    { kty: 'RSA', n: 'AA', e: 'AQAB' },
    { ...publicJwk, crv: 'X25519' },
    { ...publicJwk, x: 'short' },
    { ...publicJwk, alg: 'ES256' },
    { ...p256, y: undefined },
    { ...p256, crv: 'P-384' },
  ]
  for (const jwk of bad)
    expect(() => toVerifyKey(jwk as never)).toThrow(
      expect.objectContaining({ code: 'KEY_INVALID' }),
    )
  expect(toVerifyKey({ ...publicJwk, alg: 'EdDSA' }).alg).toBe('Ed25519')
})
