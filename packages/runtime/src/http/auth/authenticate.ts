import { ALL_SCOPES, type Principal } from '../../operations/principal.ts'
import { sha256, sha256Hex, SkeinError } from '@skein/base'

/** Says who sent a request; null when it does not know. */
export type Verify = (request: Request) => Principal | null | Promise<Principal | null>

/**
 * Who may call: keys, a function of yours, several of them in order, or everyone on this machine
 * (`'none'`, for development).
 */
export type Auth =
  | 'none'
  | Verify
  | { readonly keys: readonly ApiKey[] }
  | readonly (Verify | { readonly keys: readonly ApiKey[] })[]

/** Whoever works on this machine without signing in. */
const LOCAL_PRINCIPAL: Principal = {
  tenant: 'default',
  name: 'local',
  scopes: ALL_SCOPES,
}

/** One function from all the ways to say who one is; the first that knows counts. */
export function toVerify(auth: Auth, local: Principal = LOCAL_PRINCIPAL): Verify {
  if (auth === 'none') return () => local
  const ways = [auth].flat().map((way) => (typeof way === 'function' ? way : apiKeys(way.keys)))
  return async (request) => {
    for (const way of ways) {
      const principal = await way(request)
      if (principal) return principal
    }
    return null
  }
}

/** A key and what it opens. Give the key, or its SHA-256 in hex so that it stands nowhere. */
export type ApiKey = Principal & ({ readonly key: string } | { readonly sha256: string })

/** Finds the principal of `authorization: Bearer …` or `x-api-key`. */
export function apiKeys(keys: readonly ApiKey[]): Verify {
  const known = keys.map((entry) => ({ hash: hashOf(entry), principal: principalOf(entry) }))
  return (request) => {
    const key = presentedKey(request.headers)
    if (key === undefined) return null
    const hash = sha256(key)
    let found: Principal | null = null
    // All are compared, each in full: the time tells nothing.
    for (const entry of known) if (isEqual(entry.hash, hash)) found = entry.principal
    return found
  }
}

/** The bearer token or key of a request. */
export function presentedKey(headers: Headers): string | undefined {
  const [, bearer] = /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '') ?? []
  return bearer ?? headers.get('x-api-key') ?? undefined
}

function hashOf(entry: ApiKey): Uint8Array {
  if ('key' in entry) {
    if (entry.key.length < 16) throw invalid('is shorter than 16 characters')
    return sha256(entry.key)
  }
  if (!/^[0-9a-f]{64}$/i.test(entry.sha256)) throw invalid('has a sha256 that is not 64 hex digits')
  return Uint8Array.from(entry.sha256.match(/../g)!, (pair) => Number.parseInt(pair, 16))
}

function principalOf(entry: ApiKey): Principal {
  const { tenant, user, scopes, expiresAt } = entry
  // A name that tells keys of one user apart, and from which none can be guessed.
  const digest = 'key' in entry ? sha256Hex(entry.key) : entry.sha256.toLowerCase()
  const name = entry.name ?? `key:${sha256Hex(digest).slice(0, 12)}`
  return {
    tenant,
    scopes,
    name,
    ...(user !== undefined && { user }),
    ...(expiresAt !== undefined && { expiresAt }),
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!
  return difference === 0
}

function invalid(problem: string): SkeinError {
  return new SkeinError(`An API key ${problem}.`, {
    code: 'API_KEY_INVALID',
    hint: 'Make one with `openssl rand -hex 32`.',
  })
}
