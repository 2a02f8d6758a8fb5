import type { JsonValue } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import { hasWords, objectOf, textOf } from '../read-json.ts'
import type { ErrorResponse, VendorError } from '../../contract/vendor-error.ts'

/** Reads `{ error: 'text' }`; the format has no error codes, only messages. */
export function decodeError({ json, text, status }: ErrorResponse): VendorError {
  return readError(json) ?? { message: textOf(text.trim().slice(0, 500)) ?? `HTTP ${status}` }
}

/** Reads the error of a body or of a line of a stream; undefined if there is none. */
export function readError(body: JsonValue | undefined): VendorError | undefined {
  const error = objectOf(body)?.['error']
  if (error === undefined || error === null) return undefined
  const message =
    textOf(error) ?? textOf(objectOf(error)?.['message']) ?? 'The server gave no reason.'
  const code = codeOf(message)
  return { message, code }
}

function codeOf(message: string): ErrorCode | undefined {
  if (hasWords(message, 'model ', 'not found') || /try pulling it/i.test(message))
    return ErrorCode.ModelNotFound
  if (/context (length|window)|exceeds maximum context|prompt is too long/i.test(message))
    return ErrorCode.ContextLengthExceeded
  if (/unauthorized/i.test(message)) return ErrorCode.AuthenticationFailed
  if (/does not support|invalid (format|options?|think)/i.test(message))
    return ErrorCode.InvalidRequest
  return undefined
}
