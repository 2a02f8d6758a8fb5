import { linkAbort, untilAborted } from './abort.ts'

/** The error of `withTimeLimit` for work that took too long. The work itself may still run. */
export class TimeLimitError extends Error {
  constructor(limitMs: number) {
    super(`it took longer than ${limitMs} ms`)
  }
}

/** How `withTimeLimit` waits. */
export interface TimeLimitOptions {
  readonly limitMs: number
  /** Ends the wait earlier; the promise then rejects with the reason of this signal. */
  readonly signal?: AbortSignal | undefined
  /** Calls `fire` after `ms` milliseconds and returns a function that cancels it; default `setTimeout`. */
  readonly timer?: (ms: number, fire: () => void) => () => void
  /** Makes the error for work that took too long; default a `TimeLimitError`. */
  readonly toError?: (limitMs: number) => Error
}

/**
 * Returns the result of `work`, or rejects when it takes longer than the limit. The signal that `work` receives aborts
 * after that time, or when the outer signal aborts.
 */
export async function withTimeLimit<T>(
  work: (signal: AbortSignal) => PromiseLike<T>,
  {
    limitMs,
    signal: outer,
    timer = systemTimer,
    toError = (ms) => new TimeLimitError(ms),
  }: TimeLimitOptions,
): Promise<T> {
  const controller = new AbortController()
  // `AbortSignal.any` is not used, because Node keeps such a signal, and all that its listeners refer to, for
  // as long as it has a listener.
  const unlink = linkAbort([outer], controller)
  const cancel = timer(limitMs, () => controller.abort(toError(limitMs)))
  try {
    return await untilAborted(controller.signal, work(controller.signal))
  } finally {
    cancel()
    unlink()
  }
}

/** The timer of the platform. A delay above 2^31 - 1 ms would overflow its counter and fire immediately. */
export function systemTimer(ms: number, fire: () => void): () => void {
  const id = setTimeout(fire, Math.min(ms, 0x7fff_ffff))
  return () => clearTimeout(id)
}
