import type { JsonObject, JsonValue } from '@skein/base'
import type { ErrorResponse, VendorError } from '../../contract/vendor-error.ts'
import { googleErrorBody, httpStatusOf, readGoogleError } from '../google-error.ts'
import { objectOf, textOf } from '../read-json.ts'
import type { ServerError } from '../wire-server.ts'

/** Google's names for statuses, by the HTTP status that a code may have instead. */
const statusNames: Readonly<Record<string, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** Reads `{ error: { code, message, status } }`. */
export function decodeError({ json, text, status }: ErrorResponse): VendorError {
  const message = textOf(text.trim().slice(0, 500)) ?? `HTTP ${status}`
  return readError(json) ?? { message }
}

/**
 * Reads the error object of a body or of an event; undefined if there is none. The code may be a word, a number or the
 * text of a number; the name of the status may be missing.
 */
export function readError(body: JsonValue | undefined): VendorError | undefined {
  const error = objectOf(objectOf(Array.isArray(body) ? body[0] : body)?.['error'])
  if (!error) return undefined
  const { code, status: name } = error
  const word = textOf(code)
    ?.replace(/[\s-]+/g, '_')
    .toUpperCase()
  const status = textOf(name) ?? statusNames[String(code)] ?? word
  const decoded = readGoogleError({ error: { ...error, status: status ?? null } })
  return decoded && { ...decoded, vendorCode: decoded.vendorCode ?? textOf(code) }
}

/** Writes the body of an error, for servers that speak this format. Its code is a word. */
export function errorBody(error: ServerError): JsonObject {
  const body = objectOf(googleErrorBody(error)['error']) ?? {}
  return { error: { ...body, code: String(body['status']).toLowerCase() } }
}

/** Returns the HTTP status and body of an error, for servers that speak this format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: httpStatusOf(error), body: errorBody(error) }
}
