import { isPlainObject, type JsonValue } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import { codeForStatus, type ErrorResponse, type VendorError } from '../contract/vendor-error.ts'
import type { ErrorContext } from './endpoint.ts'
import type { ResponseHeaders } from './transport.ts'

interface FailedResponse {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly text: string
}

/** The settings of `httpError`. */
export interface HttpErrorOptions {
  readonly context: ErrorContext
  readonly decodeError: (response: ErrorResponse) => VendorError
  readonly keyVariables: readonly string[]
  /** The current time in milliseconds since the epoch, needed for dates in headers. */
  readonly now: number
}

/**
 * Makes the error of a response without a success status. The caller must remove secrets from the error.
 */
export function httpError(response: FailedResponse, options: HttpErrorOptions): UPPError {
  const { status, headers, text } = response
  const { context } = options
  if (status < 200 || (status >= 300 && status < 400)) {
    const location = headers.get('location')
    // The query is left out because it may contain a token.
    const to = location ? ` to ${location.split(/[?#]/)[0]}` : ''
    return new UPPError(`${context.provider} redirects the request${to} (HTTP ${status}).`, {
      code: ErrorCode.InvalidResponse,
      ...context,
      statusCode: status,
      requestId: requestIdOf(headers),
      hint: 'Requests with a key are not redirected; set baseUrl to the final address.',
    })
  }
  const vendor = readVendorError(response, options)
  const code = vendor?.code ?? codeForStatus(status)
  const word = headers.get('x-should-retry')?.trim().toLowerCase()
  return new UPPError(messageOf(vendor, response, context), {
    code,
    ...context,
    statusCode: status,
    vendorCode: vendor?.vendorCode,
    vendorType: vendor?.vendorType,
    requestId: vendor?.requestId ?? requestIdOf(headers),
    retryAfterMs: vendor?.retryAfterMs ?? retryAfterMs(headers, { status, now: options.now }),
    shouldRetry: retryWords.get(word ?? '') ?? vendor?.shouldRetry,
    rateLimit: rateLimitOf(headers),
    body: text === '' ? undefined : excerpt(text),
    hint: vendor?.hint ?? hintFor(code, options.keyVariables),
  })
}

/** The values of the `x-should-retry` header, with which a vendor says whether to retry. */
const retryWords: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

/**
 * Makes the error of an HTTP 200 response whose body is a vendor's error object; undefined if the body is
 * not an error object. The vendor's message explains more than "malformed response" would.
 */
export function errorInBody(
  json: JsonValue,
  { status, headers }: Pick<FailedResponse, 'status' | 'headers'>,
  options: HttpErrorOptions,
): UPPError | undefined {
  if (!isPlainObject(json) || json['error'] === undefined || json['error'] === null)
    return undefined
  const text = JSON.stringify(json)
  const vendor = readVendorError({ status, headers, text }, options)
  if (!vendor?.message) return undefined
  const { message, ...rest } = vendor
  return new UPPError(message, {
    ...rest,
    code: vendor.code ?? ErrorCode.ProviderError,
    ...options.context,
    statusCode: status,
    body: excerpt(text),
  })
}

const requestIdHeaders = [
  'x-request-id',
  'request-id',
  'apim-request-id',
  'x-goog-request-id',
  'x-amzn-requestid',
]

/** Reads the vendor's request id from the headers. The vendor's support asks for this id. */
export function requestIdOf(headers: Pick<ResponseHeaders, 'get'>): string | undefined {
  for (const name of requestIdHeaders) {
    const id = headers.get(name)
    if (id) return id
  }
  return undefined
}

function readVendorError(
  { status, headers, text }: FailedResponse,
  { decodeError }: HttpErrorOptions,
): VendorError | undefined {
  let json: JsonValue | undefined
  try {
    json = JSON.parse(text) as JsonValue
  } catch {
    json = undefined
  }
  // A web page was sent by a proxy and not by the vendor, so it is not in the vendor's error format.
  if (json === undefined && isHtml(text)) return undefined
  try {
    return decodeError({ status, headers, json, text })
  } catch {
    return undefined // an error body of unknown shape must not cause a second error
  }
}

/** Checks whether a body is a web page, as proxies between us and the vendor send them. */
export function isHtml(text: string): boolean {
  return /^\s*<(!doctype|html|head|body)/i.test(text)
}

/**
 * Returns the vendor's message. If the message is only the body itself, a sentence with the status is put around it.
 */
function messageOf(
  vendor: VendorError | undefined,
  { status, text }: FailedResponse,
  { provider }: ErrorContext,
): string {
  const vendorText = vendor?.message.trim() ?? ''
  const isBody = text.trim().startsWith(vendorText) || /^HTTP \d+$/.test(vendorText)
  if (!isBody) return vendorText
  const prefix = `${provider} answered HTTP ${status}`
  if (text.trim() === '') return `${prefix} without a body.`
  if (!isHtml(text)) return `${prefix}: ${text.trim().slice(0, 200)}`
  const title = /<title[^<>]*>([^<]*)/i.exec(text)?.[1]?.trim()
  return `${prefix} with a web page${title ? ` titled "${title.slice(0, 100)}"` : ''}.`
}

/** The length to which a body is cut in an error: enough for a diagnosis, short enough for a log. */
const MAX_BODY_CHARS = 4096

/** Returns the beginning of a body, for use in an error. */
export function excerpt(text: string): string {
  return text.length <= MAX_BODY_CHARS ? text : `${text.slice(0, MAX_BODY_CHARS)} … (cut)`
}

function hintFor(code: ErrorCode, keyVariables: readonly string[]): string | undefined {
  if (code === ErrorCode.AuthenticationFailed) {
    const variable = keyVariables[0]
    return `Check the key in config.apiKey${variable ? ` or ${variable}` : ''} and what it may use.`
  }
  if (code === ErrorCode.ModelNotFound) return 'Check the model id, and baseUrl if it is set.'
  return undefined
}

/**
 * Returns how long the vendor asks to wait, from the first header that states it; undefined if none does.
 */
function retryAfterMs(
  headers: Pick<ResponseHeaders, 'get'>,
  { status, now }: { status: number; now: number },
): number | undefined {
  return (
    positive(parseFloatExact(headers.get('retry-after-ms'))) ??
    positive(parseRetryAfter(headers.get('retry-after'), now)) ??
    (status === 429 ? positive(limitReset(headers, now)) : undefined)
  )
}

/** Returns the rate-limit headers unchanged; undefined if there are none. */
export function rateLimitOf(
  headers: ResponseHeaders,
): Readonly<Record<string, string>> | undefined {
  const result: Record<string, string> = Object.create(null)
  headers.forEach((value, name) => {
    if (/ratelimit|rate-limit|^retry-after/i.test(name)) result[name.toLowerCase()] = value
  })
  return Object.keys(result).length > 0 ? { ...result } : undefined
}

/** Returns a wait of 0 or more; undefined for NaN, which means a header that cannot be read. */
function positive(ms: number | undefined): number | undefined {
  return ms === undefined || !Number.isFinite(ms) ? undefined : Math.max(0, Math.ceil(ms))
}

function parseFloatExact(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/**
 * Parses `Retry-After` (RFC 9110 §10.2.3): seconds, which some vendors write with a fraction, or a
 * date.
 */
function parseRetryAfter(text: string | null, now: number): number {
  const seconds = parseFloatExact(text)
  return seconds === undefined ? Date.parse(text ?? '') - now : seconds * 1000
}

/** Header names of each limit: how much remains, and when the limit is reset. */
const limits: readonly (readonly [remaining: string, reset: string])[] = [
  ...['requests', 'tokens'].map(
    (kind) => [`x-ratelimit-remaining-${kind}`, `x-ratelimit-reset-${kind}`] as const,
  ),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (kind) =>
      [`anthropic-ratelimit-${kind}-remaining`, `anthropic-ratelimit-${kind}-reset`] as const,
  ),
  ['x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['ratelimit-remaining', 'ratelimit-reset'],
]

/** Returns the time in milliseconds until the last of the used-up limits is reset. */
function limitReset(headers: Pick<ResponseHeaders, 'get'>, now: number): number | undefined {
  let latest: number | undefined
  for (const [remaining, reset] of limits) {
    const remainingText = headers.get(remaining)
    if (remainingText !== null && Number(remainingText) > 0) continue
    const wait = parseReset(headers.get(reset) ?? '', now)
    if (!Number.isNaN(wait)) latest = Math.max(latest ?? 0, wait)
  }
  return latest
}

/**
 * Parses the reset time of a limit: `6m0s` (OpenAI, Groq), RFC 3339 (Anthropic), a number of seconds,
 * or a Unix time in seconds or milliseconds. Returns NaN for other texts.
 */
function parseReset(text: string, now: number): number {
  const number = parseFloatExact(text)
  if (number !== undefined) {
    if (number > 1e12) return number - now
    return number > 1e9 ? number * 1000 - now : number * 1000
  }
  // A duration as the Go language prints it, e.g. `1h2m3.5s` or `150ms`.
  if (/^\s*(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+\s*$/.test(text)) {
    let total = 0
    for (const [, amount, unit] of text.trim().matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/gy)) {
      total += Number(amount) * unitMs[unit!]!
    }
    return total
  }
  return Date.parse(text) - now
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
