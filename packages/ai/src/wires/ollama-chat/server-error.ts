import type { JsonObject } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import type { ServerError } from '../wire-server.ts'

/** The HTTP status of each of our codes, for servers that speak this format. */
const statuses: Readonly<Record<ErrorCode, number>> = {
  [ErrorCode.AuthenticationFailed]: 401,
  [ErrorCode.RateLimited]: 429,
  [ErrorCode.QuotaExceeded]: 402,
  [ErrorCode.ContextLengthExceeded]: 400,
  [ErrorCode.ModelNotFound]: 404,
  [ErrorCode.InvalidRequest]: 400,
  [ErrorCode.ContentFiltered]: 400,
  [ErrorCode.InvalidResponse]: 502,
  [ErrorCode.ProviderError]: 500,
  [ErrorCode.NetworkError]: 502,
  [ErrorCode.Timeout]: 504,
  [ErrorCode.Cancelled]: 499,
}

/** Writes an error for servers that speak this format; the format has no error codes, only messages. */
export function encodeError({ code, message, statusCode }: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: statusCode ?? statuses[code], body: { error: message } }
}
