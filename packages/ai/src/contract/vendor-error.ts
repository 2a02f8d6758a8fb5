import type { JsonValue } from '@skein/base'
import { ErrorCode, type UPPErrorOptions } from './error.ts'

/** An unsuccessful HTTP response, as the code that reads the vendor's format gets it. */
export interface ErrorResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  /** The parsed body; undefined when it is not JSON. */
  readonly json: JsonValue | undefined
  readonly text: string
}

/** The fields that were read from a vendor's error; missing fields are derived from the HTTP status. */
export type VendorError = { readonly message: string } & Partial<
  Pick<
    UPPErrorOptions,
    'code' | 'vendorCode' | 'vendorType' | 'requestId' | 'retryAfterMs' | 'shouldRetry' | 'hint'
  >
>

/** Returns the error code for an HTTP status (UPP §4.4). A code sent by the vendor overrides it. */
export function codeForStatus(status: number): ErrorCode {
  if (status === 401 || status === 403) return ErrorCode.AuthenticationFailed
  if (status === 402) return ErrorCode.QuotaExceeded
  if (status === 404) return ErrorCode.ModelNotFound
  if (status === 408) return ErrorCode.Timeout
  // 409 is a conflict between concurrent requests. Vendors and their own clients retry it.
  if (status === 409) return ErrorCode.ProviderError
  if (status === 429) return ErrorCode.RateLimited
  if (status >= 500) return ErrorCode.ProviderError
  return status >= 400 ? ErrorCode.InvalidRequest : ErrorCode.InvalidResponse
}
