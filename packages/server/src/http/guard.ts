import { HttpError } from '../operations/http-error.ts'

interface GuardOptions {
  /** Host names accepted in requests, besides those of this machine. `'*'` accepts any. */
  readonly allowedHosts?: readonly string[] | '*'
  /** Origins of other sites whose pages may call the server, e.g. `https://app.example`. Default none. */
  readonly cors?: { readonly origins: readonly string[] }
  readonly maxUrlLength: number
}

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** Whether a host name or address refers only to this machine. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
}

/**
 * Refuses requests that a hostile web page could have made: those with an unknown host name (DNS rebinding),
 * and those from pages of other origins.
 */
export class RequestGuard {
  readonly #hosts: ReadonlySet<string> | undefined
  readonly #origins: ReadonlySet<string>
  readonly #maxUrlLength: number

  constructor({ allowedHosts = [], cors, maxUrlLength }: GuardOptions) {
    this.#hosts =
      allowedHosts === '*'
        ? undefined
        : new Set([...LOOPBACK, ...allowedHosts.map((host) => host.toLowerCase())])
    this.#origins = new Set(cors?.origins)
    this.#maxUrlLength = maxUrlLength
  }

  check(request: Request): void {
    if (request.url.length > this.#maxUrlLength)
      throw new HttpError('The URL is too long.', { code: 'URL_TOO_LONG' })
    const host = request.headers.get('host')
    const url = new URL(request.url)
    if (!this.#isOurs(url.host) || (host !== null && !this.#isOurs(host)))
      throw new HttpError('This server does not answer requests for this host name.', {
        code: 'HOST_NOT_ALLOWED',
        hint: 'If the name is yours, add it to `allowedHosts`.',
      })
    const origin = request.headers.get('origin')
    const isForeign =
      origin === null
        ? isPartOfForeignPage(request.headers)
        : !this.#isSameOrigin(origin, host ?? url.host) && !this.allows(origin)
    if (isForeign)
      throw new HttpError('This server does not answer requests from pages of this origin.', {
        code: 'ORIGIN_NOT_ALLOWED',
        hint: 'If the page is yours, add its origin to `cors.origins`.',
      })
  }

  /** Whether pages of this origin may read responses. */
  allows(origin: string): boolean {
    return this.#origins.has(origin)
  }

  /** Returns the response to a browser's preflight request; undefined for other requests. */
  preflight(request: Request): Response | undefined {
    const origin = request.headers.get('origin')
    const method = request.headers.get('access-control-request-method')
    if (request.method !== 'OPTIONS' || origin === null || method === null) return undefined
    return new Response(null, {
      status: 204,
      headers: {
        'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
        'access-control-allow-headers':
          'authorization, content-type, last-event-id, x-api-key, if-none-match, traceparent',
        'access-control-max-age': '600',
      },
    })
  }

  /** Adds the headers that every response has. Headers that the handler has set are kept. */
  finish(request: Request, response: Response): Response {
    const headers = new Headers(response.headers)
    const origin = request.headers.get('origin')
    for (const [name, value] of Object.entries(SECURITY_HEADERS))
      if (!headers.has(name)) headers.set(name, value)
    if (this.#origins.size > 0) headers.append('vary', 'origin')
    if (origin !== null && this.allows(origin)) {
      headers.set('access-control-allow-origin', origin)
      headers.set('access-control-expose-headers', 'etag, retry-after, location, x-request-id')
      headers.set('cross-origin-resource-policy', 'cross-origin')
    }
    const { status, statusText, body } = response
    return new Response(body, { status, statusText, headers })
  }

  #isOurs(host: string): boolean {
    const name = host.toLowerCase().replace(/:\d*$/, '')
    return !this.#hosts || this.#hosts.has(name) || this.#hosts.has(host.toLowerCase())
  }

  #isSameOrigin(origin: string, host: string): boolean {
    return origin === `http://${host}` || origin === `https://${host}`
  }
}

/**
 * Whether a page of another origin embeds the answer: as an image, a script, a frame, or with a `fetch` that
 * may not read it. Browsers send no `Origin` with such a GET, but their fetch metadata headers (`sec-fetch-site`
 * and others) show it. A link that a person follows is let through.
 */
function isPartOfForeignPage(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== 'cross-site' && site !== 'same-site') return false
  return (
    headers.get('sec-fetch-mode') !== 'navigate' || headers.get('sec-fetch-dest') !== 'document'
  )
}

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}
