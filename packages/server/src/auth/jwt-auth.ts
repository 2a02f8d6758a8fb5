import { type Clock, isPlainObject, systemClock } from '@skein/base'
import type { CryptoKey, JSONWebKeySet, JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose'
import { ALL_SCOPES, type Principal, type Scope } from '../operations/principal.ts'
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

/** A public key as JSON (RFC 7517). */
export type Jwk = JsonWebKey & { readonly kid?: string; readonly alg?: string }

/** Neither `none` nor a symmetric algorithm is accepted, because tokens could be forged with them. */
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA', 'Ed25519']

/** Creates a function that accepts signed tokens (RS256, ES256, EdDSA) of one issuer for one audience. */
export function jwtAuth(options: JwtAuthOptions): Verify {
  const { clock = systemClock, issuer, audience, leewayMs = 30_000 } = options
  const findKey = keySource(options.jwks, { clock, fetch: options.fetch ?? fetch })
  return async (request) => {
    const token = presentedKey(request.headers)
    if (token === undefined || token.length > 16_384) return null
    const claims = await verified(token, findKey, {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      requiredClaims: ['exp'],
      clockTolerance: leewayMs / 1000,
      currentDate: new Date(clock.now()),
    })
    return claims ? principalOf(claims, options) : null
  }
}

/** Returns the claims of a token if one of the issuer's keys signed it, and issuer, audience and times fit. */
async function verified(
  token: string,
  findKey: JWTVerifyGetKey,
  checks: JWTVerifyOptions,
): Promise<JWTPayload | undefined> {
  // jose is loaded with the first token, because most servers never get one.
  const { errors, jwtVerify } = await import('jose')
  const verify = async (key: JWTVerifyGetKey): Promise<JWTPayload | undefined> => {
    try {
      return (await jwtVerify(token, key, checks)).payload
    } catch (error) {
      // Any other error, e.g. that of a key that cannot be imported, means that the token is refused.
      return error instanceof errors.JWKSMultipleMatchingKeys ? firstOf(error) : undefined
    }
  }
  /** A token without `kid` fits every key of its algorithm; the right key is found by trying. */
  const firstOf = async (keys: AsyncIterable<CryptoKey>): Promise<JWTPayload | undefined> => {
    for await (const key of keys) {
      const claims = await verify(() => key)
      if (claims) return claims
    }
    return undefined
  }
  return verify(findKey)
}

function principalOf(claims: JWTPayload, options: JwtAuthOptions): Principal | null {
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
  return { tenant, user, scopes, expiresAt: Number(claims.exp) * 1000 }
}

/** The age at which keys are fetched again. They are also fetched when a token names an unknown key. */
const MAX_AGE_MS = 600_000
/**
 * The minimum time between two fetches, also after one that failed, so that tokens with made-up key ids cannot
 * flood the issuer with requests.
 */
const MIN_AGE_MS = 30_000

/**
 * Creates a function that finds the key of a token: by its algorithm, and by its `kid` if it has one.
 * `createRemoteJWKSet` of jose is not used, because it drops known keys while the issuer cannot be reached,
 * and has no clock option.
 */
function keySource(
  jwks: JwtAuthOptions['jwks'],
  { clock, fetch }: { readonly clock: Clock; readonly fetch: typeof globalThis.fetch },
): JWTVerifyGetKey {
  let find: Promise<JWTVerifyGetKey> | undefined =
    typeof jwks === 'string' ? undefined : keySet(jwks as JSONWebKeySet)
  let readAt = typeof jwks === 'string' ? -Infinity : Infinity
  let reading: Promise<void> | undefined

  const refresh = async (url: string): Promise<void> => {
    readAt = clock.now()
    const keys = await fetchKeys(url, fetch)
    if (keys) find = keySet(keys)
  }
  const refreshIfOlder = async (ageMs: number): Promise<boolean> => {
    if (typeof jwks !== 'string' || clock.now() - readAt <= ageMs) return false
    await (reading ??= refresh(jwks).finally(() => (reading = undefined)))
    return true
  }
  return async (header, token) => {
    const { errors } = await import('jose')
    await refreshIfOlder(MAX_AGE_MS)
    for (;;) {
      try {
        if (!find) throw new errors.JWKSNoMatchingKey()
        return await (
          await find
        )(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        if (!(await refreshIfOlder(MIN_AGE_MS))) throw error
      }
    }
  }
}

/** `EdDSA` and `Ed25519` name one algorithm (RFC 9864 §2.2), so a key is found under both names. */
async function keySet({ keys }: JSONWebKeySet): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet } = await import('jose')
  return createLocalJWKSet({
    keys: keys.map((key) => (key.crv === 'Ed25519' ? { ...key, alg: undefined } : key)),
  })
}

/**
 * Fetches the issuer's keys. Returns undefined when the issuer cannot be reached, so that the known keys
 * stay.
 */
async function fetchKeys(
  url: string,
  fetch: typeof globalThis.fetch,
): Promise<JSONWebKeySet | undefined> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(5000),
    })
    const body: unknown = response.ok ? await response.json() : undefined
    const list = isPlainObject(body) ? body['keys'] : undefined
    // jose checks each key when a token asks for it.
    return Array.isArray(list)
      ? { keys: list.filter(isPlainObject) as JSONWebKeySet['keys'] }
      : undefined
  } catch {
    return undefined // without keys no token is accepted
  }
}
