import { encodeBase64Url, manualClock, sha256Hex } from '@skein/base'
import { beforeAll, expect, test } from 'vitest'
import { apiKeys, type Verify } from '../../src/auth/authenticate.ts'
import { type Jwk, jwtAuth } from '../../src/auth/jwt-auth.ts'

const NOW = 1_800_000_000_000
const KINDS = {
  RS256: {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
  ES256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' },
} as const
type Kind = keyof typeof KINDS

const pairs = {} as Record<Kind, CryptoKeyPair>
const published: Jwk[] = []

beforeAll(async () => {
  for (const kind of Object.keys(KINDS) as Kind[]) {
    const pair = (await crypto.subtle.generateKey(KINDS[kind], true, [
      'sign',
      'verify',
    ])) as CryptoKeyPair
    pairs[kind] = pair
    const jwk = await crypto.subtle.exportKey('jwk', pair.publicKey)
    published.push({ ...jwk, kid: kind })
  }
})

const claims = {
  iss: 'https://id.example',
  aud: 'skein',
  sub: 'ada',
  tenant: 'acme',
  scope: 'threads:read threads:write nonsense',
  exp: NOW / 1000 + 60,
}

async function token(kind: Kind, payload: object, head: object = {}): Promise<string> {
  const signed = [{ alg: kind, kid: kind, ...head }, payload].map(part).join('.')
  const signature = await crypto.subtle.sign(
    KINDS[kind],
    pairs[kind].privateKey,
    new TextEncoder().encode(signed),
  )
  return `${signed}.${encodeBase64Url(new Uint8Array(signature))}`
}

const part = (json: object): string =>
  encodeBase64Url(new TextEncoder().encode(JSON.stringify(json)))
const request = (key: string): Request =>
  new Request('http://localhost/', { headers: { authorization: `Bearer ${key}` } })
const auth = (options: object = {}): Verify =>
  jwtAuth({
    jwks: { keys: published },
    issuer: claims.iss,
    audience: 'skein',
    clock: manualClock(NOW),
    ...options,
  })

test.each(Object.keys(KINDS) as Kind[])('a token signed with %s lets its user in', async (kind) => {
  expect(await auth()(request(await token(kind, claims)))).toEqual({
    tenant: 'acme',
    user: 'ada',
    scopes: ['threads:read', 'threads:write'],
    expiresAt: claims.exp * 1000,
  })
})

test('a token that is expired, early, of another issuer or audience, or without user lets nobody in', async () => {
  const wrong = [
    { exp: NOW / 1000 - 31 },
    { exp: undefined },
    { exp: 'never' },
    { nbf: NOW / 1000 + 31 },
    { iss: 'https://evil.example' },
    { aud: 'other' },
    { aud: ['other'] },
    { aud: undefined },
    { sub: undefined },
    { sub: '' },
    { tenant: undefined },
    { tenant: 7 },
  ]
  for (const change of wrong) {
    const signed = await token('ES256', { ...claims, ...change })
    expect(await auth()(request(signed)), JSON.stringify(change)).toBeNull()
  }
  expect(
    await auth()(request(await token('ES256', { ...claims, aud: ['x', 'skein'] }))),
  ).not.toBeNull()
})

test('a token that is unsigned, signed otherwise than it says, or changed lets nobody in', async () => {
  const good = await token('RS256', claims)
  const [head, payload, signature] = good.split('.')
  const hmacKey = await crypto.subtle.importKey(
    'raw',
    new TextEncoder().encode(JSON.stringify(published[0])),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  )
  const hs = [{ alg: 'HS256', kid: 'RS256' }, claims].map(part).join('.')
  const mac = await crypto.subtle.sign('HMAC', hmacKey, new TextEncoder().encode(hs))
  const wrong = [
    `${part({ alg: 'none' })}.${payload}.`,
    `${part({ alg: 'none' })}.${payload}.${signature}`,
    `${part({ alg: 'ES256', kid: 'RS256' })}.${payload}.${signature}`,
    `${hs}.${encodeBase64Url(new Uint8Array(mac))}`,
    `${head}.${part({ ...claims, sub: 'eve' })}.${signature}`,
    `${head}.${payload}`,
    `${head}.${payload}.${signature}.x`,
    `${head}.${payload}.!!!`,
    'nothing',
    '..',
    await token('EdDSA', claims, { alg: 'RS256' }),
    await token('EdDSA', claims, { kid: 'other' }),
    await token('EdDSA', claims, { crit: ['b64'], b64: false }),
  ]
  for (const bad of wrong) expect(await auth()(request(bad)), bad).toBeNull()
})

test('a token without a key id is tried with every key of its kind', async () => {
  const other = (await crypto.subtle.generateKey(KINDS.ES256, true, ['sign'])) as CryptoKeyPair
  const first = { ...(await crypto.subtle.exportKey('jwk', other.publicKey)), kid: 'first' }
  const verify = auth({ jwks: { keys: [first, ...published] } })
  expect(await verify(request(await token('ES256', claims, { kid: undefined })))).not.toBeNull()
  expect(
    await verify(request(await token('ES256', { ...claims, aud: 'x' }, { kid: undefined }))),
  ).toBeNull()
  expect(await verify(request(await token('ES256', claims, { kid: 'first' })))).toBeNull()
})

test('keys that are too short, private, not for signatures or not keys let nobody in', async () => {
  const weak = (await crypto.subtle.generateKey({ ...KINDS.RS256, modulusLength: 1024 }, true, [
    'sign',
    'verify',
  ])) as CryptoKeyPair
  const signed = [{ alg: 'RS256', kid: 'weak' }, claims].map(part).join('.')
  const bytes = new TextEncoder().encode(signed)
  const signature = await crypto.subtle.sign(KINDS.RS256, weak.privateKey, bytes)
  const jwk = await crypto.subtle.exportKey('jwk', weak.publicKey)
  const short = auth({ jwks: { keys: [{ ...jwk, kid: 'weak' }] } })
  const made = `${signed}.${encodeBase64Url(new Uint8Array(signature))}`
  expect(await short(request(made))).toBeNull()

  const good = published.find(({ kid }) => kid === 'ES256')!
  const { d } = await crypto.subtle.exportKey('jwk', pairs.ES256.privateKey)
  for (const change of [
    { d },
    { use: 'enc' },
    { key_ops: ['sign'] },
    { x: 'AA' },
    { x: undefined },
  ])
    expect(
      await auth({ jwks: { keys: [{ ...good, ...change }] } })(
        request(await token('ES256', claims)),
      ),
      JSON.stringify(Object.keys(change)),
    ).toBeNull()
})

test('published keys are read once, again when a new one is named, and not for every made-up name', async () => {
  const clock = manualClock(NOW)
  let reads = 0
  let keys = published.filter(({ kid }) => kid === 'ES256')
  const verify = auth({
    jwks: 'https://id.example/jwks',
    clock,
    fetch: async () => {
      reads += 1
      return Response.json({ keys })
    },
  })
  const long = { ...claims, exp: claims.exp + 3600 }
  const es = await token('ES256', long)
  const ed = await token('EdDSA', long)
  expect(await verify(request(es))).not.toBeNull()
  expect(await verify(request(es))).not.toBeNull()
  expect(reads).toBe(1)
  for (let i = 0; i < 5; i++) expect(await verify(request(ed))).toBeNull()
  expect(reads).toBe(1)
  keys = published
  clock.advance(31_000)
  expect(await verify(request(ed))).not.toBeNull()
  expect(reads).toBe(2)
})

test('keys that cannot be read let nobody in, and those that were known stay', async () => {
  const clock = manualClock(NOW)
  let isUp = false
  const verify = auth({
    jwks: 'https://id.example/jwks',
    clock,
    fetch: async () => {
      if (!isUp) throw new Error('down')
      return Response.json({ keys: published })
    },
  })
  const signed = await token('ES256', { ...claims, exp: claims.exp + 3600 })
  expect(await verify(request(signed))).toBeNull()
  isUp = true
  clock.advance(31_000)
  expect(await verify(request(signed))).not.toBeNull()
  isUp = false
  clock.advance(601_000)
  expect(await verify(request(signed))).not.toBeNull()
})

test('a key opens what it says, by itself or by its hash, and shows nowhere', async () => {
  const secret = 'sk-canary-0123456789'
  const verify = apiKeys([
    { key: secret, tenant: 'acme', user: 'ada', scopes: ['threads:read'] },
    { sha256: sha256Hex('sk-other-0123456789'), tenant: 'b', scopes: ['admin'] },
  ])
  const ada = await verify(request(secret))
  expect(ada).toMatchObject({ tenant: 'acme', user: 'ada', scopes: ['threads:read'] })
  expect(JSON.stringify(ada)).not.toContain('canary')
  expect(JSON.stringify(ada)).not.toContain(sha256Hex(secret).slice(0, 12))
  expect(await verify(request('sk-other-0123456789'))).toMatchObject({ tenant: 'b' })
  const other = new Request('http://localhost/', { headers: { 'x-api-key': secret } })
  expect(await verify(other)).toEqual(ada)
  for (const wrong of ['', `${secret}x`, secret.slice(0, -1), secret.toUpperCase()])
    expect(
      await verify(new Request('http://localhost/', { headers: { 'x-api-key': wrong } })),
    ).toBeNull()
  expect(await verify(new Request('http://localhost/'))).toBeNull()
})

test('a key that is too short is refused when it is given', () => {
  expect(() => apiKeys([{ key: 'short', tenant: 'a', scopes: [] }])).toThrow(/16 characters/)
  expect(() => apiKeys([{ sha256: 'xyz', tenant: 'a', scopes: [] }])).toThrow(/64 hex/)
})
