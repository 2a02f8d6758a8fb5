import { messageOf, untilAborted } from '@skein/base'
import { ErrorCode, isUPPError, UPPError } from '@skein/ai'

/** The agent layer throws UPP's errors (UAP §1.3); `provider` is then the name of this project. */
export const AGENT_ORIGIN = { provider: 'skein', modality: 'llm' } as const

/** The application passed something that cannot work. */
export function invalidUse(message: string, hint?: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, ...AGENT_ORIGIN, hint })
}

/** The model answered something that cannot be used. */
export function unusableResponse(message: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidResponse, ...AGENT_ORIGIN })
}

/** Application code (a hook, a middleware, a strategy) threw. Trying again would not help. */
export function codeError(error: unknown, where: string): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(`${where} failed: ${messageOf(error)}`, {
    code: ErrorCode.InvalidRequest,
    ...AGENT_ORIGIN,
    cause: error,
  })
}

/** True for the error of a run that was cancelled. */
export function isCancelled(error: unknown): boolean {
  return isUPPError(error) && error.code === ErrorCode.Cancelled
}

/** Throws if the run is cancelled already. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(signal)
}

/** Waits for application code, but rejects as soon as the run is cancelled. */
export async function awaitUnlessAborted<T>(
  work: T | PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const isPending = typeof (work as PromiseLike<T> | null | undefined)?.then === 'function'
  if (!signal || !isPending) return work
  return untilAborted(signal, work as PromiseLike<T>, cancelled) // it has a `then`
}

function cancelled({ reason }: AbortSignal): UPPError {
  return new UPPError('The run was cancelled.', {
    code: ErrorCode.Cancelled,
    ...AGENT_ORIGIN,
    cause: reason,
  })
}
