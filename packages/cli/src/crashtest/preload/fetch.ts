import type { Crashtest, Preloaded } from './protocol.ts'
import { redirected } from './redirect.ts'

/** What undici, which is Node's `fetch`, calls a dispatcher: it sends one request. */
interface Dispatcher {
  dispatch(options: DispatchOptions, handler: unknown): boolean
}

interface DispatchOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly headers?: unknown
  readonly upgrade?: unknown
}

/** Where the versions of undici keep the dispatcher that all of them share. */
const SYMBOLS = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`))

/**
 * Leads `fetch`, and `undici` as a package, to the recorder. It works below `fetch`, at the dispatcher: bodies, streams and
 * aborts stay Node's, each redirect is a request of its own, and https needs no certificate.
 */
export function interceptFetch(preloaded: Preloaded, steps: Crashtest): void {
  const shared = globalThis as unknown as Record<symbol, Dispatcher | undefined>
  void fetch('data:,').catch(() => undefined) // loads Node's undici, which then has its dispatcher
  let own: Dispatcher | undefined
  for (const symbol of SYMBOLS) {
    const dispatcher = shared[symbol]
    if (dispatcher === undefined) continue
    const redirecting: Dispatcher = Object.assign(Object.create(dispatcher) as Dispatcher, {
      dispatch: (options: DispatchOptions, handler: unknown) =>
        dispatcher.dispatch(redirect(options, preloaded, steps), handler),
    })
    shared[symbol] = redirecting
    own ??= redirecting
  }
  const original = globalThis.fetch
  // A program may name a dispatcher of its own, e.g. of a proxy. Nothing leaves this machine, so it gets ours.
  globalThis.fetch = async (input, init) =>
    original(input, { ...init, dispatcher: own } as unknown as RequestInit)
}

function redirect(
  options: DispatchOptions,
  preloaded: Preloaded,
  steps: Crashtest,
): DispatchOptions {
  const { origin, path, method, headers, upgrade } = options
  // A WebSocket: the recorder does not speak it; `guardSockets` refuses it unless it stays on this machine.
  if (origin === undefined || upgrade !== undefined) return options
  const url = new URL(path, origin).href
  const added = redirected(preloaded, steps, { method, url })
  return { ...options, origin: preloaded.recorder, headers: withHeaders(headers, added) }
}

/** Headers are a flat list, pairs, or an object. */
function withHeaders(headers: unknown, added: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(headers) && !Array.isArray(headers[0]))
    return [...(headers as string[]), ...Object.entries(added).flat()]
  if (headers !== null && typeof headers === 'object' && Symbol.iterator in headers)
    return [...(headers as Iterable<[string, string]>), ...Object.entries(added)].flat()
  return { ...(headers as object | undefined), ...added }
}
