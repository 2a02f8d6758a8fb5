import {
  decodeBase64Url,
  encodeBase64Url,
  isPlainObject,
  type JsonObject,
  SkeinError,
} from '@skein/base'
import {
  type KeyAlgorithm,
  type PublicJwk,
  type SigningKey,
  toVerifyKey,
  type VerifyKey,
} from '../keys/keys.ts'

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
  /** The ASCII bytes that were signed: header and payload as received, never encoded again. */
  readonly signed: Uint8Array
  readonly signature: Uint8Array
}

/** An approval holds digests and no arguments, so an honest token is far shorter than this. */
const MAX_TOKEN_CHARACTERS = 16_384

const utf8 = new TextEncoder()
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Signs a payload; `alg` and `kid` come from the key. */
export async function signJws(
  payload: JsonObject,
  key: SigningKey,
  { typ }: { readonly typ: string },
): Promise<string> {
  const header = { alg: key.alg, kid: key.kid, typ }
  const signed = `${encodeJson(header)}.${encodeJson(payload)}`
  return `${signed}.${encodeBase64Url(await key.sign(utf8.encode(signed)))}`
}

/** The parts of a compact JWS, or undefined for anything that is not exactly one. */
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
    // `crit` names extensions that must be understood; we know none (RFC 7515 §4.1.11).
    if (typeof header['alg'] !== 'string' || 'crit' in header) return undefined
    return {
      header: header as JwsHeader,
      payload: payload as JsonObject,
      signed: utf8.encode(token.slice(0, second)),
      signature,
    }
  } catch {
    return undefined // Not base64url, not UTF-8 or not JSON: all the same to the caller.
  }
}

/**
 * True when this key signed these bytes with the key's own algorithm. The header cannot choose another one:
 * its `alg` must be the key's, so neither "none" nor HMAC with a public key as secret passes.
 */
export async function verifyJws(jws: ParsedJws, key: VerifyKey): Promise<boolean> {
  if (jws.header.alg !== key.alg) return false
  try {
    return await key.verify(jws.signed, jws.signature)
  } catch {
    return false // A platform that cannot read the signature has not verified it.
  }
}

function encodeJson(value: unknown): string {
  return encodeBase64Url(utf8.encode(JSON.stringify(value)))
}

function decodeJson(part: string): unknown {
  return JSON.parse(strictUtf8.decode(decodeBase64Url(part)))
}

/** A public key of an issuer in any form we can check with. */
export type IssuerKey = PublicJwk | VerifyKey | CryptoKey

/**
 * Finds an issuer's keys by `kid`. A `kid` only selects among keys that have one, to save work; it proves
 * nothing. Keys without a `kid` are always tried.
 */
export function createIssuerKeys(
  issuer: string,
  keys: readonly IssuerKey[],
  alg: KeyAlgorithm,
): (kid: unknown) => Promise<readonly VerifyKey[]> {
  const plain = keys.flatMap((key): NamedKey[] =>
    isCryptoKey(key) ? [] : [{ name: key.kid, key: toVerifyKey(key) }],
  )
  for (const { key } of plain) if (key.alg !== alg) throw wrongAlgorithm(issuer, key.alg, alg)
  let all: Promise<readonly NamedKey[]> | undefined
  return async (kid) => {
    all ??= Promise.all(
      keys.filter(isCryptoKey).map((key) => fromCryptoKey(issuer, key, alg)),
    ).then((exported) => [...plain, ...exported])
    const known = await all
    return known
      .filter(({ name }) => name === undefined || kid === undefined || name === kid)
      .map(({ key }) => key)
  }
}

interface NamedKey {
  readonly name: string | undefined
  readonly key: VerifyKey
}

function isCryptoKey(key: IssuerKey): key is CryptoKey {
  return typeof CryptoKey === 'function' && key instanceof CryptoKey
}

async function fromCryptoKey(issuer: string, key: CryptoKey, alg: KeyAlgorithm): Promise<NamedKey> {
  const jwk = (await crypto.subtle.exportKey('jwk', key)) as unknown as PublicJwk
  const { kty, crv, x, y } = jwk
  const found = toVerifyKey(y === undefined ? { kty, crv, x } : { kty, crv, x, y })
  if (found.alg !== alg || key.type !== 'public') throw wrongAlgorithm(issuer, found.alg, alg)
  return { name: undefined, key: found }
}

function wrongAlgorithm(issuer: string, found: string, wanted: string): SkeinError {
  return new SkeinError(`Issuer "${issuer}" is set to ${wanted}, but has a key for ${found}.`, {
    code: 'KEY_INVALID',
    hint: `Set alg: '${found}' for the issuer, or give it public keys of one kind.`,
  })
}
