import { linkAbort } from '@skein/base'

/** The error of `within` for work that took too long. The work itself may still run. */
export class TimeLimitError extends Error {}

/**
 * Returns the result of `work`, or rejects when it takes longer than `timeoutMs`. The signal that `work`
 * receives is aborted after that time or when the outer signal aborts; an outer abort rejects as well.
 */
export async function within<T>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  const { signal } = controller
  // `AbortSignal.any` is not used, because Node keeps such a signal, and all that its listeners refer to, for
  // as long as it has a listener.
  const unlink = linkAbort([outer], controller)
  let timer: ReturnType<typeof setTimeout> | undefined
  let stop: (() => void) | undefined
  const tooLate = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const late = new TimeLimitError(`it took longer than ${timeoutMs} ms`)
    timer = setTimeout(() => controller.abort(late), timeoutMs)
  })
  try {
    return await Promise.race([work(signal), tooLate])
  } finally {
    clearTimeout(timer)
    unlink()
    if (stop) signal.removeEventListener('abort', stop)
  }
}
