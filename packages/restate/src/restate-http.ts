import { request as requestHttp, Agent as HttpAgent } from 'node:http'
import { request as requestHttps, Agent as HttpsAgent } from 'node:https'
import { SkeinError } from '@skein/base'

/** What went wrong with the Restate server. */
export type RestateErrorCode =
  /** No server answers at the address, or it does not answer in time. */
  | 'RESTATE_UNREACHABLE'
  /** The server refuses: the path or the rights are wrong, or it cannot reach the address of this node. */
  | 'RESTATE_REFUSED'

/** The error for a Restate server that cannot be reached, or that refuses a request. */
export class RestateDispatcherError extends SkeinError {
  declare readonly code: RestateErrorCode

  constructor(
    message: string,
    options: { readonly code: RestateErrorCode; readonly hint?: string; readonly cause?: unknown },
  ) {
    super(message, options)
  }
}

/** Options of `restateHttp`. */
export interface RestateHttpOptions {
  /** Headers of every request, e.g. the authorization for a proxy. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly timeoutMs: number
}

/** One request to the Restate server. */
export interface RestateRequest {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Statuses besides 2xx that are no refusal. */
  readonly accepts?: readonly number[]
}

/** A client of the Restate server. Connections are kept open, because each wake-up is a request. */
export interface RestateHttp {
  /**
   * Returns the text of the response. Rejects with `RESTATE_REFUSED` unless the status is 2xx or one that is accepted.
   */
  send(request: RestateRequest): Promise<string>
  close(): void
}

/** The largest response that is read. */
const MAX_BYTES = 1024 * 1024

/** Creates a client of the Restate server. */
export function restateHttp({ headers, timeoutMs }: RestateHttpOptions): RestateHttp {
  const options = { keepAlive: true, maxSockets: 64 }
  const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  return {
    send: ({ method, url, headers: own, body, accepts = [] }) =>
      new Promise((resolve, reject) => {
        const isTls = url.startsWith('https:')
        const text = body === undefined ? undefined : JSON.stringify(body)
        const type = text === undefined ? {} : { 'content-type': 'application/json' }
        const fail = (cause: unknown): void => reject(unreachable(url, cause))
        const outgoing = (isTls ? requestHttps : requestHttp)(
          url,
          {
            method,
            agent: isTls ? agents.https : agents.http,
            headers: { accept: 'application/json', ...headers, ...type, ...own },
            timeout: timeoutMs,
          },
          (response) => {
            const parts: Buffer[] = []
            let bytes = 0
            response.on('data', (part: Buffer) => {
              bytes += part.length
              if (bytes <= MAX_BYTES) parts.push(part)
            })
            response.on('error', fail)
            response.on('end', () => {
              const answer = Buffer.concat(parts).toString('utf8')
              const { statusCode = 0 } = response
              const isFine = statusCode >= 200 && statusCode < 300
              if (isFine || accepts.includes(statusCode)) resolve(answer)
              else reject(refused(url, statusCode, answer))
            })
          },
        )
        outgoing.on('error', fail)
        outgoing.on('timeout', () =>
          outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)),
        )
        outgoing.end(text)
      }),
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** The address without a user name, password and query, for error texts. */
function shown(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

function unreachable(url: string, cause: unknown): RestateDispatcherError {
  const why =
    cause instanceof Error ? cause.message || String(Reflect.get(cause, 'code')) : 'unknown'
  return new RestateDispatcherError(`Restate cannot be reached at ${shown(url)}: ${why}.`, {
    code: 'RESTATE_UNREACHABLE',
    hint: 'Start the Restate server, or correct ingressUrl and adminUrl. Threads go on meanwhile, but late.',
    cause,
  })
}

function refused(url: string, status: number, answer: string): RestateDispatcherError {
  return new RestateDispatcherError(
    `Restate answered ${status} at ${shown(url)}: ${answer.slice(0, 300)}`,
    {
      code: 'RESTATE_REFUSED',
      hint:
        status === 404
          ? 'Is the service registered? Pass adminUrl, or register the address of the nodes: restate deployments register ADDRESS.'
          : 'See the log of the Restate server.',
    },
  )
}
