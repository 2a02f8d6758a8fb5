import type { Timers } from '../dispatch/dispatcher.ts'

/** Runs something again and again. The returned function ends it. */
export function every(timers: Timers, ms: number, run: () => void): () => void {
  let handle = timers.set(ms, ring)
  function ring(): void {
    handle = timers.set(ms, ring)
    run()
  }
  return () => timers.clear(handle)
}
