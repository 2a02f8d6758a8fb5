import { ErrorCode, UPPError } from '../contract/error.ts'
import type { ErrorContext } from './endpoint.ts'

/** The JSON text of a request body; a typed error for what JSON cannot say. */
export function jsonBody(body: unknown, context: ErrorContext): string {
  try {
    return JSON.stringify(body)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UPPError(`The request for ${context.provider} cannot be written: ${reason}`, {
      code: ErrorCode.InvalidRequest,
      ...context,
      cause: error,
      hint: 'Params must be JSON: no cycle, no BigInt.',
    })
  }
}
