import type { JsonObject } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import type { ServerError } from '../wire-server.ts'

/** The API's status and error type for each of our codes, for servers that speak this format. */
const words: Readonly<Record<ErrorCode, readonly [status: number, type: string]>> = {
  [ErrorCode.AuthenticationFailed]: [401, 'authentication_error'],
  [ErrorCode.RateLimited]: [429, 'rate_limit_error'],
  [ErrorCode.QuotaExceeded]: [402, 'billing_error'],
  [ErrorCode.ContextLengthExceeded]: [400, 'invalid_request_error'],
  [ErrorCode.ModelNotFound]: [404, 'not_found_error'],
  [ErrorCode.InvalidRequest]: [400, 'invalid_request_error'],
  [ErrorCode.ContentFiltered]: [400, 'invalid_request_error'],
  [ErrorCode.InvalidResponse]: [502, 'api_error'],
  [ErrorCode.ProviderError]: [500, 'api_error'],
  [ErrorCode.NetworkError]: [502, 'api_error'],
  [ErrorCode.Timeout]: [504, 'timeout_error'],
  [ErrorCode.Cancelled]: [499, 'api_error'],
}

/**
 * Phrases by which clients recognise these two errors, because their error type is also used for other
 * errors.
 */
const phrases: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.ContextLengthExceeded]: 'prompt is too long',
  [ErrorCode.ContentFiltered]: 'blocked by content filtering policy',
}

/** Writes the body of an error, for servers that speak this format. */
export function errorBody({ code, message, statusCode, fields }: ServerError): JsonObject {
  const type = statusCode === 529 ? 'overloaded_error' : words[code][1]
  const phrase = phrases[code]
  const text = phrase && !message.includes(phrase) ? `${phrase}: ${message}` : message
  return { type: 'error', error: { type, message: text, ...fields } }
}

/** Returns the HTTP status and body of an error, for servers that speak this format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: error.statusCode ?? words[error.code][0], body: errorBody(error) }
}
