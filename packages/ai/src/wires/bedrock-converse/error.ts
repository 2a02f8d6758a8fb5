import type { JsonObject, JsonValue } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import type { ErrorResponse, VendorError } from '../../contract/vendor-error.ts'
import { hasWords, objectOf, textOf } from '../read-json.ts'
import type { ServerError } from '../wire-server.ts'

/** Our codes for the names of AWS's exceptions, in lower case and without `Exception`. */
const codes: Readonly<Record<string, ErrorCode>> = {
  throttling: ErrorCode.RateLimited,
  toomanyrequests: ErrorCode.RateLimited,
  servicequotaexceeded: ErrorCode.QuotaExceeded,
  accessdenied: ErrorCode.AuthenticationFailed,
  unrecognizedclient: ErrorCode.AuthenticationFailed,
  invalidsignature: ErrorCode.AuthenticationFailed,
  signaturedoesnotmatch: ErrorCode.AuthenticationFailed,
  incompletesignature: ErrorCode.AuthenticationFailed,
  missingauthenticationtoken: ErrorCode.AuthenticationFailed,
  expiredtoken: ErrorCode.AuthenticationFailed,
  requestexpired: ErrorCode.AuthenticationFailed,
  resourcenotfound: ErrorCode.ModelNotFound,
  validation: ErrorCode.InvalidRequest,
  conflict: ErrorCode.InvalidRequest,
  modelerror: ErrorCode.ProviderError,
  modelstreamerror: ErrorCode.ProviderError,
  modelnotready: ErrorCode.ProviderError,
  modeltimeout: ErrorCode.ProviderError,
  internalserver: ErrorCode.ProviderError,
  internalfailure: ErrorCode.ProviderError,
  serviceunavailable: ErrorCode.ProviderError,
}

/** Reads `{ message }` and the name of the exception, which is in a header or in the body. */
export function decodeError({ json, text, headers, status }: ErrorResponse): VendorError {
  const body = objectOf(json)
  const type = headers.get('x-amzn-errortype') ?? textOf(body?.['__type']) ?? textOf(body?.['code'])
  return readError(body, type) ?? { message: textOf(text.trim().slice(0, 500)) ?? `HTTP ${status}` }
}

/** Reads an error by its body and the name of its exception. */
export function readError(
  body: JsonValue | undefined,
  type: string | undefined,
): VendorError | undefined {
  const fields = objectOf(body)
  // Servers in front of AWS have forms of their own.
  const inner = objectOf(fields?.['error'])
  const said =
    textOf(fields?.['message']) ?? textOf(fields?.['Message']) ?? textOf(inner?.['message'])
  // `namespace#ThrottlingException:http://…`: only the name is wanted.
  const name = type?.split(':')[0]?.split('#').at(-1)
  if (said === undefined && !name) return undefined
  const message = said ?? name!
  return { message, vendorType: name || undefined, code: codeOf(name ?? '', message) }
}

const tooLongWords =
  /input is too long|prompt is too long|too many (input )?tokens|maximum context/i

function codeOf(name: string, message: string): ErrorCode | undefined {
  const key = name.toLowerCase().replace(/exception$/, '')
  const code = Object.hasOwn(codes, key) ? codes[key] : undefined
  if (code === ErrorCode.RateLimited && /tokens? per day|daily/i.test(message))
    return ErrorCode.QuotaExceeded
  if (code !== ErrorCode.InvalidRequest) return code
  if (tooLongWords.test(message) || hasWords(message, 'exceed', 'context'))
    return ErrorCode.ContextLengthExceeded
  return /model identifier is invalid/i.test(message) ? ErrorCode.ModelNotFound : code
}

/** The HTTP status and exception for each of our codes, for servers that speak this format. */
const words: Readonly<Record<ErrorCode, readonly [status: number, name: string]>> = {
  [ErrorCode.AuthenticationFailed]: [403, 'AccessDeniedException'],
  [ErrorCode.RateLimited]: [429, 'ThrottlingException'],
  [ErrorCode.QuotaExceeded]: [400, 'ServiceQuotaExceededException'],
  [ErrorCode.ContextLengthExceeded]: [400, 'ValidationException'],
  [ErrorCode.ModelNotFound]: [404, 'ResourceNotFoundException'],
  [ErrorCode.InvalidRequest]: [400, 'ValidationException'],
  [ErrorCode.ContentFiltered]: [400, 'ValidationException'],
  [ErrorCode.InvalidResponse]: [424, 'ModelErrorException'],
  [ErrorCode.ProviderError]: [500, 'InternalServerException'],
  [ErrorCode.NetworkError]: [503, 'ServiceUnavailableException'],
  [ErrorCode.Timeout]: [408, 'ModelTimeoutException'],
  [ErrorCode.Cancelled]: [400, 'ValidationException'],
}

/** Returns the name and body of the exception for an error, for servers that speak this format. */
export function exceptionOf(error: ServerError): {
  readonly name: string
  readonly body: JsonObject
} {
  const [, name] = words[error.code]
  const isTooLong = error.code === ErrorCode.ContextLengthExceeded
  const message = isTooLong ? `Input is too long: ${error.message}` : error.message
  return { name, body: { message } }
}

/** Returns the HTTP status and body of an error, for servers that speak this format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  const { name, body } = exceptionOf(error)
  return { status: error.statusCode ?? words[error.code][0], body: { ...body, __type: name } }
}
