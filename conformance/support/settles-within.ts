import { setImmediate, setTimeout } from 'node:timers/promises'

/**
 * Whether a promise settles before a timer does that is set at this moment. A machine that stalls holds
 * both back alike, so this tells what the code does and not how busy the machine is.
 */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  )
  const stop = new AbortController()
  const late = setTimeout(ms, false, { signal: stop.signal }).then(
    () => setImmediate(false), // whatever became ready during the same stall comes first
    () => true,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    stop.abort()
  }
}
