import { type Clock, decodeBase64Url, encodeBase64Url, isPlainObject } from '@skein/base'
import { HttpError, rateLimited } from '../operations/http-error.ts'
import type { Principal } from '../operations/principal.ts'
import { presentedKey, type Auth, type Verify } from '../auth/authenticate.ts'
import {
  sessionSecret,
  asBearer,
  isFromPage,
  setCookie,
  SECURE_COOKIE,
  PLAIN_COOKIE,
} from './session-cookie.ts'
import { TokenBuckets } from '../limits/token-buckets.ts'

const SESSION_MS = 12 * 3_600_000

const SIGN_INS_PER_MINUTE = 20

/** The longest key that a cookie has room for. */
export const MAX_KEY = 2500

interface Session {
  readonly id: string
  readonly key: string
  readonly until: number
}

/**
 * The sessions of people who have signed in to Studio with a key. A session is a cookie that scripts cannot
 * read. It contains the key, encrypted, which is verified with every request as if the client had sent it: a
 * key that is no longer valid ends its sessions, and they hold over restarts and at all nodes with the same keys.
 */
export class StudioSessions {
  readonly #verify: Verify
  readonly #clock: Clock
  readonly #auth: Auth
  #secret: Promise<CryptoKey> | undefined
  readonly #signIns: TokenBuckets
  /** Ids of the sessions that were ended at this server, with the times when they would have expired. */
  readonly #ended = new Map<string, number>()

  constructor({ auth, verify, clock }: { auth: Auth; verify: Verify; clock: Clock }) {
    this.#verify = verify
    this.#clock = clock
    this.#auth = auth
    this.#signIns = new TokenBuckets({ perMinute: SIGN_INS_PER_MINUTE, clock })
  }

  /** Verifies a request by its key or, if it has none, by its session. */
  readonly verify: Verify = async (request) => {
    const principal = await this.#verify(request)
    if (principal || presentedKey(request.headers) !== undefined) return principal
    const session = isFromPage(request) ? await this.find(request) : undefined
    const client = session && (await this.#verify(asBearer(request, session.key)))
    if (!session || !client) return null
    return { ...client, expiresAt: Math.min(client.expiresAt ?? Infinity, session.until) }
  }

  /** Returns the session that the cookie of a request names, unless it is over. */
  async find({ headers }: Request): Promise<Session | undefined> {
    const cookies = (headers.get('cookie') ?? '').split(/;\s*/)
    for (const name of [SECURE_COOKIE, PLAIN_COOKIE])
      for (const cookie of cookies) {
        if (!cookie.startsWith(`${name}=`)) continue
        const session = await this.#open(cookie.slice(name.length + 1))
        if (session && session.until > this.#clock.now() && !this.#ended.has(session.id))
          return session
      }
    return undefined
  }

  /**
   * Begins a session. Any cookie of the request is replaced, so that no one can plant a session for someone
   * else.
   */
  async begin(
    request: Request,
    key: string,
    { address, prefix }: { readonly address: string; readonly prefix: string },
  ): Promise<{ readonly principal: Principal; readonly cookie: string }> {
    const waitMs = this.#signIns.take(address)
    if (waitMs > 0) throw rateLimited(waitMs)
    const principal = key.length <= MAX_KEY ? await this.#verify(asBearer(request, key)) : null
    const now = this.#clock.now()
    if (!principal || (principal.expiresAt ?? Infinity) <= now)
      throw new HttpError('The key is unknown or expired.', {
        code: 'UNAUTHENTICATED',
        hint: 'Ask the operator of this server for a key.',
      })
    const until = Math.min(now + SESSION_MS, principal.expiresAt ?? Infinity)
    const value = await this.#seal({ id: crypto.randomUUID(), key, until })
    const cookie = setCookie(request, prefix, value, Math.floor((until - now) / 1000))
    return { principal: { ...principal, expiresAt: until }, cookie }
  }

  /** Ends the session of a request, also for those who have a copy of its cookie. */
  async end(request: Request, prefix: string): Promise<string> {
    const session = await this.find(request)
    const now = this.#clock.now()
    for (const [id, until] of this.#ended) if (until <= now) this.#ended.delete(id)
    if (session) this.#ended.set(session.id, session.until)
    return setCookie(request, prefix, '', 0)
  }

  #key(): Promise<CryptoKey> {
    return (this.#secret ??= sessionSecret(this.#auth))
  }

  async #seal(session: Session): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12))
    const plain = new TextEncoder().encode(JSON.stringify(session))
    const ciphertext = await crypto.subtle.encrypt(
      { name: 'AES-GCM', iv },
      await this.#key(),
      plain,
    )
    return `${encodeBase64Url(iv)}.${encodeBase64Url(new Uint8Array(ciphertext))}`
  }

  async #open(text: string): Promise<Session | undefined> {
    const [iv = '', sealed = ''] = text.split('.')
    try {
      const algorithm = { name: 'AES-GCM', iv: decodeBase64Url(iv) }
      const bytes = decodeBase64Url(sealed)
      const plain = await crypto.subtle.decrypt(algorithm, await this.#key(), bytes)
      const session: unknown = JSON.parse(new TextDecoder().decode(plain))
      return isPlainObject(session) ? (session as unknown as Session) : undefined // sealed by us
    } catch {
      return undefined // not a session of this server
    }
  }
}
