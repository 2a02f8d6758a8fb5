import { ErrorCode, isUPPError, UPPError } from '@skein/ai'

/** The agent layer speaks with UPP's errors (UAP §1.3); this is the provider's name in its own. */
export const AGENT_ORIGIN = { provider: 'skein', modality: 'llm' } as const

export function invalidRequest(message: string, hint?: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, ...AGENT_ORIGIN, hint })
}

export function invalidResponse(message: string, hint?: string, cause?: unknown): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidResponse, ...AGENT_ORIGIN, hint, cause })
}

export function cancelled(signal: AbortSignal | undefined): UPPError {
  return new UPPError('The run was cancelled.', {
    code: ErrorCode.Cancelled,
    ...AGENT_ORIGIN,
    cause: signal?.reason,
  })
}

export function isCancelled(error: unknown): boolean {
  return isUPPError(error) && error.code === ErrorCode.Cancelled
}

/** A hook, a middleware or a strategy threw: the application's own code, nothing a retry mends. */
export function codeError(error: unknown, where: string): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(`${where} failed: ${messageOf(error)}`, {
    code: ErrorCode.InvalidRequest,
    ...AGENT_ORIGIN,
    cause: error,
  })
}

export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name
  return typeof error === 'string' ? error : `A ${typeof error} was thrown.`
}
