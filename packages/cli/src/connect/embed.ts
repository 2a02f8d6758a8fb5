import { userInfo } from 'node:os'
import type { EmbeddedRuntime, Registry } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import type { Http, Principal } from '@skein/runtime/http'
import { CommandError } from '../command-error.ts'
import { stateFolder } from './places.ts'
import { readServerFile } from './server-file.ts'

/** Opens the store of this folder with a runtime on it. It works once it is started. */
export async function openRuntime(
  registry: Registry,
  onError: (error: unknown, threadId?: string) => void,
): Promise<EmbeddedRuntime> {
  const { createRuntime } = await import('@skein/runtime')
  try {
    return await createRuntime({ registry, folder: stateFolder(), onError })
  } catch (error) {
    throw isLocked(error) ? lockedStore(error) : error
  }
}

/** Talks to a runtime of this process as to a server, so that there is one way to do everything. */
export async function clientOf(runtime: EmbeddedRuntime): Promise<Client> {
  const [{ createHttp }, { createClient }] = await Promise.all([
    import('@skein/runtime/http'),
    import('@skein/runtime/client'),
  ])
  const http = createHttp(runtime, { auth: 'none', local: localPerson() })
  return createClient({
    url: 'http://127.0.0.1',
    fetch: (input, init) => fetchLocally(http, new Request(input, init), init?.signal ?? undefined),
  })
}

/**
 * Rejects, and ends the answer, when the signal aborts, as `fetch` does. The signal of the request itself
 * will not do: it follows the given one by a weak reference, and is forgotten when memory is tidied up.
 */
async function fetchLocally(
  http: Http,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (!signal) return http.fetch(request)
  signal.throwIfAborted()
  const answered = new AbortController()
  const refused = new Promise<never>((_, reject) => {
    const options = { once: true, signal: answered.signal }
    signal.addEventListener('abort', () => reject(signal.reason), options)
  })
  try {
    const response = await Promise.race([http.fetch(request), refused])
    const body = response.body?.pipeThrough(new TransformStream(), { signal })
    return body ? new Response(body, response) : response
  } finally {
    answered.abort()
  }
}

/** Whoever sits at this machine; the name stands beside decisions in the log. */
export function localPerson(): Principal {
  return { tenant: 'default', name: userName(), scopes: ['admin', 'metrics:read'] }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'local' // a process without a user of its own, as in some containers
  }
}

function isLocked(error: unknown): error is Error {
  return error instanceof Error && (error as { code?: unknown }).code === 'STORE_LOCKED'
}

function lockedStore(error: Error): CommandError {
  const server = readServerFile()
  return new CommandError(error.message, {
    code: 'STORE_LOCKED',
    hint: server
      ? `A server runs there: ${server.url}. Use it with --url ${server.url}, or stop it (process ${server.pid}).`
      : 'One process owns a store: wait for it, or stop it.',
    cause: error,
  })
}
