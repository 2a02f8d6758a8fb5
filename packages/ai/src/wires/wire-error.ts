import type { JsonObject } from '@skein/base'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import { objectOf } from './read-json.ts'
import type { VendorError } from './wire.ts'

export { countOf, objectOf, textOf } from './read-json.ts'

/** The caller asked for something this wire or vendor cannot say. */
export function invalidRequest(provider: string, message: string, hint?: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, provider, modality: 'llm', hint })
}

/** The vendor's answer is not its own format, or not all of it; `what` says in which way. */
export function invalidResponse(provider: string, what: string, cause?: unknown): UPPError {
  return new UPPError(`The answer of ${provider} cannot be read: ${what}.`, {
    code: ErrorCode.InvalidResponse,
    provider,
    modality: 'llm',
    cause,
  })
}

/** An error that the vendor reported inside a 200 answer. */
export function vendorFailure(provider: string, error: VendorError, cause?: unknown): UPPError {
  const { message, ...options } = error
  return new UPPError(message, {
    ...options,
    code: error.code ?? ErrorCode.ProviderError,
    provider,
    modality: 'llm',
    cause,
  })
}

/** The JSON object in one frame of a stream. */
export function parseFrame(data: string, provider: string): JsonObject {
  const value = objectOf(parseJson(data, provider))
  if (!value) throw invalidResponse(provider, 'an event of its stream is not a JSON object')
  return value
}

function parseJson(data: string, provider: string): unknown {
  try {
    return JSON.parse(data)
  } catch (error) {
    throw invalidResponse(provider, 'an event of its stream is not JSON', error)
  }
}

/** What a malformed answer made a decoder throw, as a UPPError. */
export function asDecodeError(provider: string, error: unknown): UPPError {
  if (isUPPError(error)) return error
  return invalidResponse(provider, error instanceof Error ? error.message : String(error), error)
}

/** Reads a client's request; whatever a malformed one makes it throw becomes INVALID_REQUEST. */
export function readRequest<T>(provider: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (isUPPError(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw invalidRequest(provider, `The request cannot be read: ${reason}`)
  }
}
