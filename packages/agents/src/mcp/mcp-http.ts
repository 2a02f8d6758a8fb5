import type { ConnectionFailure, ConnectionReports } from './mcp-link.ts'
import type { SentSecrets } from './sent-secrets.ts'

/** Headers for the requests to a server; a function is called for each request. */
export type McpHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)

type Send = (address: string | URL, init?: RequestInit) => Promise<Response>

/** Errors of requests that got no response, with what is certain about each. */
const failures = new WeakMap<object, ConnectionFailure>()

/** Returns how a request of `followedFetch` failed, if it got no response. */
export function httpFailureOf(error: unknown): ConnectionFailure | undefined {
  return typeof error === 'object' && error !== null ? failures.get(error) : undefined
}

/**
 * Wraps the `fetch` of an HTTP connection: adds the headers of each request and notes their secrets, marks the errors
 * of requests without a response, and reports when the response that should carry the answer of a call has ended. The
 * SDK itself waits for such an answer until the time limit.
 */
export function followedFetch(
  send: Send,
  {
    headers,
    secrets,
    reports,
  }: {
    readonly headers: McpHeaders
    readonly secrets: SentSecrets
    readonly reports: Pick<ConnectionReports, 'callSent'>
  },
): Send {
  return async (address, init = {}) => {
    const callEnd = isToolCall(init) ? reports.callSent() : undefined
    const all = new Headers(init.headers)
    const own = typeof headers === 'function' ? await headers() : headers
    secrets.add(own)
    for (const [name, value] of Object.entries(own)) all.set(name, value)
    let response: Response
    try {
      response = await send(address, { ...init, headers: all })
    } catch (error) {
      if (typeof error === 'object' && error !== null && !init.signal?.aborted)
        failures.set(error, isNotSent(error) ? 'not_sent' : 'broken')
      throw error
    }
    const isStream = response.headers.get('content-type')?.includes('text/event-stream')
    return callEnd && isStream && response.body
      ? withEndReported(response, response.body, callEnd)
      : response
  }
}

function isToolCall({ method, body }: RequestInit): boolean {
  return method === 'POST' && typeof body === 'string' && body.includes('"method":"tools/call"')
}

/** Codes of errors that happen before a connection exists, in Node, undici, Bun and Deno. */
const notConnected = new Set([
  'ECONNREFUSED',
  'ConnectionRefused',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

function isNotSent(error: object): boolean {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown }
  if (typeof code === 'string' && notConnected.has(code)) return true
  // A name with several addresses fails with one error for each.
  if (Array.isArray(errors) && errors.length > 0)
    return errors.every((one) => typeof one === 'object' && one !== null && isNotSent(one))
  return typeof cause === 'object' && cause !== null && isNotSent(cause)
}

/** Returns the response with a body that reports its end, also if it is cut off. */
function withEndReported(
  response: Response,
  body: ReadableStream<Uint8Array>,
  callEnd: ReturnType<ConnectionReports['callSent']>,
): Response {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let isResumable = false
  let line = ''
  const watchedBody = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          callEnd({ isResumable })
          return controller.close()
        }
        // Only a stream whose events have ids can be resumed; an id is at the beginning of a line.
        if (!isResumable) {
          const text = line + decoder.decode(value, { stream: true })
          isResumable = /(^|[\r\n])id:/.test(text)
          line = text.slice(-4)
        }
        controller.enqueue(value)
      } catch (error) {
        callEnd({ isResumable })
        controller.error(error)
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
  const { status, statusText, headers } = response
  return new Response(watchedBody, { status, statusText, headers })
}
