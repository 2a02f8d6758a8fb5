/** Where waiting comes from; each call answers how to stop it. */
export interface Timers {
  after(ms: number, run: () => void): () => void
  every(ms: number, run: () => void): () => void
}

/** The timers of the machine. They keep no process alive. */
export const systemTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms)
    timer.unref?.()
    return () => clearTimeout(timer)
  },
  every(ms, run) {
    const timer = setInterval(run, ms)
    timer.unref?.()
    return () => clearInterval(timer)
  },
}

/** Timers that stand still until they are moved: for tests. */
export interface ManualTimers extends Timers {
  advance(ms: number): void
}

export function manualTimers(): ManualTimers {
  let now = 0
  const waiting = new Set<{ at: number; everyMs: number | undefined; run: () => void }>()
  const add = (ms: number, everyMs: number | undefined, run: () => void): (() => void) => {
    const timer = { at: now + ms, everyMs, run }
    waiting.add(timer)
    return () => void waiting.delete(timer)
  }
  return {
    after: (ms, run) => add(ms, undefined, run),
    every: (ms, run) => add(ms, ms, run),
    advance(ms) {
      const end = now + ms
      for (;;) {
        const [next] = [...waiting].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
        if (!next) break
        now = next.at
        if (next.everyMs === undefined) waiting.delete(next)
        else next.at += next.everyMs
        next.run()
      }
      now = end
    },
  }
}
