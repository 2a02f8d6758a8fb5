import type { JsonObject, JsonValue } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import { listOf, numberOf, objectOf, textOf } from '../read-json.ts'
import type { ErrorResponse, VendorError } from '../wire.ts'

/** Google's canonical status words. */
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

export function readError(body: JsonValue | undefined): VendorError | undefined {
  const error = objectOf(objectOf(Array.isArray(body) ? body[0] : body)?.['error'])
  if (!error) return undefined
  const status = textOf(error['status'])
  const details = listOf(error['details']).map((detail) => objectOf(detail) ?? {})
  const reason = textOf(detailOf(details, 'ErrorInfo')?.['reason'])
  const message = textOf(error['message']) ?? status ?? 'The vendor gave no reason.'
  const code = codeOf(status, message, details)
  const retryAfterMs = durationMs(detailOf(details, 'RetryInfo')?.['retryDelay'])
  const number = numberOf(error['code'])
  const vendorCode = reason ?? (number === undefined ? undefined : String(number))
  return {
    message,
    ...(code && { code }),
    ...(status && { vendorType: status }),
    ...(vendorCode !== undefined && { vendorCode }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

function codeOf(
  status: string | undefined,
  message: string,
  details: readonly JsonObject[],
): ErrorCode | undefined {
  const reason = detailOf(details, 'ErrorInfo')?.['reason']
  if (reason === 'API_KEY_INVALID' || /API key (not valid|expired|not found)/i.test(message))
    return ErrorCode.AuthenticationFailed
  if (status === 'INVALID_ARGUMENT' && isTooLong(message)) return ErrorCode.ContextLengthExceeded
  if (status === 'RESOURCE_EXHAUSTED' && isDailyQuota(details)) return ErrorCode.QuotaExceeded
  return status !== undefined && Object.hasOwn(codes, status) ? codes[status] : undefined
}

function isTooLong(message: string): boolean {
  return /token count.*exceeds|exceeds the maximum number of tokens|context (length|window)/i.test(
    message,
  )
}

/** A limit per minute passes by waiting; one per day does not, within any useful retry. */
function isDailyQuota(details: readonly JsonObject[]): boolean {
  const violations = listOf(detailOf(details, 'QuotaFailure')?.['violations'])
  return violations.some((violation) => /PerDay/i.test(String(objectOf(violation)?.['quotaId'])))
}

function detailOf(details: readonly JsonObject[], name: string): JsonObject | undefined {
  return details.find((detail) => textOf(detail['@type'])?.endsWith(`google.rpc.${name}`))
}

/** A protobuf duration in JSON: seconds with up to nine decimals and an `s`. */
function durationMs(value: JsonValue | undefined): number | undefined {
  const seconds = typeof value === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(value)?.[1] : undefined
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000)
}
