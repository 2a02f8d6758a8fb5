import { afterEach, describe, expect, test } from 'vitest'
import {
  fromCryptoKeyPair,
  generateKey,
  parseJws,
  rawEd25519,
  signJws,
  thumbprint,
  toSigningKey,
  toVerifyKey,
  verifyJws,
  type KeyAlgorithm,
  type PublicJwk,
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

describe('UAICP-24 the members of a key', () => {
  test.each(['Ed25519', 'ES256'] as const)(
    'UAICP-24 %s: named by its thumbprint or as asked',
    async (alg) => {
      const { publicJwk, privateJwk } = await generateKey({ alg })
      const { kid, alg: _alg, ...bare } = publicJwk
      expect(Object.keys(publicJwk).toSorted()).toEqual(
        (alg === 'Ed25519'
          ? ['alg', 'crv', 'kid', 'kty', 'x']
          : ['alg', 'crv', 'kid', 'kty', 'x', 'y']
        ).toSorted(),
      )
      expect(publicJwk.alg).toBe(alg)
      expect(kid).toBe(thumbprint(publicJwk))
      expect(privateJwk).toEqual({ ...publicJwk, d: privateJwk.d })
      expect((await generateKey({ alg, kid: 'mine' })).publicJwk.kid).toBe('mine')
      // A key without a name gets its thumbprint; a name that it has stays.
      expect(toVerifyKey(bare as never)).toMatchObject({ kid, alg, jwk: bare })
      expect(toVerifyKey({ ...publicJwk, kid: 'other' }).kid).toBe('other')
      const signer = toSigningKey({ ...privateJwk, kid: 'other' })
      expect(signer).toMatchObject({ kid: 'other', alg, jwk: { ...bare, alg, kid: 'other' } })
      expect(signer.jwk).not.toHaveProperty('d')
      // Keys that can sign or verify already are taken as they are.
      expect(toSigningKey(signer)).toBe(signer)
      const verifier = toVerifyKey(publicJwk)
      expect(toVerifyKey(verifier)).toBe(verifier)
    },
  )

  test('UAICP-24 a key of the platform signs under its thumbprint or the name that it is given', async () => {
    const pair = (await crypto.subtle.generateKey('Ed25519', false, [
      'sign',
      'verify',
    ])) as CryptoKeyPair
    const { kty, crv, x } = (await crypto.subtle.exportKey('jwk', pair.publicKey)) as PublicJwk
    const name = thumbprint({ kty, crv, x })
    for (const kid of [undefined, 'desk']) {
      const key = await fromCryptoKeyPair(pair, kid === undefined ? {} : { kid })
      const expected = kid ?? name
      expect(key).toMatchObject({ kid: expected, alg: 'Ed25519' })
      expect(key.jwk).toEqual({ kty, crv, x, alg: 'Ed25519', kid: expected })
      const jws = parseJws(await signJws({ a: 1 }, key, { typ: 't' }))!
      expect(jws.header).toEqual({ alg: 'Ed25519', kid: expected, typ: 't' })
      expect(await verifyJws(jws, toVerifyKey(key.jwk))).toBe(true)
    }
  })

  test('UAICP-24 a type, a curve and coordinates that do not belong together are refused', async () => {
    const { publicJwk } = await generateKey()
    const { publicJwk: p256 } = await generateKey({ alg: 'ES256' })
    const wrong = [
      { ...publicJwk, kty: 'EC' },
      { ...p256, kty: 'OKP' },
      { ...p256, x: 'short' },
      { ...p256, y: 'short' },
      { ...publicJwk, x: `${publicJwk.x}A` },
      { ...publicJwk, x: 5 },
      { ...p256, alg: 'EdDSA' },
    ]
    for (const jwk of wrong)
      expect(() => toVerifyKey(jwk as never)).toThrow(
        expect.objectContaining({ code: 'KEY_INVALID' }),
      )
    expect(() => rawEd25519(p256)).toThrow(expect.objectContaining({ code: 'KEY_INVALID' }))
    expect(rawEd25519(publicJwk)).toHaveLength(32)
  })

  test('UAICP-24 a token of up to 16,384 characters is read; the key decides the algorithm', async () => {
    const { privateJwk, publicJwk } = await generateKey()
    const { publicJwk: p256 } = await generateKey({ alg: 'ES256' })
    const key = toSigningKey(privateJwk)
    const sign = (length: number) => signJws({ pad: 'x'.repeat(length) }, key, { typ: 't' })
    // Three characters of payload are four of the token.
    const base = (await sign(0)).length
    const most = Math.floor(((16_384 - base) * 3) / 4)
    const longest = await sign(most)
    expect(longest.length).toBeGreaterThan(16_380)
    expect(longest.length).toBeLessThanOrEqual(16_384)
    expect(await verifyJws(parseJws(longest)!, toVerifyKey(publicJwk))).toBe(true)
    expect(parseJws(await sign(most + 4))).toBeUndefined()
    const jws = parseJws(await sign(1))!
    expect(await verifyJws(jws, toVerifyKey(p256))).toBe(false)
    expect(
      await verifyJws({ ...jws, header: { ...jws.header, alg: 'ES256' } }, toVerifyKey(publicJwk)),
    ).toBe(false)
    const throwing = { ...toVerifyKey(publicJwk), verify: () => Promise.reject(new Error('no')) }
    expect(await verifyJws(jws, throwing)).toBe(false)
  })
})
