import { sha256 } from '@skein/base'
import type { Auth } from '../auth/authenticate.ts'

/** Browsers accept this name only with `Secure` and from the host itself, so that no other site can set it. */
export const SECURE_COOKIE = '__Host-skein-studio'

export const PLAIN_COOKIE = 'skein-studio'

/**
 * Makes the secret that encrypts the session cookies of Studio from the keys of the server, so that the
 * secret is the same after a restart and at every node. Anyone who knows all keys of a server could forge a
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
