import type { JsonObject, JsonValue } from '@skein/base'
import type { UserContent } from '../contract/content.ts'
import { ErrorCode, invalidRequest, isUPPError, UPPError } from '../contract/error.ts'
import { objectOf, textOf } from './read-json.ts'
import type { VendorError } from '../contract/vendor-error.ts'

export { countOf, objectOf, textOf } from './read-json.ts'

/** Makes the error for a request that this wire format or vendor cannot express. */
export function requestError(provider: string, message: string, hint?: string): UPPError {
  return invalidRequest(message, { provider, modality: 'llm' }, hint)
}

/** Makes the error for a field of a client's request, e.g. `model`; `problem` is e.g. `is missing`. */
export function fieldError(provider: string, field: string, problem = 'is missing'): UPPError {
  return requestError(provider, `The field "${field}" ${problem}.`)
}

/** Reads the body of a client's request, and the model that it names. Throws if it names no model. */
export function readBody(
  provider: string,
  body: JsonValue,
): { readonly request: JsonObject; readonly modelId: string } {
  const request = objectOf(body)
  if (!request) throw requestError(provider, 'The body is not a JSON object.')
  const modelId = textOf(request['model'])
  if (modelId === undefined) throw fieldError(provider, 'model')
  return { request, modelId }
}

/**
 * For each block type of a user message, the type of the part that contains it in a format; undefined if the
 * format has no such part. All types must be listed, so that a new block type is a compile error until the
 * server of every format handles it.
 */
export type PartTypes = Readonly<Record<UserContent['type'], string | undefined>>

/** Makes the error for a content part that the server of a format cannot read. */
export function unknownPart(
  provider: string,
  at: string,
  type: JsonValue | undefined,
  known: PartTypes,
): UPPError {
  const types = [...new Set(Object.values(known))].filter((name) => name !== undefined)
  return requestError(
    provider,
    `The field "${at}" is ${JSON.stringify(type)}.`,
    `Known types: ${types.join(', ')}.`,
  )
}

/** Makes the error for an answer that is malformed or incomplete; `what` names the problem. */
export function invalidResponse(provider: string, what: string, cause?: unknown): UPPError {
  return new UPPError(`The answer of ${provider} cannot be read: ${what}.`, {
    code: ErrorCode.InvalidResponse,
    provider,
    modality: 'llm',
    cause,
  })
}

/** Makes the error that the vendor reported inside a 200 response. */
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

/** Parses one frame of a stream as a JSON object. */
export function parseFrame(data: string, provider: string): JsonObject {
  let json: unknown
  try {
    json = JSON.parse(data)
  } catch (error) {
    throw invalidResponse(provider, 'an event of its stream is not JSON', error)
  }
  const value = objectOf(json)
  if (!value) throw invalidResponse(provider, 'an event of its stream is not a JSON object')
  return value
}

/** Converts an error thrown while decoding a malformed response into a UPPError. */
export function asDecodeError(provider: string, error: unknown): UPPError {
  if (isUPPError(error)) return error
  return invalidResponse(provider, error instanceof Error ? error.message : String(error), error)
}

/**
 * Calls `read`, which reads a client's request. An error that is not a UPPError becomes INVALID_REQUEST.
 */
export function readRequest<T>(provider: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (isUPPError(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw requestError(provider, `The request cannot be read: ${reason}`)
  }
}
