import { SkeinError } from '@skein/base'

/** Calls `fire` after `ms`; returns what calls it off. A parameter, so that tests need not wait. */
export type Timer = (ms: number, fire: () => void) => () => void

/** The timers of the platform. */
export const systemTimer: Timer = (ms, fire) => {
  // Longer delays overflow the platform's 32-bit counter and would fire at once.
  const id = setTimeout(fire, Math.min(ms, 0x7fff_ffff))
  return () => clearTimeout(id)
}

/** Thrown by `withTimeout`. */
export class TimeoutError extends SkeinError {
  constructor(ms: number) {
    super(`There was no answer within ${ms} ms.`, { code: 'TIMEOUT' })
  }
}

/** Waits for `work` at most `ms`; then aborts its signal and throws TimeoutError. */
export function withTimeout<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ms: number,
  timer: Timer,
): Promise<T> {
  const controller = new AbortController()
  return new Promise<T>((resolve, reject) => {
    const cancel = timer(ms, () => {
      const error = new TimeoutError(ms)
      controller.abort(error)
      reject(error)
    })
    work(controller.signal).then(resolve, reject).finally(cancel)
  })
}
