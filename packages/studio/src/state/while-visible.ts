/** A hidden page closes its streams after this time, because a browser allows only six connections to one server. */
const HIDE_MS = 60_000

/**
 * Runs something while the page is visible, and again each time it becomes visible again. The signal
 * aborts after the page was hidden for a while. Returns a function that ends this for good.
 */
export function whileVisible(
  run: (signal: AbortSignal) => Promise<void>,
  failed: (error: unknown) => void = () => undefined,
): () => void {
  let abort: AbortController | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const start = (): void => {
    const own = (abort = new AbortController())
    run(own.signal).catch((error: unknown) => {
      if (!own.signal.aborted) failed(error)
    })
  }
  const onChange = (): void => {
    clearTimeout(timer)
    if (!document.hidden) {
      if (abort === undefined) start()
      return
    }
    timer = setTimeout(() => {
      abort?.abort()
      abort = undefined
    }, HIDE_MS)
  }
  document.addEventListener('visibilitychange', onChange)
  start()
  return () => {
    document.removeEventListener('visibilitychange', onChange)
    clearTimeout(timer)
    abort?.abort()
  }
}
