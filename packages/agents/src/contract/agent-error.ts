import { messageOf, untilAborted } from '@skein/base'
import { ErrorCode, isUPPError, UPPError } from '@skein/ai'

/** The provider and modality named in errors of this package, which throws `UPPError`s (UAP §1.3). */
export const AGENT_ORIGIN = { provider: 'skein', modality: 'llm' } as const

/** Creates the error for invalid input from the application. */
export function invalidUse(message: string, hint?: string, cause?: unknown): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, ...AGENT_ORIGIN, hint, cause })
}

/** Creates the error for a limit of cost (`maxCost`) where the cost is not known. */
export function unknownCost(what: string): UPPError {
  return invalidUse(
    `maxCost cannot limit ${what}: its cost is not known.`,
    'Add costMiddleware({ catalog }) of @skein/ai/middleware to llmMiddleware, with prices of the model.',
  )
}

/** Creates the error for an answer of the model that cannot be used. */
export function unusableResponse(message: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidResponse, ...AGENT_ORIGIN })
}

/**
 * Converts an error thrown by application code (a hook, a middleware, a strategy) into a `UPPError`. Its code
 * is INVALID_REQUEST, because a retry would not help.
 */
export function codeError(error: unknown, where: string): UPPError {
  if (isUPPError(error)) return error
  return invalidUse(`${where} failed: ${messageOf(error)}`, undefined, error)
}

/** True for the error of a run that was cancelled. */
export function isCancelled(error: unknown): boolean {
  return isUPPError(error) && error.code === ErrorCode.Cancelled
}

/** Throws if the run is already cancelled. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(signal)
}

/** Waits for a promise of application code, but rejects as soon as the run is cancelled. */
export async function awaitUnlessAborted<T>(
  work: T | PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const isPending = typeof (work as PromiseLike<T> | null | undefined)?.then === 'function'
  if (!signal || !isPending) return work
  return untilAborted(signal, work as PromiseLike<T>, cancelled) // `work` has a `then` method
}

function cancelled({ reason }: AbortSignal): UPPError {
  return new UPPError('The run was cancelled.', {
    code: ErrorCode.Cancelled,
    ...AGENT_ORIGIN,
    cause: reason,
  })
}
