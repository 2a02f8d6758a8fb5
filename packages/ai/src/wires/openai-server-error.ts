import { type JsonObject } from '@skein/base'
import { ErrorCode } from '../contract/error.ts'
import type { ServerError } from './wire-server.ts'

/** OpenAI's status, type and code for each of our codes, for servers that speak this format. */
const words: Readonly<
  Record<ErrorCode, readonly [status: number, type: string, code: string | null]>
> = {
  [ErrorCode.AuthenticationFailed]: [401, 'invalid_request_error', 'invalid_api_key'],
  [ErrorCode.RateLimited]: [429, 'requests', 'rate_limit_exceeded'],
  [ErrorCode.QuotaExceeded]: [429, 'insufficient_quota', 'insufficient_quota'],
  [ErrorCode.ContextLengthExceeded]: [400, 'invalid_request_error', 'context_length_exceeded'],
  [ErrorCode.ModelNotFound]: [404, 'invalid_request_error', 'model_not_found'],
  [ErrorCode.InvalidRequest]: [400, 'invalid_request_error', null],
  [ErrorCode.ContentFiltered]: [400, 'invalid_request_error', 'content_filter'],
  [ErrorCode.InvalidResponse]: [502, 'server_error', null],
  [ErrorCode.ProviderError]: [500, 'server_error', 'server_error'],
  [ErrorCode.NetworkError]: [502, 'server_error', null],
  [ErrorCode.Timeout]: [504, 'timeout', 'timeout'],
  [ErrorCode.Cancelled]: [499, 'server_error', 'cancelled'],
}

/** Writes the error body of both OpenAI formats. */
export function errorBody({ code, message, fields }: ServerError): JsonObject {
  const [, type, word] = words[code]
  return { error: { message, type, param: null, code: word, ...fields } }
}

/** Returns the HTTP status and body of an error; Chat Completions and Responses use the same error format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: error.statusCode ?? words[error.code][0], body: errorBody(error) }
}
