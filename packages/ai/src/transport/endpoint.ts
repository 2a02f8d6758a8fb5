import type { ProviderConfig } from '../contract/provider.ts'
import {
  ErrorCode,
  invalidRequest,
  isUPPError,
  type Modality,
  UPPError,
} from '../contract/error.ts'
import { environment } from './keys.ts'
import type { Transport, TransportRequest, TransportResponse } from './transport.ts'

/** The address, key variables and headers of a vendor: all that the transport needs of its definition. */
export interface VendorEndpoint {
  readonly name: string
  /** The address with its version prefix; `config.baseUrl` replaces it. */
  readonly baseUrl: string
  /**
   * Environment variables that may hold the key. If the list is empty, no key is needed, but a configured
   * key is sent.
   */
  readonly keyVariables: readonly string[]
  readonly authHeaders: (key: string) => Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Sends the requests for which there is no key. */
  readonly authorizer?: Authorizer
}

/** Sends requests with authentication that is more than a key, e.g. a signature or a token that ends. */
export interface Authorizer {
  /** Sends a request that has no key through `transport`. */
  send(request: TransportRequest, transport: Transport): Promise<TransportResponse>
  /** The texts that must not appear in an error, as far as they are known. */
  readonly secrets: readonly string[]
}

/** The provider and modality that an error names. */
export interface ErrorContext {
  readonly provider: string
  readonly modality: Modality
}

/** Returns the URL of one request. The base may end in slashes and may have a query. */
export function requestUrl(base: string, path: string, context: ErrorContext): string {
  const key = `${base}\n${path}`
  let cachedUrl = urls.get(key)
  if (cachedUrl === undefined) {
    cachedUrl = joinUrl(base, path, context)
    if (urls.size >= MAX_URLS) urls.clear()
    urls.set(key, cachedUrl)
  }
  return cachedUrl
}

/** A cache of request URLs, because an application uses the same few of them again and again. */
const urls = new Map<string, string>()
const MAX_URLS = 100

function joinUrl(base: string, path: string, context: ErrorContext): string {
  const url = parseBase(base, context)
  const mark = path.indexOf('?')
  const pathname = mark < 0 ? path : path.slice(0, mark)
  const query = mark < 0 ? '' : path.slice(mark + 1)
  // A model's name may be a part of the path. With `..` in the name, our key would be sent to another path.
  if (/\/(?:\.{0,2}\/|\.{1,2}(?::|$))/.test(pathname)) {
    const pathText = JSON.stringify(pathname.slice(0, 200))
    throw invalidRequest(
      `The path ${pathText} for ${context.provider} has an empty, "." or ".." part.`,
      context,
      'Check the name of the model.',
    )
  }
  let end = url.pathname.length
  while (url.pathname[end - 1] === '/') end--
  const prefix = url.pathname.slice(0, end)
  const search = [url.search.slice(1), query].filter(Boolean).join('&')
  return `${url.origin}${prefix}${pathname}${search && `?${search}`}`
}

function parseBase(base: string, context: ErrorContext): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined
  const problem = !url
    ? 'is not an absolute URL'
    : url.protocol !== 'https:' && url.protocol !== 'http:'
      ? `has the protocol "${url.protocol}"`
      : url.username !== '' || url.password !== ''
        ? 'carries a user name or password'
        : undefined
  if (!url || problem) {
    // The error does not quote the value, which may contain a password.
    throw invalidRequest(
      `The baseUrl for ${context.provider} ${problem}.`,
      context,
      'Expected http(s)://host/prefix; put credentials in config.apiKey or config.headers.',
    )
  }
  return url
}

/** The sources of the headers of a request. */
interface HeaderParts {
  readonly endpoint: VendorEndpoint
  readonly config: ProviderConfig
  readonly key: string | undefined
  readonly request: Readonly<Record<string, string>>
}

/**
 * Returns all headers of one request, names in lower case. `config.headers` override the others,
 * whatever the case of their names (UPP §4.1).
 */
export function requestHeaders(parts: HeaderParts, context: ErrorContext): Record<string, string> {
  const { endpoint, config, key, request } = parts
  const headers: Record<string, string> = Object.create(null)
  const auth = key === undefined ? {} : endpoint.authHeaders(key)
  const layers = [endpoint.headers, auth, request, config.headers ?? {}]
  for (const layer of layers) {
    for (const [name, value] of Object.entries(layer)) addHeader(headers, name, value, context)
  }
  return { ...headers }
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Characters that a header value must not contain: all but tab, visible ASCII and Latin-1. */
// oxlint-disable-next-line no-control-regex
const badValue = /[^\t\x20-\x7e\x80-\xff]/

function addHeader(
  headers: Record<string, string>,
  name: string,
  value: unknown,
  context: ErrorContext,
): void {
  if (value === undefined) return
  if (value === null) return void delete headers[name.toLowerCase()]
  // The value is trimmed, as `fetch` does, because a key read from a file often ends in a line break.
  const text = String(value).trim()
  if (!headerName.test(name) || badValue.test(text)) {
    throw invalidRequest(
      `The header ${JSON.stringify(name)} cannot be sent to ${context.provider}.`,
      context,
      'A name has letters, digits and -; a value has no line break or character above U+00FF.',
    )
  }
  headers[name.toLowerCase()] = text
}

/** Returns the key of one attempt; undefined if the vendor needs none or `config.headers` replace it. */
export function resolveKey(
  endpoint: VendorEndpoint,
  config: ProviderConfig,
  context: ErrorContext,
): string | undefined | Promise<string | undefined> {
  const { apiKey } = config
  if (apiKey === undefined) {
    for (const variable of endpoint.keyVariables) {
      const key = environment(variable)
      if (key !== undefined) return key
    }
    // The caller may have set the authentication header in `config.headers`, or removed it, instead of
    // giving a key.
    const names = Object.keys(endpoint.authHeaders('key')).map((name) => name.toLowerCase())
    const hasOwnAuth = Object.entries(config.headers ?? {}).some(
      ([name, value]) => value !== undefined && names.includes(name.toLowerCase()),
    )
    if (endpoint.keyVariables.length === 0 || hasOwnAuth || endpoint.authorizer) return undefined
    throw new UPPError(`There is no API key for ${context.provider}.`, {
      code: ErrorCode.AuthenticationFailed,
      ...context,
      hint: `Set ${endpoint.keyVariables.join(' or ')}, or pass config.apiKey.`,
    })
  }
  if (typeof apiKey === 'string') return checkKey(apiKey, context)
  const ask = typeof apiKey === 'function' ? apiKey : () => apiKey.getKey()
  return askForKey(ask, context)
}

async function askForKey(
  ask: () => string | Promise<string>,
  context: ErrorContext,
): Promise<string> {
  try {
    return checkKey(await ask(), context)
  } catch (error) {
    if (isUPPError(error)) throw error
    throw new UPPError(`The key for ${context.provider} could not be obtained.`, {
      code: ErrorCode.AuthenticationFailed,
      ...context,
      cause: error,
      hint: 'config.apiKey failed; see the cause.',
    })
  }
}

function checkKey(key: unknown, context: ErrorContext): string {
  if (typeof key === 'string' && key.trim() !== '') return key
  // The error names the type, never the value: a key of the wrong type is still a secret.
  const what = key === '' ? 'empty' : typeof key === 'string' ? 'blank' : `a ${typeof key}`
  throw new UPPError(`The API key for ${context.provider} is ${what}.`, {
    code: ErrorCode.AuthenticationFailed,
    ...context,
    hint: 'config.apiKey must be, or give, a non-empty string.',
  })
}

/** Writes a request body as JSON text; throws a UPPError if it cannot be written (a cycle, a BigInt). */
export function jsonBody(body: unknown, context: ErrorContext): string {
  return written(() => JSON.stringify(body), context)
}

/** Calls `write`, which writes a request. An error that is not a UPPError becomes INVALID_REQUEST. */
export function written<T>(write: () => T, context: ErrorContext): T {
  try {
    return write()
  } catch (error) {
    if (isUPPError(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new UPPError(`The request for ${context.provider} cannot be written: ${reason}`, {
      code: ErrorCode.InvalidRequest,
      ...context,
      cause: error,
      hint: 'Params, tools and messages must be JSON: no cycle, no BigInt.',
    })
  }
}

/**
 * Checks whether a host name looks public. False for private, loopback, link-local and reserved
 * addresses and for names that resolve only inside a network; the name is not looked up. Used before
 * fetching an address that came from a response and not from the caller.
 */
export function isPublicAddress(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  // IPv6: only 2000::/3 is public, except protocol assignments (2001::/23), documentation and 6to4 (2002::/16).
  if (host.startsWith('['))
    return /^\[[23]/.test(host) && !/^\[(2001:([01]?..?|db8)?:|2002:|3fff:.{0,3}:)/.test(host)
  // `URL` has already normalised every notation of an IPv4 address to four decimal numbers.
  const parts = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host)
  if (!parts)
    return host.includes('.') && !/\.(local|localhost|internal|lan|home|corp|intranet)$/.test(host)
  const [a = 0, b = 0, c = 0] = parts.slice(1).map(Number)
  if (a === 0 || a === 10 || a === 127 || a >= 224) return false
  if (a === 100 && b >= 64 && b <= 127) return false
  if (a === 169 && b === 254) return false
  if (a === 172 && b >= 16 && b <= 31) return false
  if (a === 192 && (b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99)))
    return false
  if (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) return false
  return !(a === 203 && b === 0 && c === 113)
}
