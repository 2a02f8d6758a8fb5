/**
 * Aborts `controller` as soon as one of the signals aborts, with that signal's reason. Call the returned
 * function when the work is over; otherwise a signal that outlives the work would collect listeners.
 */
export function linkAbort(
  signals: readonly (AbortSignal | undefined)[],
  controller: AbortController,
): () => void {
  const unlink = signals.map((signal) => {
    if (!signal) return () => {}
    const forward = (): void => controller.abort(signal.reason)
    if (signal.aborted) forward()
    else signal.addEventListener('abort', forward, { once: true })
    return () => signal.removeEventListener('abort', forward)
  })
  return () => unlink.forEach((remove) => remove())
}

/**
 * Settles with the result of `work`, or rejects as soon as the signal aborts: with the signal's reason, or
 * with the error that `toError` returns. After an abort the work keeps running; its late result is ignored,
 * and a late rejection is not reported as unhandled.
 */
export function untilAborted<T>(
  signal: AbortSignal,
  work: PromiseLike<T>,
  toError: (signal: AbortSignal) => unknown = ({ reason }) => reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(toError(signal))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort)
        resolve(value)
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort)
        reject(error)
      },
    )
  })
}
