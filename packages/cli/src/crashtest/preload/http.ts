import http from 'node:http'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import { urlToHttpOptions } from 'node:url'
import type { Crashtest, Preloaded } from './protocol.ts'
import { redirected } from './redirect.ts'

type Options = http.RequestOptions & { readonly [Symbol.iterator]?: never }
type OnResponse = (response: http.IncomingMessage) => void

/** Leads `http` and `https` to the recorder, and with them axios, got, node-fetch and others. */
export function interceptHttp(preloaded: Preloaded, steps: Crashtest): void {
  const send = http.request
  const recorder = new URL(preloaded.recorder)
  // Agents of the program may connect somewhere else, or with TLS.
  const agent = new http.Agent({ keepAlive: true })
  for (const module of [http, https]) {
    const original = module.request
    const request = (...given: unknown[]): http.ClientRequest => {
      const { options, onResponse } = read(given)
      const url = urlOf(options, module === https ? 'https:' : 'http:')
      if (url === undefined || isUpgrade(options)) return Reflect.apply(original, module, given)
      const added = redirected(preloaded, steps, { method: options.method ?? 'GET', url })
      return send(
        {
          ...options,
          protocol: recorder.protocol,
          host: recorder.hostname,
          hostname: recorder.hostname,
          port: recorder.port,
          agent,
          createConnection: undefined,
          lookup: undefined,
          family: undefined,
          localAddress: undefined,
          headers: withHeaders(options.headers, added),
        },
        onResponse,
      )
    }
    const get = (...given: unknown[]): http.ClientRequest => request(...given).end()
    Object.assign(module, { request, get })
  }
  syncBuiltinESMExports()
}

/** The three ways to call: an address, an address with options, options; each with a callback or not. */
function read(given: readonly unknown[]): { options: Options; onResponse?: OnResponse } {
  const [first, second, third] = given
  const isAddress = typeof first === 'string' || first instanceof URL
  const [settings, callback] = isAddress ? [second, third] : [first, second]
  const address = isAddress ? urlToHttpOptions(new URL(first)) : {}
  const onResponse = [settings, callback].find((one) => typeof one === 'function')
  const options = typeof settings === 'object' && settings !== null ? settings : {}
  // Options may be inherited, e.g. those of a class.
  const all: Record<string, unknown> = { ...address }
  for (const name in options) all[name] = (options as Record<string, unknown>)[name]
  return { options: all as Options, onResponse: onResponse as OnResponse | undefined }
}

/** Undefined for a socket of the file system, which stays on this machine. */
function urlOf(options: Options, standard: string): string | undefined {
  if (options.socketPath) return undefined
  const protocol = options.protocol ?? standard
  const host = options.hostname ?? options.host ?? 'localhost'
  const port = options.port ?? options.defaultPort
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  const origin = `${protocol}//${name}${port === undefined || port === null ? '' : `:${port}`}`
  return new URL(options.path ?? '/', origin).href
}

function isUpgrade({ headers }: Options): boolean {
  if (headers === undefined || Array.isArray(headers)) return false
  return Object.keys(headers).some((name) => name.toLowerCase() === 'upgrade')
}

function withHeaders(
  headers: http.RequestOptions['headers'],
  added: Readonly<Record<string, string>>,
): http.OutgoingHttpHeaders | string[] {
  if (Array.isArray(headers)) return [...headers, ...Object.entries(added).flat()]
  return { ...(headers as http.OutgoingHttpHeaders | undefined), ...added }
}
