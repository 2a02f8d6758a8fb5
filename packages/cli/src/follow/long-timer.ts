/** The longest time that a timer takes. A longer one would overflow, and the timer would end after 1 ms. */
const LONGEST_MS = 2 ** 31 - 1

/** Calls `work` after a time of any length; returns a function that prevents it. */
export function afterMs(ms: number, work: () => void): () => void {
  let left = ms
  let timer: NodeJS.Timeout
  const wait = (): void => {
    const next = Math.min(left, LONGEST_MS)
    left -= next
    timer = setTimeout(left > 0 ? wait : work, next)
  }
  wait()
  return () => clearTimeout(timer)
}
