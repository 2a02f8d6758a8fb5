import { decodeBase64Url, isPlainObject, systemClock, type Clock } from '@skein/base'
import { ALL_SCOPES, type Principal, type Scope } from '../principal.ts'
import { presentedKey } from './api-keys.ts'
import type { Verify } from './authenticate.ts'
import { algorithmOf, keySource, type Jwk } from './jwks.ts'

export interface JwtAuthOptions {
  /** Where the issuer publishes its keys, or the keys themselves. */
  readonly jwks: string | { readonly keys: readonly Jwk[] }
  readonly issuer: string
  readonly audience: string
  /** Names of claims. Defaults: `tenant`, `sub`, `scope`. */
  readonly claims?: { readonly tenant?: string; readonly user?: string; readonly scopes?: string }
  /** Of everyone, where tokens do not say. */
  readonly tenant?: string
  readonly scopes?: readonly Scope[]
  /** Clocks may differ by this much. Default 30 s. */
  readonly leewayMs?: number
  readonly fetch?: typeof fetch
  readonly clock?: Clock
}

type Claims = Readonly<Record<string, unknown>>

/** Takes signed tokens (RS256, ES256, EdDSA) of one issuer for one audience. */
export function jwtAuth(options: JwtAuthOptions): Verify {
  const { clock = systemClock } = options
  const findKey = keySource(options.jwks, { clock, fetch: options.fetch ?? fetch })
  return async (request) => {
    const token = presentedKey(request.headers)
    const parts = token === undefined || token.length > 16_384 ? [] : token.split('.')
    const [header, payload, signature] = parts
    if (parts.length !== 3 || !header || !payload || !signature) return null
    const claims = decoded(payload)
    if (!claims || !areCurrent(claims, options, clock.now())) return null
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
  const algorithm = algorithmOf(head?.['alg'])
  // An extension that must be understood is one that we do not understand.
  if (!head || !algorithm || head['crit'] !== undefined) return false
  const bytes = base64(signature)
  if (!bytes) return false
  const keys = await findKey({ algorithm, kid: head['kid'] })
  const signed = new TextEncoder().encode(`${header}.${payload}`)
  for (const key of keys)
    if (await crypto.subtle.verify(algorithm.verify, key, bytes, signed)) return true
  return false
}

function areCurrent(claims: Claims, options: JwtAuthOptions, now: number): boolean {
  const { issuer, audience, leewayMs = 30_000 } = options
  const { iss, aud, exp, nbf } = claims
  if (iss !== issuer || ![aud].flat().includes(audience)) return false
  if (typeof exp !== 'number' || exp * 1000 + leewayMs <= now) return false
  return nbf === undefined || (typeof nbf === 'number' && nbf * 1000 - leewayMs <= now)
}

function principalOf(claims: Claims, options: JwtAuthOptions): Principal | null {
  const names = { tenant: 'tenant', user: 'sub', scopes: 'scope', ...options.claims }
  const tenant = claims[names.tenant] ?? options.tenant
  const user = claims[names.user]
  if (typeof tenant !== 'string' || tenant === '') return null
  // Without a user a client sees all of its tenant; a token that forgot to name one must not.
  if (typeof user !== 'string' || user === '') return null
  const scopes = scopesOf(claims[names.scopes]) ?? options.scopes ?? []
  return { tenant, user, scopes, expiresAt: Number(claims['exp']) * 1000 }
}

function scopesOf(claim: unknown): readonly Scope[] | undefined {
  if (claim === undefined) return undefined
  const words: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : [claim].flat()
  return ALL_SCOPES.filter((scope) => words.includes(scope))
}

function decoded(part: string): Claims | undefined {
  const bytes = base64(part)
  if (!bytes) return undefined
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isPlainObject(value) ? value : undefined
  } catch {
    return undefined // not JSON: not a token
  }
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return new Uint8Array(decodeBase64Url(text))
  } catch {
    return undefined // not base64url: not a token
  }
}
