import { isPlainObject, type JsonValue } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { ErrorResponse, VendorError } from '../wires/wire.ts'
import type { ErrorContext } from './endpoint.ts'
import { rateLimitOf, retryAfterMs, shouldRetryHeader } from './retry-after.ts'
import type { ResponseHeaders } from './transport.ts'

/** The code of an HTTP status (UPP §4.4). A code the vendor gives stands above it. */
export function codeForStatus(status: number): ErrorCode {
  if (status === 401 || status === 403) return ErrorCode.AuthenticationFailed
  if (status === 402) return ErrorCode.QuotaExceeded
  if (status === 404) return ErrorCode.ModelNotFound
  if (status === 408) return ErrorCode.Timeout
  // A conflict between concurrent requests: vendors and their own clients try it again.
  if (status === 409) return ErrorCode.ProviderError
  if (status === 429) return ErrorCode.RateLimited
  if (status >= 500) return ErrorCode.ProviderError
  return status >= 400 ? ErrorCode.InvalidRequest : ErrorCode.InvalidResponse
}

export interface FailedResponse {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly text: string
}

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
  if (status < 200 || (status >= 300 && status < 400)) return redirectError(response, context)
  const vendor = readVendorError(response, options)
  const code = vendor?.code ?? codeForStatus(status)
  return new UPPError(messageOf(vendor, response, context), {
    code,
    ...context,
    statusCode: status,
    vendorCode: vendor?.vendorCode,
    vendorType: vendor?.vendorType,
    requestId: vendor?.requestId ?? requestIdOf(headers),
    retryAfterMs: vendor?.retryAfterMs ?? retryAfterMs(headers, { status, now: options.now }),
    shouldRetry: shouldRetryHeader(headers) ?? vendor?.shouldRetry,
    rateLimit: rateLimitOf(headers),
    body: text === '' ? undefined : excerpt(text),
    hint: vendor?.hint ?? hintFor(code, options.keyVariables),
  })
}

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
  const json = parseJson(text)
  // A page of a proxy in between says nothing a wire could read.
  if (json === undefined && isHtml(text)) return undefined
  try {
    return decodeError({ status, headers, json, text })
  } catch {
    return undefined // an error body of an unknown shape is not a second error
  }
}

function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

export function isHtml(text: string): boolean {
  return /^\s*<(!doctype|html|head|body)/i.test(text)
}

/** What the vendor said in words; a body that is only repeated gets a sentence around it. */
function messageOf(
  vendor: VendorError | undefined,
  response: FailedResponse,
  context: ErrorContext,
): string {
  const said = vendor?.message.trim() ?? ''
  const isBody = response.text.trim().startsWith(said) || /^HTTP \d+$/.test(said)
  return isBody ? fallbackMessage(response, context) : said
}

function fallbackMessage({ status, text }: FailedResponse, { provider }: ErrorContext): string {
  const answered = `${provider} answered HTTP ${status}`
  if (text.trim() === '') return `${answered} without a body.`
  if (!isHtml(text)) return `${answered}: ${text.trim().slice(0, 200)}`
  const title = /<title[^>]*>([^<]*)/i.exec(text)?.[1]?.trim()
  return `${answered} with a web page${title ? ` titled "${title.slice(0, 100)}"` : ''}.`
}

/** Enough to see what went wrong, little enough for a log line. */
const MAX_BODY_CHARS = 4096

export function excerpt(text: string): string {
  return text.length <= MAX_BODY_CHARS ? text : `${text.slice(0, MAX_BODY_CHARS)} … (cut)`
}

function redirectError({ status, headers }: FailedResponse, context: ErrorContext): UPPError {
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

function hintFor(code: ErrorCode, keyVariables: readonly string[]): string | undefined {
  if (code === ErrorCode.AuthenticationFailed) {
    const variable = keyVariables[0]
    return `Check the key in config.apiKey${variable ? ` or ${variable}` : ''} and what it may use.`
  }
  if (code === ErrorCode.ModelNotFound) return 'Check the model id, and baseUrl if it is set.'
  return undefined
}
