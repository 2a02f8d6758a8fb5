import { type Clock, decodeBase64Url, isPlainObject, systemClock } from '@skein/base'
import { ALL_SCOPES, type Principal, type Scope } from '../../operations/principal.ts'
import { presentedKey, type Verify } from './authenticate.ts'

/** Which tokens are accepted, and which claims identify the client. */
export interface JwtAuthOptions {
  /** The address where the issuer publishes its keys, or the keys themselves. */
  readonly jwks: string | { readonly keys: readonly Jwk[] }
  readonly issuer: string
  readonly audience: string
  /** Names of claims. Defaults: `tenant`, `sub`, `scope`. */
  readonly claims?: { readonly tenant?: string; readonly user?: string; readonly scopes?: string }
  /** The tenant of tokens that contain no tenant claim. */
  readonly tenant?: string
  readonly scopes?: readonly Scope[]
  /** The tolerated difference between the clocks of issuer and server. Default 30 s. */
  readonly leewayMs?: number
  readonly fetch?: typeof fetch
  readonly clock?: Clock
}

type Claims = Readonly<Record<string, unknown>>

/** Creates a function that accepts signed tokens (RS256, ES256, EdDSA) of one issuer for one audience. */
export function jwtAuth(options: JwtAuthOptions): Verify {
  const { clock = systemClock } = options
  const findKey = keySource(options.jwks, { clock, fetch: options.fetch ?? fetch })
  return async (request) => {
    const token = presentedKey(request.headers)
    const parts = token === undefined || token.length > 16_384 ? [] : token.split('.')
    const [header, payload, signature] = parts
    if (parts.length !== 3 || !header || !payload || !signature) return null
    const claims = decoded(payload)
    if (!claims) return null
    const { issuer, audience, leewayMs = 30_000 } = options
    const { iss, aud, exp, nbf } = claims
    const now = clock.now()
    if (iss !== issuer || ![aud].flat().includes(audience)) return null
    if (typeof exp !== 'number' || exp * 1000 + leewayMs <= now) return null
    if (nbf !== undefined && !(typeof nbf === 'number' && nbf * 1000 - leewayMs <= now)) return null
    if (!(await isSigned({ header, payload, signature }, findKey))) return null
    return principalOf(claims, options)
  }
}

interface Parts {
  readonly header: string
  readonly payload: string
  readonly signature: string
}

async function isSigned(
  { header, payload, signature }: Parts,
  findKey: ReturnType<typeof keySource>,
): Promise<boolean> {
  const head = decoded(header)
  const name = head?.['alg']
  // The list contains neither `none` nor any symmetric algorithm.
  const algorithm = ALGORITHMS.find(({ names }) => typeof name === 'string' && names.includes(name))
  // `crit` names extensions that a verifier must understand; we understand none.
  if (!head || !algorithm || head['crit'] !== undefined) return false
  const bytes = base64(signature)
  if (!bytes) return false
  const keys = await findKey({ algorithm, kid: head['kid'] })
  const signed = new TextEncoder().encode(`${header}.${payload}`)
  for (const key of keys)
    if (await crypto.subtle.verify(algorithm.verify, key, bytes, signed)) return true
  return false
}

function principalOf(claims: Claims, options: JwtAuthOptions): Principal | null {
  const names = { tenant: 'tenant', user: 'sub', scopes: 'scope', ...options.claims }
  const tenant = claims[names.tenant] ?? options.tenant
  const user = claims[names.user]
  if (typeof tenant !== 'string' || tenant === '') return null
  // A client without a user sees all threads of its tenant, so a token that names no user is refused.
  if (typeof user !== 'string' || user === '') return null
  const claim = claims[names.scopes]
  const words: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : [claim].flat()
  const scopes =
    claim === undefined
      ? (options.scopes ?? [])
      : ALL_SCOPES.filter((scope) => words.includes(scope))
  return { tenant, user, scopes, expiresAt: Number(claims['exp']) * 1000 }
}

function decoded(part: string): Claims | undefined {
  const bytes = base64(part)
  if (!bytes) return undefined
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isPlainObject(value) ? value : undefined
  } catch {
    return undefined // text that is not JSON is not a token
  }
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return new Uint8Array(decodeBase64Url(text))
  } catch {
    return undefined // text that is not base64url is not a token
  }
}

/** A public key as JSON (RFC 7517). */
export type Jwk = JsonWebKey & { readonly kid?: string; readonly alg?: string }

/** One signature algorithm, and the kind of key that belongs to it. */
interface JwtAlgorithm {
  /** The names of the algorithm in token headers and keys. */
  readonly names: readonly string[]
  readonly kty: string
  readonly crv?: string
  readonly import: RsaHashedImportParams | EcKeyImportParams | AlgorithmIdentifier
  readonly verify: EcdsaParams | AlgorithmIdentifier
}

const ALGORITHMS: readonly JwtAlgorithm[] = [
  {
    names: ['RS256'],
    kty: 'RSA',
    import: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    verify: 'RSASSA-PKCS1-v1_5',
  },
  {
    names: ['ES256'],
    kty: 'EC',
    crv: 'P-256',
    import: { name: 'ECDSA', namedCurve: 'P-256' },
    verify: { name: 'ECDSA', hash: 'SHA-256' },
  },
  { names: ['EdDSA', 'Ed25519'], kty: 'OKP', crv: 'Ed25519', import: 'Ed25519', verify: 'Ed25519' },
]

/** The age at which keys are fetched again. They are also fetched when a token names an unknown key. */
const MAX_AGE_MS = 600_000
/**
 * The minimum time between two fetches, so that tokens with made-up key ids cannot flood the issuer with
 * requests.
 */
const MIN_AGE_MS = 30_000

type FindKeys = (wanted: {
  readonly algorithm: JwtAlgorithm
  readonly kid: unknown
}) => Promise<readonly CryptoKey[]>

/**
 * Creates a function that finds the keys that may have signed a token: by kind, and by id if the token has
 * one.
 */
function keySource(
  jwks: string | { readonly keys: readonly Jwk[] },
  { clock, fetch }: { readonly clock: Clock; readonly fetch: typeof globalThis.fetch },
): FindKeys {
  let keys: readonly Jwk[] = typeof jwks === 'string' ? [] : jwks.keys
  let readAt = typeof jwks === 'string' ? -Infinity : Infinity
  let reading: Promise<void> | undefined
  const imported = new WeakMap<Jwk, Promise<CryptoKey>>()

  const refresh = async (): Promise<void> => {
    if (typeof jwks !== 'string') return
    readAt = clock.now()
    keys = (await fetchKeys(jwks, fetch)) ?? keys
  }
  const importOnce = (key: Jwk, algorithm: JwtAlgorithm): Promise<CryptoKey> => {
    const ready = imported.get(key) ?? importKey(key, algorithm)
    imported.set(key, ready)
    return ready
  }
  return async ({ algorithm, kid }) => {
    const { names, kty, crv } = algorithm
    const matching = (): readonly Jwk[] =>
      keys.filter(
        (key) =>
          key.kty === kty &&
          (crv === undefined || key.crv === crv) &&
          (key.alg === undefined || names.includes(key.alg)) &&
          (key.use ?? 'sig') === 'sig' &&
          (kid === undefined || key.kid === kid),
      )
    const age = clock.now() - readAt
    if (age > MAX_AGE_MS || (matching().length === 0 && age > MIN_AGE_MS))
      await (reading ??= refresh().finally(() => (reading = undefined)))
    const found = await Promise.allSettled(matching().map((key) => importOnce(key, algorithm)))
    return found.flatMap((key) => (key.status === 'fulfilled' ? [key.value] : []))
  }
}

function importKey(key: Jwk, algorithm: JwtAlgorithm): Promise<CryptoKey> {
  // Only the public members are imported, so that a private key that was published by mistake is used as a
  // public key.
  const { kty, n, e, x, y, crv } = key
  const jwk = Object.fromEntries(
    Object.entries({ kty, n, e, x, y, crv }).filter(([, value]) => value !== undefined),
  )
  return crypto.subtle.importKey('jwk', jwk, algorithm.import, false, ['verify'])
}

/**
 * Fetches the issuer's keys. Returns undefined when the issuer cannot be reached, so that the known keys
 * stay.
 */
async function fetchKeys(
  url: string,
  fetch: typeof globalThis.fetch,
): Promise<readonly Jwk[] | undefined> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(5000),
    })
    const body: unknown = response.ok ? await response.json() : undefined
    const list = isPlainObject(body) ? body['keys'] : undefined
    // `importKey` checks the keys.
    return Array.isArray(list) ? (list.filter(isPlainObject) as unknown as Jwk[]) : undefined
  } catch {
    return undefined // without keys no token is accepted
  }
}
