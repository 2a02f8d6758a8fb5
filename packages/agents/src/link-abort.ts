/** Aborts `controller` when one of the signals does. Call the answer when the run is over. */
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
  return () => unlink.forEach((one) => one())
}
