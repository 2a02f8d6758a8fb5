import type { ProviderConfig } from '../contract/provider.ts'
import { ErrorCode, UPPError, type Modality } from '../contract/error.ts'

/** Where a vendor is and how it wants to be asked: the part of its page that the transport needs. */
export interface VendorEndpoint {
  readonly name: string
  /** Versioned prefix; `config.baseUrl` replaces it. */
  readonly baseUrl: string
  /** Empty: no key needed, but one is sent if configured. */
  readonly keyVariables: readonly string[]
  readonly authHeaders: (key: string) => Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
}

/** Whom an error is about. */
export interface ErrorContext {
  readonly provider: string
  readonly modality: Modality
}

/** The address of one request. Slashes and a query at the end of the base are tolerated. */
export function requestUrl(base: string, path: string, context: ErrorContext): string {
  const url = parseBase(base, context)
  const [pathname = '', query] = split(path)
  const prefix = url.pathname.replace(/\/+$/, '')
  const search = [url.search.slice(1), query].filter(Boolean).join('&')
  return `${url.origin}${prefix}${pathname}${search && `?${search}`}`
}

function split(path: string): string[] {
  const mark = path.indexOf('?')
  return mark < 0 ? [path] : [path.slice(0, mark), path.slice(mark + 1)]
}

const parsed = new Map<string, URL>()

function parseBase(base: string, context: ErrorContext): URL {
  const known = parsed.get(base)
  if (known) return known
  const url = URL.canParse(base) ? new URL(base) : undefined
  const problem = !url
    ? 'is not an absolute URL'
    : url.protocol !== 'https:' && url.protocol !== 'http:'
      ? `has the protocol "${url.protocol}"`
      : url.username !== '' || url.password !== ''
        ? 'carries a user name or password'
        : undefined
  if (!url || problem) {
    // The value is not repeated: it may hold a password.
    throw new UPPError(`The baseUrl for ${context.provider} ${problem}.`, {
      code: ErrorCode.InvalidRequest,
      ...context,
      hint: 'Expected http(s)://host/prefix; put credentials in config.apiKey or config.headers.',
    })
  }
  if (parsed.size > 100) parsed.clear()
  parsed.set(base, url)
  return url
}

/** Where the headers of a request come from. */
export interface HeaderParts {
  readonly endpoint: VendorEndpoint
  readonly config: ProviderConfig
  readonly key: string | undefined
  readonly request: Readonly<Record<string, string>>
}

/** All headers of one request, names in lower case. The caller's own win, whatever their case (UPP §4.1). */
export function requestHeaders(parts: HeaderParts, context: ErrorContext): Record<string, string> {
  const { endpoint, config, key, request } = parts
  const headers: Record<string, string> = Object.create(null)
  const layers = [
    endpoint.headers,
    key === undefined ? {} : endpoint.authHeaders(key),
    request,
    config.headers ?? {},
  ]
  for (const layer of layers) {
    for (const [name, value] of Object.entries(layer)) addHeader(headers, name, value, context)
  }
  return { ...headers }
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Anything but a tab, visible ASCII and Latin-1 cannot stand in a header. */
// oxlint-disable-next-line no-control-regex
const badValue = /[^\t\x20-\x7e\x80-\xff]/

function addHeader(
  headers: Record<string, string>,
  name: string,
  value: unknown,
  context: ErrorContext,
): void {
  if (value === undefined || value === null) return
  // As `fetch` does; a key read from a file often ends in a line break.
  const text = String(value).trim()
  if (!headerName.test(name) || badValue.test(text)) {
    throw new UPPError(
      `The header ${JSON.stringify(name)} cannot be sent to ${context.provider}.`,
      {
        code: ErrorCode.InvalidRequest,
        ...context,
        hint: 'A name has letters, digits and -; a value has no line break or character above U+00FF.',
      },
    )
  }
  headers[name.toLowerCase()] = text
}
