import { ALL_SCOPES, type Principal } from '../operations/principal.ts'
import { sha256, sha256Hex, SkeinError } from '@skein/base'

/** Browsers accept this name only with `Secure` and from the host itself, so that no other site can set it. */
export const SECURE_COOKIE = '__Host-skein-studio'

export const PLAIN_COOKIE = 'skein-studio'

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
  const known = keys.map((entry) => {
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
    let found: Principal | null = null
    // All keys are compared, each in full, so that the duration of the comparison reveals nothing about the
    // keys.
    for (const entry of known) {
      let difference = entry.hash.length ^ hash.length
      for (let i = 0; i < hash.length; i++) difference |= entry.hash[i]! ^ hash[i]!
      if (difference === 0) found = entry.principal
    }
    return found
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

/**
 * Makes the secret that encrypts the session cookies of Studio from the keys of the server, so that the
 * secret is the same after a restart and at every node. Somebody who knows all keys of a server could forge a
 * cookie, but would gain nothing by it. Without keys the secret is random.
 */
export function sessionSecret(auth: Auth): Promise<CryptoKey> {
  const keys = [auth].flat().flatMap((way) => (typeof way === 'object' ? way.keys : []))
  const text = keys.map((one) => ('key' in one ? one.key : one.sha256)).toSorted()
  const bytes =
    keys.length > 0
      ? sha256(JSON.stringify(['skein studio sessions', ...text]))
      : crypto.getRandomValues(new Uint8Array(32))
  return crypto.subtle.importKey('raw', new Uint8Array(bytes), 'AES-GCM', false, [
    'encrypt',
    'decrypt',
  ])
}

export function asBearer({ url, signal }: Request, key: string): Request {
  // A key with other characters cannot be sent in a header, so no client could use it.
  const isPlain = /^[\x21-\x7e]+$/.test(key)
  return new Request(url, { headers: isPlain ? { authorization: `Bearer ${key}` } : {}, signal })
}

/**
 * Whether a request with a cookie comes from our own page. With `SameSite=Strict` alone, pages of other ports
 * and subdomains could still send the cookie. Pages that `cors` allows are refused, too: they need a key of
 * their own. Browsers send the origin with every request that can change something.
 */
export function isFromPage({ method, url, headers }: Request): boolean {
  const origin = headers.get('origin')
  const site = headers.get('sec-fetch-site')
  const host = headers.get('host') ?? new URL(url).host
  if (origin !== null) return origin === `http://${host}` || origin === `https://${host}`
  const isSafe = method === 'GET' || method === 'HEAD'
  return isSafe
    ? site === null || site === 'same-origin' || site === 'none'
    : site === 'same-origin'
}

export function setCookie(request: Request, prefix: string, value: string, maxAge: number): string {
  // A proxy may have ended TLS, so that our own URL says `http:`. The browser's `origin` has the scheme it sees.
  const origin = request.headers.get('origin') ?? request.url
  const isSecure = origin.startsWith('https:')
  const name = isSecure ? SECURE_COOKIE : PLAIN_COOKIE
  const place = isSecure ? 'Path=/; Secure' : `Path=${prefix === '' ? '/' : prefix}`
  return `${name}=${value}; ${place}; HttpOnly; SameSite=Strict; Max-Age=${maxAge}`
}
