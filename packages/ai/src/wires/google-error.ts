import type { JsonObject, JsonValue } from '@skein/base'
import { ErrorCode } from '../contract/error.ts'
import { hasWords, listOf, numberOf, objectOf, stringOf, textOf } from './read-json.ts'
import type { VendorError } from '../contract/vendor-error.ts'
import type { ServerError } from './wire-server.ts'

/** Our codes for Google's canonical status names. */
const codes: Readonly<Record<string, ErrorCode>> = {
  INVALID_ARGUMENT: ErrorCode.InvalidRequest,
  FAILED_PRECONDITION: ErrorCode.InvalidRequest,
  OUT_OF_RANGE: ErrorCode.InvalidRequest,
  UNAUTHENTICATED: ErrorCode.AuthenticationFailed,
  PERMISSION_DENIED: ErrorCode.AuthenticationFailed,
  NOT_FOUND: ErrorCode.ModelNotFound,
  RESOURCE_EXHAUSTED: ErrorCode.RateLimited,
  INTERNAL: ErrorCode.ProviderError,
  UNAVAILABLE: ErrorCode.ProviderError,
  UNKNOWN: ErrorCode.ProviderError,
  ABORTED: ErrorCode.ProviderError,
  DEADLINE_EXCEEDED: ErrorCode.ProviderError,
}

/** Reads the error object of a body or of a frame of Google; undefined if there is none. */
export function readGoogleError(body: JsonValue | undefined): VendorError | undefined {
  const error = objectOf(objectOf(Array.isArray(body) ? body[0] : body)?.['error'])
  if (!error) return undefined
  const status = textOf(error['status'])
  const details = listOf(error['details']).map((detail) => objectOf(detail) ?? {})
  const reason = textOf(detailOf(details, 'ErrorInfo')?.['reason'])
  const message = textOf(error['message']) ?? status ?? 'The vendor gave no reason.'
  const code = codeOf(status, message, details)
  // The delay is a protobuf duration in JSON: seconds with up to nine decimals and an `s`.
  const delay = stringOf(detailOf(details, 'RetryInfo')?.['retryDelay']) ?? ''
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(delay)?.[1]
  const retryAfterMs = seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000)
  const number = numberOf(error['code'])
  const vendorCode = reason ?? (number === undefined ? undefined : String(number))
  return {
    message,
    code,
    vendorType: status,
    vendorCode,
    retryAfterMs,
  }
}

const tooLongWords = /exceeds the maximum number of tokens|context (length|window)/i

function codeOf(
  status: string | undefined,
  message: string,
  details: readonly JsonObject[],
): ErrorCode | undefined {
  const reason = detailOf(details, 'ErrorInfo')?.['reason']
  if (reason === 'API_KEY_INVALID' || /API key (not valid|expired|not found)/i.test(message))
    return ErrorCode.AuthenticationFailed
  const isTooLong = tooLongWords.test(message) || hasWords(message, 'token count', 'exceeds')
  if (status === 'INVALID_ARGUMENT' && isTooLong) return ErrorCode.ContextLengthExceeded
  // Waiting helps with a limit per minute, but not with one per day.
  const violations = listOf(detailOf(details, 'QuotaFailure')?.['violations'])
  const isDaily = violations.some((item) => /PerDay/i.test(String(objectOf(item)?.['quotaId'])))
  if (status === 'RESOURCE_EXHAUSTED' && isDaily) return ErrorCode.QuotaExceeded
  return status !== undefined && Object.hasOwn(codes, status) ? codes[status] : undefined
}

function detailOf(details: readonly JsonObject[], name: string): JsonObject | undefined {
  return details.find((detail) => textOf(detail['@type'])?.endsWith(`google.rpc.${name}`))
}

/** The API's HTTP code and status name for each of our codes, for servers that speak this format. */
const words: Readonly<Record<ErrorCode, readonly [code: number, status: string]>> = {
  [ErrorCode.AuthenticationFailed]: [401, 'UNAUTHENTICATED'],
  [ErrorCode.RateLimited]: [429, 'RESOURCE_EXHAUSTED'],
  [ErrorCode.QuotaExceeded]: [429, 'RESOURCE_EXHAUSTED'],
  [ErrorCode.ContextLengthExceeded]: [400, 'INVALID_ARGUMENT'],
  [ErrorCode.ModelNotFound]: [404, 'NOT_FOUND'],
  [ErrorCode.InvalidRequest]: [400, 'INVALID_ARGUMENT'],
  [ErrorCode.ContentFiltered]: [400, 'INVALID_ARGUMENT'],
  [ErrorCode.InvalidResponse]: [502, 'INTERNAL'],
  [ErrorCode.ProviderError]: [500, 'INTERNAL'],
  [ErrorCode.NetworkError]: [503, 'UNAVAILABLE'],
  [ErrorCode.Timeout]: [504, 'DEADLINE_EXCEEDED'],
  [ErrorCode.Cancelled]: [499, 'CANCELLED'],
}

const tooLong = 'The input token count exceeds the maximum number of tokens allowed'

/** Writes the body of an error, for servers that speak this format. */
export function googleErrorBody(error: ServerError): JsonObject {
  const [code, status] = words[error.code]
  const isTooLong = error.code === ErrorCode.ContextLengthExceeded
  const message = isTooLong ? `${tooLong}: ${error.message}` : error.message
  // The API reports the time to wait, and a used-up daily quota, in `details`.
  const details: JsonObject[] = []
  if (error.code === ErrorCode.QuotaExceeded) {
    const violations = [{ quotaId: 'GenerateRequestsPerDay' }]
    details.push({ '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations })
  }
  if (error.retryAfterMs !== undefined) {
    const retryDelay = `${error.retryAfterMs / 1000}s`
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay })
  }
  return {
    error: {
      code: error.statusCode ?? code,
      message,
      status,
      details: details.length > 0 ? details : undefined,
    },
  }
}

/** Returns the HTTP status of an error, for servers that speak a format of Google. */
export function httpStatusOf({ code, statusCode }: ServerError): number {
  return statusCode ?? words[code][0]
}
