import type { JsonObject, JsonValue } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import { hasWords, listOf, numberOf, objectOf, stringOf, textOf } from '../read-json.ts'
import type { ErrorResponse, VendorError } from '../../contract/vendor-error.ts'

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

/** Reads `{ error: { code, message, status, details } }`, also inside a list. */
export function decodeError({ json, text, status }: ErrorResponse): VendorError {
  const message = textOf(text.trim().slice(0, 500)) ?? `HTTP ${status}`
  return readError(json) ?? { message }
}

/** Reads the error object of a body or of a frame; undefined if there is none. */
export function readError(body: JsonValue | undefined): VendorError | undefined {
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
