/** How long parts of long work may take in one turn of the event loop before other parts have to wait. */
const BUDGET_MS = 5
/** Parts that take less are not counted: they are the work of ordinary requests. */
const SHORT_MS = 0.2

/** What waits for a turn, in order. */
const queue: (() => void)[] = []
/** How long parts have taken in this turn. */
let usedMs = 0

/**
 * Resolves in a later turn of the event loop. Long work that runs in parts awaits it between two parts, so that
 * requests, timers and streams of the process do not wait for the whole. Each turn resolves one call, because the
 * parts of many lists would otherwise follow one another in the same turn.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (queue.push(resolve) === 1) setImmediate(beginNext)
  })
}

function beginNext(): void {
  usedMs = 0
  queue.shift()!()
  if (queue.length > 0) setImmediate(beginNext)
}

/** Does a part of long work: now if other parts have left time in this turn of the event loop, or else in a later one. */
export async function doPart<T>(work: () => T | Promise<T>): Promise<T> {
  while (usedMs >= BUDGET_MS) await nextTurn()
  const startedAt = performance.now()
  try {
    return work()
  } finally {
    const tookMs = performance.now() - startedAt
    // Without a queue, nothing else notices that the turn has ended.
    if (usedMs === 0 && tookMs >= SHORT_MS) setImmediate(endTurn)
    if (tookMs >= SHORT_MS) usedMs += tookMs
  }
}

function endTurn(): void {
  usedMs = 0
}
