import {
  canonicalJson,
  decodeBase64Url,
  encodeBase64Url,
  sha256,
  SkeinError,
  isPlainObject,
  type JsonObject,
} from '@skein/base'
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
  const publicJwk = (await crypto.subtle.exportKey('jwk', pair.publicKey)) as PublicJwk
  const { jwk, alg, ...found } = toVerifyKey(publicJwk)
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
  const curve = jwk.alg === 'EdDSA' ? 'Ed25519' : jwk.alg
  if (curve !== undefined && curve !== alg)
    throw keyError(`The key is for ${alg}, but its "alg" says ${curve}.`)
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

/** The protected header of a compact JWS (RFC 7515). */
interface JwsHeader {
  readonly alg: string
  readonly kid?: string
  readonly typ?: string
  readonly [parameter: string]: unknown
}

/** A parsed compact JWS. Nothing in it can be trusted before `verifyJws`. */
interface ParsedJws {
  readonly header: JwsHeader
  readonly payload: JsonObject
  /** The ASCII bytes that were signed: header and payload exactly as received, not encoded again. */
  readonly signed: Uint8Array
  readonly signature: Uint8Array
}

/**
 * The maximum length of a token. An approval contains digests and no arguments, so a valid token is far
 * shorter.
 */
const MAX_TOKEN_CHARACTERS = 16_384

const utf8 = new TextEncoder()

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Signs a payload as a compact JWS; `alg` and `kid` come from the key. */
export async function signJws(
  payload: JsonObject,
  key: SigningKey,
  { typ }: { readonly typ: string },
): Promise<string> {
  const header = { alg: key.alg, kid: key.kid, typ }
  const signingInput = `${encodeJson(header)}.${encodeJson(payload)}`
  return `${signingInput}.${encodeBase64Url(await key.sign(utf8.encode(signingInput)))}`
}

/** Parses a compact JWS; undefined for anything else. */
export function parseJws(token: unknown): ParsedJws | undefined {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_CHARACTERS) return undefined
  const first = token.indexOf('.')
  const second = token.indexOf('.', first + 1)
  if (first < 1 || second < 0 || token.includes('.', second + 1)) return undefined
  try {
    const header = decodeJson(token.slice(0, first))
    const payload = decodeJson(token.slice(first + 1, second))
    const signature = decodeBase64Url(token.slice(second + 1))
    if (!isPlainObject(header) || !isPlainObject(payload)) return undefined
    // `crit` lists extensions that the reader must understand; none is supported here (RFC 7515 §4.1.11).
    if (typeof header['alg'] !== 'string' || 'crit' in header) return undefined
    return {
      header: header as JwsHeader,
      payload: payload as JsonObject,
      signed: utf8.encode(token.slice(0, second)),
      signature,
    }
  } catch {
    return undefined // Not base64url, not UTF-8 or not JSON.
  }
}

/**
 * True when this key signed these bytes with the key's own algorithm. The header's `alg` must be that of
 * the key, so a token cannot choose "none" or HMAC with the public key as secret.
 */
export async function verifyJws(jws: ParsedJws, key: VerifyKey): Promise<boolean> {
  if (jws.header.alg !== key.alg) return false
  try {
    return await key.verify(jws.signed, jws.signature)
  } catch {
    return false // A signature that the platform cannot read is not valid.
  }
}

function encodeJson(value: unknown): string {
  return encodeBase64Url(utf8.encode(JSON.stringify(value)))
}

function decodeJson(part: string): unknown {
  return JSON.parse(strictUtf8.decode(decodeBase64Url(part)))
}
