import { ErrorCode, isUPPError, UPPError, type Modality } from './error.ts'

/** Who an error is about: in every error (UPP §16.2). */
export interface ErrorOrigin {
  readonly provider: string
  readonly modality: Modality
}

/** Whatever a provider threw, as a `UPPError` with the original as its cause (UPP §4.4). */
export function toUPPError(error: unknown, { provider, modality }: ErrorOrigin): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(messageOf(error), {
    code: ErrorCode.ProviderError,
    provider,
    modality,
    cause: error,
    hint: 'The provider threw something other than a UPPError; see the cause.',
  })
}

/** The application's own code (a middleware, a hook) refused or failed: nothing a retry would mend. */
export function hookError(error: unknown, where: string, origin: ErrorOrigin): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(`${where} failed: ${messageOf(error)}`, {
    code: ErrorCode.InvalidRequest,
    ...origin,
    cause: error,
  })
}

export function cancelledError(signal: AbortSignal, origin: ErrorOrigin): UPPError {
  return new UPPError('The call was cancelled.', {
    code: ErrorCode.Cancelled,
    ...origin,
    cause: signal.reason,
  })
}

export function invalidRequest(message: string, origin: ErrorOrigin, hint?: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, ...origin, hint })
}

/** The words of anything that can be thrown. Never throws, whatever the getters of the error do. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message || error.name)
    return typeof error === 'string' ? error : `A ${typeof error} was thrown.`
  } catch {
    return 'An object that cannot be read was thrown.'
  }
}
