import type { JsonObject } from '@skein/base'
import type { ErrorResponse, VendorError } from '../../contract/vendor-error.ts'
import { googleErrorBody, httpStatusOf, readGoogleError } from '../google-error.ts'
import { textOf } from '../read-json.ts'
import type { ServerError } from '../wire-server.ts'

/** Reads `{ error: { code, message, status, details } }`, also inside a list. */
export function decodeError({ json, text, status }: ErrorResponse): VendorError {
  const message = textOf(text.trim().slice(0, 500)) ?? `HTTP ${status}`
  return readGoogleError(json) ?? { message }
}

/** Returns the HTTP status and body of an error, for servers that speak this format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: httpStatusOf(error), body: googleErrorBody(error) }
}
