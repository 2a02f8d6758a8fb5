import { type Clock, decodeBase64Url, encodeBase64Url, isPlainObject } from '@skein/base'
import { HttpError, rateLimited } from '../operations/http-error.ts'
import {
  done,
  json,
  jsonResponse,
  operation,
  type OperationRoute,
} from '../operations/operation.ts'
import { ALL_SCOPES, type Principal } from '../operations/principal.ts'
import { answer, arrayOf, boolean, choice, maxText, shape, string } from '@skein/base/shape'
import {
  presentedKey,
  type Auth,
  type Verify,
  sessionSecret,
  asBearer,
  isFromPage,
  setCookie,
  SECURE_COOKIE,
  PLAIN_COOKIE,
} from '../auth/authenticate.ts'
import { TokenBuckets } from '../http/guard.ts'

/** The built files of Studio, as `studioFiles()` of `@skein/studio` returns them. */
export interface StudioFiles {
  /** Returns a file by its path below `/studio/`; undefined if there is none. */
  get(path: string):
    | {
        readonly body: Uint8Array
        readonly type: string
        readonly etag: string
        /** Whether the name contains a hash of the content, so that browsers may keep the file for ever. */
        readonly isImmutable: boolean
      }
    | undefined
}

/** The page may load scripts, styles and data from this server alone, and has no inline script or style. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Answers requests for Studio's page: its files, which need no key, and the redirection of a browser at the
 * root. Returns undefined for all other requests. Addresses are relative, because a proxy may serve us below
 * another path than the one that we see.
 */
export function studioPage(
  files: StudioFiles,
  request: Request,
  prefix: string,
): Response | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
  const { pathname } = new URL(request.url)
  const root = `${prefix}/studio`
  if (pathname === root) return redirect('studio/')
  if (pathname === `${root}/docs`) return redirect('docs/')
  const isRoot = pathname === '/' || pathname === prefix || pathname === `${prefix}/`
  if (isRoot) {
    if (!/\btext\/html\b/.test(request.headers.get('accept') ?? '')) return undefined
    return redirect(`${root.slice(pathname.lastIndexOf('/') + 1)}/`)
  }
  if (!pathname.startsWith(`${root}/`)) return undefined
  const path = decoded(pathname.slice(root.length + 1))
  if (path === undefined || path === 'me' || path === 'session') return undefined
  const file = files.get(path) ?? (path.includes('.') ? undefined : files.get('index.html'))
  if (!file) return undefined
  const headers = {
    'content-type': file.type,
    etag: file.etag,
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    'content-security-policy': PAGE_POLICY,
  }
  if (request.headers.get('if-none-match') === file.etag)
    return new Response(null, { status: 304, headers })
  // The cast is safe: the files are not in shared memory.
  const body = request.method === 'HEAD' ? null : (file.body as Uint8Array<ArrayBuffer>)
  return new Response(body, { headers })
}

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { location, vary: 'accept' } })
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

const SESSION_MS = 12 * 3_600_000
const SIGN_INS_PER_MINUTE = 20
/** The longest key that a cookie has room for. */
const MAX_KEY = 2500

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
    const found = session && (await this.#verify(asBearer(request, session.key)))
    if (!session || !found) return null
    return { ...found, expiresAt: Math.min(found.expiresAt ?? Infinity, session.until) }
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
   * Begins a session. Any cookie of the request is replaced, so that nobody can plant a session for somebody
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
    const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await this.#key(), plain)
    return `${encodeBase64Url(iv)}.${encodeBase64Url(new Uint8Array(sealed))}`
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

const me = answer({
  tenant: string,
  'user?': string,
  'name?': string,
  scopes: arrayOf(choice(...ALL_SCOPES)),
  'expiresAt?': string,
  isSignedIn: boolean,
  server: answer({
    name: string,
    version: string,
    prefix: string,
    playground: boolean,
    needsKey: boolean,
  }),
})

/** The operations of Studio's page: who is signed in, sign in and sign out. */
export const studioOperations: readonly OperationRoute[] = [
  operation('getStudioMe', {
    tag: 'studio',
    summary: 'Who you are, what you may do, and facts about the server.',
    scope: 'threads:read',
    answers: [json('You.', me)],
    async run({ principal, services, request }) {
      const session = await services.studio.sessions.find(request)
      return described(principal, session !== undefined, services)
    },
  }),
  operation('createStudioSession', {
    tag: 'studio',
    summary:
      'Signs in with a key: sets a cookie that scripts cannot read, for twelve hours at most.',
    scope: 'public',
    probe: { body: { key: 'your key' } },
    body: { json: shape({ key: maxText(MAX_KEY) }) },
    answers: [json('You.', me)],
    errors: ['UNAUTHENTICATED'],
    async run({ request, body, services, connection }) {
      const { prefix, studio } = services
      const address = connection.address ?? ''
      const begun = await studio.sessions.begin(request, body.key, { address, prefix })
      return jsonResponse(described(begun.principal, true, services), {
        headers: { 'set-cookie': begun.cookie },
      })
    },
  }),
  operation('deleteStudioSession', {
    tag: 'studio',
    summary: 'Signs out.',
    scope: 'public',
    answers: [done('Signed out.')],
    async run({ request, services }) {
      const cookie = await services.studio.sessions.end(request, services.prefix)
      return new Response(null, { status: 204, headers: { 'set-cookie': cookie } })
    },
  }),
]

interface Described {
  readonly prefix: string
  readonly studio: { readonly isPlayground: boolean; readonly needsKey: boolean }
}

function described(principal: Principal, isSignedIn: boolean, { prefix, studio }: Described) {
  const { tenant, user, name, scopes, expiresAt } = principal
  return {
    tenant,
    user,
    name,
    scopes,
    expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt).toISOString(),
    isSignedIn,
    server: {
      name: 'Skein',
      version: '0.1.0',
      prefix,
      playground: studio.isPlayground,
      needsKey: studio.needsKey,
    },
  }
}
