import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import type { ServerError } from '../wires/wire-server.ts'
import { asServerError } from './answer-wire.ts'

/** A failure of the gateway's own. */
export function gatewayError(
  message: string,
  code: keyof typeof ErrorCode,
  options: { statusCode?: number; retryAfterMs?: number; cause?: unknown } = {},
): UPPError {
  return new UPPError(message, {
    code: ErrorCode[code],
    provider: 'gateway',
    modality: 'llm',
    ...options,
  })
}

/**
 * What a client is told. The vendor's refusal of the gateway's own key is not the client's
 * business: to the client, the model is out of order.
 */
export function toClientError(error: unknown): ServerError {
  const told = asServerError(error)
  const isOwn = isUPPError(error) && error.provider === 'gateway'
  if (told.code !== ErrorCode.AuthenticationFailed || isOwn) return told
  return {
    code: ErrorCode.ProviderError,
    statusCode: 502,
    message: 'The gateway has no access to this model.',
  }
}
