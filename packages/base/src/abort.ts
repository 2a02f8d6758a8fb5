/**
 * Aborts `controller` as soon as one of the signals aborts, with that signal's reason. Call the returned function when
 * the work is over: a signal that lives longer than the work would otherwise collect listeners.
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
 * Settles as the work does, or rejects as soon as the signal aborts: with its reason, or with what `toError` makes of
 * it. The abandoned work keeps running; its late outcome is dropped and never an unhandled rejection.
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
