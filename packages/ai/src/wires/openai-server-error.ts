import type { JsonObject } from '@skein/base'
import { ErrorCode } from '../contract/error.ts'
import type { ServerError } from './wire-server.ts'

interface Words {
  readonly status: number
  readonly type: string
  readonly code: string | null
}

/** How OpenAI says our codes. */
const words: Readonly<Record<ErrorCode, Words>> = {
  [ErrorCode.AuthenticationFailed]: {
    status: 401,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
  },
  [ErrorCode.RateLimited]: { status: 429, type: 'requests', code: 'rate_limit_exceeded' },
  [ErrorCode.QuotaExceeded]: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
  },
  [ErrorCode.ContextLengthExceeded]: {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
  },
  [ErrorCode.ModelNotFound]: {
    status: 404,
    type: 'invalid_request_error',
    code: 'model_not_found',
  },
  [ErrorCode.InvalidRequest]: { status: 400, type: 'invalid_request_error', code: null },
  [ErrorCode.ContentFiltered]: {
    status: 400,
    type: 'invalid_request_error',
    code: 'content_filter',
  },
  [ErrorCode.InvalidResponse]: { status: 502, type: 'server_error', code: null },
  [ErrorCode.ProviderError]: { status: 500, type: 'server_error', code: 'server_error' },
  [ErrorCode.NetworkError]: { status: 502, type: 'server_error', code: null },
  [ErrorCode.Timeout]: { status: 504, type: 'timeout', code: 'timeout' },
  [ErrorCode.Cancelled]: { status: 499, type: 'server_error', code: 'cancelled' },
}

/** The error body of both OpenAI formats. */
export function errorBody({ code, message, fields }: ServerError): JsonObject {
  const { type, code: word } = words[code]
  return { error: { message, type, param: null, code: word, ...fields } }
}

/** The error body of the OpenAI family. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: error.statusCode ?? words[error.code].status, body: errorBody(error) }
}
