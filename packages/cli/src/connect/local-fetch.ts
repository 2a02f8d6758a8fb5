import { userInfo } from 'node:os'
import type { EmbeddedRuntime } from '@skein/runtime'
import type { Http, Principal } from '@skein/server'

/** Sends an HTTP request to a runtime, as `fetch` does. */
export type RuntimeFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * Returns a `fetch` for a runtime in this process. So commands always send HTTP requests, and need no
 * second version for a runtime without a server.
 */
export async function localFetch(runtime: EmbeddedRuntime): Promise<RuntimeFetch> {
  const { createHttp } = await import('@skein/server')
  const http = createHttp(runtime, { auth: 'none', local: localPerson() })
  return (input, init) => fetchLocally(http, new Request(input, init), init?.signal ?? undefined)
}

/**
 * Answers a request without a socket. When the signal aborts, the promise rejects and the body ends, as
 * with `fetch`. It listens to the given `signal`, not to `request.signal`, which only follows the given
 * one through a weak reference and may be garbage collected before it aborts.
 */
async function fetchLocally(
  http: Http,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (!signal) return http.fetch(request)
  signal.throwIfAborted()
  const listening = new AbortController()
  const failure = new Promise<never>((_, reject) => {
    const options = { once: true, signal: listening.signal }
    signal.addEventListener('abort', () => reject(signal.reason), options)
  })
  try {
    const response = await Promise.race([http.fetch(request), failure])
    const body = response.body?.pipeThrough(new TransformStream(), { signal })
    return body ? new Response(body, response) : response
  } finally {
    listening.abort()
  }
}

/**
 * Returns the principal of the person at this machine. The log records the name with each decision.
 */
export function localPerson(): Principal {
  let name = 'local'
  try {
    name = userInfo().username
  } catch {
    // `userInfo` throws in containers where the user id of the process has no name.
  }
  return { tenant: 'default', name, scopes: ['admin', 'metrics:read'] }
}
