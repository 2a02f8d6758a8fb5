import type { JsonObject } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import type { ServerError } from '../wire-server.ts'

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
export function errorBody(error: ServerError): JsonObject {
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

/** Returns the HTTP status and body of an error, for servers that speak this format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: error.statusCode ?? words[error.code][0], body: errorBody(error) }
}
