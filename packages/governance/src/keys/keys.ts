import { canonicalJson, decodeBase64Url, encodeBase64Url, sha256, SkeinError } from '@skein/base'
import { nodeSign, nodeVerify } from './keys-node.ts'

/** The signature algorithms. The key determines which one is used, never the token (RFC 8725 §3.1). */
export type KeyAlgorithm = 'Ed25519' | 'ES256'

/** A public key as plain JSON (RFC 7517). Unknown members are ignored. */
export interface PublicJwk {
  readonly kty: string
  readonly crv: string
  readonly x: string
  readonly y?: string
  readonly kid?: string
  readonly alg?: string
  readonly [member: string]: unknown
}

/** A private key as plain JSON. Only the signer should have it. */
export interface PrivateJwk extends PublicJwk {
  readonly d: string
}

/** Verifies signatures of one key with one algorithm. */
export interface VerifyKey {
  readonly kid: string
  readonly alg: KeyAlgorithm
  readonly jwk: PublicJwk
  verify(data: Uint8Array, signature: Uint8Array): boolean | Promise<boolean>
}

/** Creates signatures. An implementation may keep its key in a vault or a hardware module. */
export interface SigningKey {
  readonly kid: string
  readonly alg: KeyAlgorithm
  /** The public key, for those who verify the signatures. */
  readonly jwk: PublicJwk
  sign(data: Uint8Array): Uint8Array | Promise<Uint8Array>
}

/** Options of `generateKey`. */
export interface GenerateKeyOptions {
  readonly alg?: KeyAlgorithm
  /** The name of the key; its RFC 7638 thumbprint by default. */
  readonly kid?: string
}

/** Generates a new key pair as plain JSON. Store `privateJwk` where only the signer can read it. */
export async function generateKey({ alg = 'Ed25519', kid }: GenerateKeyOptions = {}): Promise<{
  readonly publicJwk: PublicJwk
  readonly privateJwk: PrivateJwk
}> {
  const pair = (await crypto.subtle.generateKey(parametersOf(alg), true, [
    'sign',
    'verify',
  ])) as CryptoKeyPair
  const { kty, crv, x, y, d } = await crypto.subtle.exportKey('jwk', pair.privateKey)
  const bare = publicMembers({ kty: kty!, crv: crv!, x: x!, y })
  const publicJwk = { ...bare, alg, kid: kid ?? thumbprint(bare) }
  return { publicJwk, privateJwk: { ...publicJwk, d: d! } }
}

/**
 * Converts a public JWK into a key that verifies signatures. Throws for keys of other kinds, and for
 * private keys passed by mistake.
 */
export function toVerifyKey(key: PublicJwk | VerifyKey): VerifyKey {
  if (isVerifyKey(key)) return key
  if ('d' in key) throw keyError('A private key was given where a public one is enough.')
  const jwk = checkedPublic(key)
  const alg = algorithmOf(key)
  const fast = nodeVerify(jwk, alg)
  return { kid: key.kid ?? thumbprint(jwk), alg, jwk, verify: fast ?? subtleVerify(jwk, alg) }
}

/** Converts a private JWK into a key that signs. */
export function toSigningKey(key: PrivateJwk | SigningKey): SigningKey {
  if (isSigningKey(key)) return key
  if (typeof key.d !== 'string') throw keyError('A private key was expected; this one has no "d".')
  const jwk = checkedPublic(key)
  const alg = algorithmOf(key)
  const kid = key.kid ?? thumbprint(jwk)
  const full = { ...jwk, d: key.d }
  const sign = nodeSign(full, alg) ?? subtleSign(full, alg)
  return { kid, alg, jwk: { ...jwk, alg, kid }, sign }
}

/**
 * Creates a signing key from a WebCrypto key pair, whose private key need not be extractable; this is the
 * usual case in a browser.
 */
export async function fromCryptoKeyPair(
  pair: { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey },
  { kid }: { readonly kid?: string } = {},
): Promise<SigningKey> {
  const exported = (await crypto.subtle.exportKey('jwk', pair.publicKey)) as PublicJwk
  const { jwk, alg, ...found } = toVerifyKey(exported)
  const name = kid ?? found.kid
  return {
    kid: name,
    alg,
    jwk: { ...jwk, alg, kid: name },
    sign: (data) => subtleSignWith(pair.privateKey, alg, data),
  }
}

/**
 * Returns the RFC 7638 thumbprint of a key: the SHA-256 of its required members, so equal keys have equal
 * names.
 */
export function thumbprint(jwk: PublicJwk): string {
  return encodeBase64Url(sha256(canonicalJson(publicMembers(jwk))))
}

/** Returns the 32 bytes of an Ed25519 public key. */
export function rawEd25519(jwk: PublicJwk): Uint8Array {
  if (jwk.crv !== 'Ed25519') throw keyError(`An Ed25519 key was expected, not ${jwk.crv}.`)
  return decodeBase64Url(jwk.x)
}

function isVerifyKey(key: PublicJwk | VerifyKey): key is VerifyKey {
  return typeof key['verify'] === 'function'
}

function isSigningKey(key: PrivateJwk | SigningKey): key is SigningKey {
  return typeof (key as SigningKey).sign === 'function'
}

function publicMembers({ kty, crv, x, y }: PublicJwk): PublicJwk {
  return y === undefined ? { crv, kty, x } : { crv, kty, x, y }
}

/** Returns the algorithm for a key's curve. Throws if the key's `alg` member names another one. */
function algorithmOf(jwk: PublicJwk): KeyAlgorithm {
  const alg = jwk.crv === 'Ed25519' ? 'Ed25519' : 'ES256'
  // "EdDSA" is the older name of Ed25519 in key files.
  const named = jwk.alg === 'EdDSA' ? 'Ed25519' : jwk.alg
  if (named !== undefined && named !== alg)
    throw keyError(`The key is for ${alg}, but its "alg" says ${named}.`)
  return alg
}

function checkedPublic(jwk: PublicJwk): PublicJwk {
  const isEd25519 = jwk.kty === 'OKP' && jwk.crv === 'Ed25519' && isCoordinate(jwk.x)
  const isP256 =
    jwk.kty === 'EC' && jwk.crv === 'P-256' && isCoordinate(jwk.x) && isCoordinate(jwk.y)
  if (!isEd25519 && !isP256) throw keyError('The key is neither Ed25519 nor P-256 (ES256).')
  return publicMembers(jwk)
}

function isCoordinate(text: unknown): boolean {
  return typeof text === 'string' && /^[\w-]{43}$/.test(text)
}

function parametersOf(alg: KeyAlgorithm): { name: string; namedCurve?: string; hash?: string } {
  return alg === 'Ed25519'
    ? { name: 'Ed25519' }
    : { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
}

function subtleVerify(jwk: PublicJwk, alg: KeyAlgorithm): VerifyKey['verify'] {
  const key = once(() => importJwk(jwk, alg, 'verify'))
  return async (data, signature) => {
    const bytes = [new Uint8Array(signature), new Uint8Array(data)] as const
    return crypto.subtle.verify(parametersOf(alg), await key(), ...bytes)
  }
}

function subtleSign(jwk: PublicJwk, alg: KeyAlgorithm): SigningKey['sign'] {
  const key = once(() => importJwk(jwk, alg, 'sign'))
  return async (data) => subtleSignWith(await key(), alg, data)
}

async function subtleSignWith(
  key: CryptoKey,
  alg: KeyAlgorithm,
  data: Uint8Array,
): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign(parametersOf(alg), key, new Uint8Array(data)))
}

function importJwk(jwk: PublicJwk, alg: KeyAlgorithm, use: 'sign' | 'verify'): Promise<CryptoKey> {
  return crypto.subtle.importKey('jwk', { ...jwk }, parametersOf(alg), false, [use])
}

/**
 * Delays `make` until its first use, so that unused keys cost nothing and an error reaches the code that
 * first uses the key.
 */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

/** Creates the error of a key that cannot be used. The message must not contain any part of the key. */
export function keyError(message: string): SkeinError {
  return new SkeinError(message, {
    code: 'KEY_INVALID',
    hint: 'Keys are JWKs: kty "OKP" with crv "Ed25519", or kty "EC" with crv "P-256".',
  })
}
