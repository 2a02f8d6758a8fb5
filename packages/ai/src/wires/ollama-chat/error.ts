import type { JsonValue } from '@skein/base'
import { ErrorCode } from '../../contract/error.ts'
import { objectOf, textOf } from '../read-json.ts'
import type { ErrorResponse, VendorError } from '../wire.ts'

/** Reads `{ error: 'text' }`; the server has no error codes, only words. */
export function decodeError({ json, text, status }: ErrorResponse): VendorError {
  return readError(json) ?? { message: textOf(text.trim().slice(0, 500)) ?? `HTTP ${status}` }
}

/** The error of a body or of a line of a stream; undefined when there is none. */
export function readError(body: JsonValue | undefined): VendorError | undefined {
  const error = objectOf(body)?.['error']
  if (error === undefined || error === null) return undefined
  const message =
    textOf(error) ?? textOf(objectOf(error)?.['message']) ?? 'The server gave no reason.'
  const code = codeOf(message)
  return { message, ...(code && { code }) }
}

function codeOf(message: string): ErrorCode | undefined {
  if (/model .*not found|try pulling it/i.test(message)) return ErrorCode.ModelNotFound
  if (/context (length|window)|exceeds maximum context|prompt is too long/i.test(message))
    return ErrorCode.ContextLengthExceeded
  if (/unauthorized/i.test(message)) return ErrorCode.AuthenticationFailed
  if (/does not support|invalid (format|options?|think)/i.test(message))
    return ErrorCode.InvalidRequest
  return undefined
}
