import { cancelled } from './agent-error.ts'

/** Waits for the application's own code, but no longer than until the run is cancelled. */
export async function untilAborted<T>(
  work: T | PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (!signal || !isPromise(work)) return work
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(cancelled(signal))
    const end = (): void => signal.removeEventListener('abort', onAbort)
    work.then(resolve, reject).then(end, end)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(signal)
}

function isPromise<T>(work: T | PromiseLike<T>): work is PromiseLike<T> {
  return typeof (work as PromiseLike<T> | null | undefined)?.then === 'function'
}
