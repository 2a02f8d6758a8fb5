import { ALL_SCOPES, type Principal } from '../operations/principal.ts'
import { sha256, sha256Hex, SkeinError } from '@skein/base'

/** Returns the client that sent a request, or null for an unknown client. */
export type Verify = (request: Request) => Principal | null | Promise<Principal | null>

/**
 * Who may call the server: holders of API keys, clients that your function accepts, several such ways in
 * order, or everyone on this machine (`'none'`, for development).
 */
export type Auth =
  | 'none'
  | Verify
  | { readonly keys: readonly ApiKey[] }
  | readonly (Verify | { readonly keys: readonly ApiKey[] })[]

/** The principal of all requests when authentication is off. */
const LOCAL_PRINCIPAL: Principal = {
  tenant: 'default',
  name: 'local',
  scopes: ALL_SCOPES,
}

/** Combines all ways to authenticate into one function; the first way that recognises the client is used. */
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

/**
 * An API key and the rights of its holder. Give the key itself, or its SHA-256 in hex to avoid storing the
 * key.
 */
export type ApiKey = Principal & ({ readonly key: string } | { readonly sha256: string })

/** Creates a function that finds the principal of the key in `authorization: Bearer …` or `x-api-key`. */
export function apiKeys(keys: readonly ApiKey[]): Verify {
  const entries = keys.map((entry) => {
    if ('key' in entry && entry.key.length < 16) throw invalid('is shorter than 16 characters')
    if (!('key' in entry) && !/^[0-9a-f]{64}$/i.test(entry.sha256))
      throw invalid('has a sha256 that is not 64 hex digits')
    const { tenant, user, scopes, expiresAt } = entry
    const digest = 'key' in entry ? sha256Hex(entry.key) : entry.sha256.toLowerCase()
    // The default name distinguishes the keys of one tenant; a key cannot be guessed from its name.
    const name = entry.name ?? `key:${sha256Hex(digest).slice(0, 12)}`
    const hash = Uint8Array.from(digest.match(/../g)!, (pair) => Number.parseInt(pair, 16))
    return { hash, principal: { tenant, user, scopes, name, expiresAt } }
  })
  return (request) => {
    const key = presentedKey(request.headers)
    if (key === undefined) return null
    const hash = sha256(key)
    let match: Principal | null = null
    // All keys are compared, each in full, so that the duration of the comparison reveals nothing about the
    // keys.
    for (const entry of entries) {
      let difference = entry.hash.length ^ hash.length
      for (let i = 0; i < hash.length; i++) difference |= entry.hash[i]! ^ hash[i]!
      if (difference === 0) match = entry.principal
    }
    return match
  }
}

/** Returns the bearer token or the API key of a request. */
export function presentedKey(headers: Headers): string | undefined {
  const [, bearer] = /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '') ?? []
  return bearer ?? headers.get('x-api-key') ?? undefined
}

function invalid(problem: string): SkeinError {
  return new SkeinError(`An API key ${problem}.`, {
    code: 'API_KEY_INVALID',
    hint: 'Make one with `openssl rand -hex 32`.',
  })
}
