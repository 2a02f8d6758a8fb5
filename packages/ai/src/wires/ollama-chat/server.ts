import type { JsonObject } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import { readRequest } from '../wire-error.ts'
import type { ServerError, WireServer } from '../wire-server.ts'
import { decodeRequest } from './server-request.ts'
import { encodeResponse, OllamaEncoder } from './server-response.ts'
import { API } from './types.ts'

/** `/api/chat` served: one message per answer. */
export const ollamaChatServer: WireServer = {
  name: API,
  decodeRequest: (body) => readRequest('ollama', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new OllamaEncoder(context),
  encodeError,
}

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

/** The format has words only. */
function encodeError({ code, message, statusCode }: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: statusCode ?? statuses[code], body: { error: message } }
}
