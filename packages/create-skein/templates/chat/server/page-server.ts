import { readdirSync, readFileSync } from 'node:fs'
import {
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { extname, join, relative } from 'node:path'
import { pipeline } from 'node:stream'
import { json } from 'node:stream/consumers'
import { LIFETIME_SECONDS, type Tokens } from './tokens.ts'
import type { Users } from './users.ts'

export interface PageServerOptions {
  /** The folder of the built page. */
  readonly folder: string
  /** The address of `skein serve`. */
  readonly agents: string
  readonly tokens: Tokens
  readonly users: Users
}

/**
 * Serves the page, signs people in, and passes /agents on to `skein serve`, so that the browser sees one address. The
 * session is in a cookie that scripts cannot read; what the page holds is a token for the agents that lasts minutes.
 */
export function createPageServer({ folder, agents, tokens, users }: PageServerOptions): Server {
  const files = readFiles(folder)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname.startsWith('/agents/'))
      return passOn(request, response, new URL(pathname + search, agents))
    if (pathname === '/session' || pathname === '/session/token') {
      if (!isFromOwnPage(request)) return end(response, 403)
      switch (`${request.method} ${pathname}`) {
        case 'POST /session':
          return signIn(request, response)
        case 'DELETE /session':
          return end(response.setHeader('set-cookie', cookie(request, '', 0)), 204)
        case 'POST /session/token':
          return giveToken(request, response)
        default:
          return end(response, 405)
      }
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return end(response, 405)
    const file = files.get(pathname === '/' ? '/index.html' : pathname)
    if (!file) return end(response, 404)
    response.writeHead(200, { ...HEADERS, 'content-type': file.type, 'cache-control': file.cache })
    response.end(request.method === 'HEAD' ? undefined : file.body)
  }

  async function signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (Number(request.headers['content-length'] ?? Infinity) > 10_000) return end(response, 413)
    const body = await json(request).catch(() => null)
    const { name, password } = (body ?? {}) as { name?: unknown; password?: unknown }
    if (typeof name !== 'string' || typeof password !== 'string') return end(response, 400)
    if (!(await users.check(name, password))) return end(response, 401)
    const session = await tokens.sign(name, 'session')
    end(response.setHeader('set-cookie', cookie(request, session, LIFETIME_SECONDS.session)), 204)
  }

  async function giveToken(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, session = ''] = /(?:^|; )session=([^;]+)/.exec(request.headers.cookie ?? '') ?? []
    const user = await tokens.userOf(session, 'session')
    if (user === undefined || !users.has(user)) return end(response, 401)
    const token = await tokens.sign(user, 'agents')
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(JSON.stringify({ user, token, lastsMs: LIFETIME_SECONDS.agents * 1000 }))
  }

  return createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      console.error(error)
      if (!response.headersSent) end(response, 500)
      else response.destroy()
    })
  })
}

/** The page may load nothing from elsewhere and be in no frame, so that no answer of a model can send data away. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status).end()
}

/** Whether our own page sends the request: another site must not sign its visitors in or out here. */
function isFromOwnPage({ headers }: IncomingMessage): boolean {
  return URL.parse(headers.origin ?? '')?.host === headers.host
}

/** The cookie is only sent over https, except on this machine. */
function cookie({ headers }: IncomingMessage, value: string, maxAge: number): string {
  const { hostname } = new URL(`http://${headers.host}`)
  const secure = hostname === 'localhost' || hostname === '127.0.0.1' ? '' : '; Secure'
  return `session=${value}; Path=/session; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${secure}`
}

/** Passes a request on as it is, and its answer while it comes. */
function passOn(request: IncomingMessage, response: ServerResponse, target: URL): void {
  const { 'x-forwarded-for': before, ...headers } = request.headers
  const addresses = [before, request.socket.remoteAddress].filter(Boolean).join(', ')
  const onward = sendRequest(
    target,
    { method: request.method, headers: { ...headers, 'x-forwarded-for': addresses } },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      pipeline(answer, response, () => undefined) // either side may go away
    },
  )
  onward.on('error', () => {
    if (!response.headersSent) end(response, 502)
  })
  response.on('close', () => onward.destroy())
  request.pipe(onward)
}

interface PageFile {
  readonly body: Buffer
  readonly type: string
  readonly cache: string
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

/** Reads the built page, by path. Only these files are served. */
function readFiles(folder: string): ReadonlyMap<string, PageFile> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  return new Map(
    files
      .filter((file) => file.isFile())
      .map((file): [string, PageFile] => {
        const path = join(file.parentPath, file.name)
        const type = TYPES[extname(path)] ?? 'application/octet-stream'
        // The names of other files contain a hash of their content.
        const cache = extname(path) === '.html' ? 'no-cache' : 'max-age=31536000, immutable'
        const address = relative(folder, path).replaceAll('\\', '/')
        return [`/${address}`, { body: readFileSync(path), type, cache }]
      }),
  )
}
