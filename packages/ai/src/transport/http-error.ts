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

/** What is needed to make an error from a response. */
export interface HttpErrorOptions {
  readonly context: ErrorContext
  readonly decodeError: (response: ErrorResponse) => VendorError
  readonly keyVariables: readonly string[]
  /** Milliseconds since the epoch, for dates in headers. */
  readonly now: number
}

/** The error of a response that is not a success. Not yet redacted. */
export function httpError(response: FailedResponse, options: HttpErrorOptions): UPPError {
  const { status, headers, text } = response
  const { context } = options
  if (status < 200 || (status >= 300 && status < 400)) {
    const location = headers.get('location')
    // The query of a redirect may carry a token.
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

/** The vendor's explicit word on retrying, in `x-should-retry`. */
const retryWords: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

/** HTTP 200 with an error in its body: the vendor's words are worth more than "malformed". */
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

/** The vendor's id of a response, for its support desk. */
export function requestIdOf(headers: Pick<ResponseHeaders, 'get'>): string | undefined {
  for (const name of ['x-request-id', 'request-id', 'apim-request-id', 'x-goog-request-id']) {
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
  // A web page comes from a proxy in between; no wire can read it.
  if (json === undefined && isHtml(text)) return undefined
  try {
    return decodeError({ status, headers, json, text })
  } catch {
    return undefined // an error body of an unknown shape is not a second error
  }
}

/** True for a web page, which a proxy between us and the vendor may answer with. */
export function isHtml(text: string): boolean {
  return /^\s*<(!doctype|html|head|body)/i.test(text)
}

/** The vendor's message; a message that only repeats the body gets a sentence around it. */
function messageOf(
  vendor: VendorError | undefined,
  { status, text }: FailedResponse,
  { provider }: ErrorContext,
): string {
  const said = vendor?.message.trim() ?? ''
  const isBody = text.trim().startsWith(said) || /^HTTP \d+$/.test(said)
  if (!isBody) return said
  const answered = `${provider} answered HTTP ${status}`
  if (text.trim() === '') return `${answered} without a body.`
  if (!isHtml(text)) return `${answered}: ${text.trim().slice(0, 200)}`
  const title = /<title[^>]*>([^<]*)/i.exec(text)?.[1]?.trim()
  return `${answered} with a web page${title ? ` titled "${title.slice(0, 100)}"` : ''}.`
}

/** Enough to see what went wrong, little enough for a log line. */
const MAX_BODY_CHARS = 4096

/** The beginning of a body, for an error. */
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

/** How long the vendor asks to wait, from the first header that says so; undefined when none does. */
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

/** Rate-limit headers as the vendor sent them. */
export function rateLimitOf(
  headers: ResponseHeaders,
): Readonly<Record<string, string>> | undefined {
  const found: Record<string, string> = Object.create(null)
  headers.forEach((value, name) => {
    if (/ratelimit|rate-limit|^retry-after/i.test(name)) found[name.toLowerCase()] = value
  })
  return Object.keys(found).length > 0 ? { ...found } : undefined
}

function positive(ms: number | undefined): number | undefined {
  return ms === undefined || !Number.isFinite(ms) ? undefined : Math.max(0, Math.ceil(ms))
}

function parseFloatExact(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/** RFC 9110 §10.2.3: seconds, which vendors also write with a fraction, or a date. */
function parseRetryAfter(text: string | null, now: number): number | undefined {
  if (text === null) return undefined
  const seconds = parseFloatExact(text)
  if (seconds !== undefined) return seconds * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** Pairs of what is left and when it is full again, by vendor. */
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

/** The latest reset of the limits that are used up. */
function limitReset(headers: Pick<ResponseHeaders, 'get'>, now: number): number | undefined {
  let latest: number | undefined
  for (const [remaining, reset] of limits) {
    const left = headers.get(remaining)
    if (left !== null && Number(left) > 0) continue
    const wait = parseReset(headers.get(reset), now)
    if (wait !== undefined) latest = Math.max(latest ?? 0, wait)
  }
  return latest
}

/** `6m0s` (OpenAI, Groq), RFC 3339 (Anthropic), seconds, or a moment in seconds or milliseconds. */
function parseReset(text: string | null, now: number): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const number = parseFloatExact(text)
  if (number !== undefined) {
    if (number > 1e12) return Math.max(0, number - now)
    return number > 1e9 ? Math.max(0, number * 1000 - now) : number * 1000
  }
  // Go's form, e.g. `1h2m3.5s` or `150ms`.
  if (/^\s*(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+\s*$/.test(text)) {
    let total = 0
    for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/g)) {
      total += Number(amount) * unitMs[unit!]!
    }
    return total
  }
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
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
