import { isMainThread } from 'node:worker_threads'
import type { ManualTimers } from '../../src/testing/simulation.ts'

/**
 * Lets `setTimeout`, `clearTimeout` and `performance.now` use the virtual time of a run: the time limits of tools and
 * effects and the grace after a stop are measured with them, and a busy machine must not change a run. Returns a function
 * that restores the real ones. One run at a time.
 */
export function useVirtualTimeouts(timers: ManualTimers): () => void {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
  const virtual = {
    setTimeout(callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): object {
      const handle: object = Object.assign(timers.set(ms, () => callback(...args)) as object, {
        ref: () => handle,
        unref: () => handle,
      })
      return handle
    },
    clearTimeout: (handle: unknown) => timers.clear(handle),
  }
  Object.assign(globalThis, virtual)
  // Not where other tests of the process measure their work at the same time. An own property, in front of the method of
  // its prototype.
  const isAlone = !isMainThread || process.env['VITEST'] === undefined
  if (isAlone)
    Object.defineProperty(performance, 'now', { value: () => timers.now(), configurable: true })
  return () => {
    Object.assign(globalThis, real)
    if (isAlone) Reflect.deleteProperty(performance, 'now')
  }
}
