import { ErrorCode } from '../../contract/error.ts'
import { objectOf, textOf } from '../read-json.ts'
import type { ErrorResponse, VendorError } from '../../contract/vendor-error.ts'

const codes: Readonly<Record<string, ErrorCode>> = {
  invalid_request_error: ErrorCode.InvalidRequest,
  request_too_large: ErrorCode.InvalidRequest,
  authentication_error: ErrorCode.AuthenticationFailed,
  permission_error: ErrorCode.AuthenticationFailed,
  billing_error: ErrorCode.QuotaExceeded,
  not_found_error: ErrorCode.ModelNotFound,
  rate_limit_error: ErrorCode.RateLimited,
  timeout_error: ErrorCode.ProviderError,
  api_error: ErrorCode.ProviderError,
  overloaded_error: ErrorCode.ProviderError,
}

/** Reads `{ type: 'error', error: { type, message, details? }, request_id }`. */
export function decodeError(response: ErrorResponse): VendorError {
  const { json, text, status, headers } = response
  const requestId = headers.get('request-id') ?? undefined
  const error = readError(json, requestId)
  if (error) return error
  const message = textOf(objectOf(json)?.['message']) ?? textOf(text.trim().slice(0, 500))
  return { message: message ?? `HTTP ${status}`, requestId }
}

/** Reads the error object of a body or of an `error` event; undefined if there is none. */
export function readError(body: unknown, requestId?: string): VendorError | undefined {
  const outer = objectOf(body)
  const error = objectOf(outer?.['error'])
  if (!error) return undefined
  const type = textOf(error['type'])
  const message = textOf(error['message']) ?? type ?? 'The vendor gave no reason.'
  const vendorCode = textOf(objectOf(error['details'])?.['error_code'])
  const code = codeOf(type, message, vendorCode)
  const id = textOf(outer?.['request_id']) ?? requestId
  return {
    message,
    code,
    vendorType: type,
    vendorCode,
    requestId: id,
  }
}

/**
 * Chooses the UPP code. The API reports several failures with different UPP codes as
 * `invalid_request_error`, so the message is needed to tell them apart.
 */
function codeOf(
  type: string | undefined,
  message: string,
  vendorCode: string | undefined,
): ErrorCode | undefined {
  if (vendorCode === 'enforced_spend_limit_reached') return ErrorCode.QuotaExceeded
  if (type === 'invalid_request_error') {
    if (/prompt is too long|context (limit|window|length)/i.test(message))
      return ErrorCode.ContextLengthExceeded
    if (/credit balance is too low/i.test(message)) return ErrorCode.QuotaExceeded
    if (/content filtering policy/i.test(message)) return ErrorCode.ContentFiltered
  }
  return type !== undefined && Object.hasOwn(codes, type) ? codes[type] : undefined
}
