import type { Lane } from '../../src/testing/simulation.ts'
import type { Deed } from './ledger.ts'
import type { World } from './world.ts'

/** The time limit of writes and effects in runs whose calls are slow. */
export const TOOL_LIMIT_MS = 2_000

/** How long calls wait before and after their effect: in time, within the grace after the limit, and after it. */
const PAUSES_MS = [0, 0, 0, 300, 3_000, 9_000, 40_000]

/**
 * What a tool does outside: it takes effect once, with a turn before and one after, so that a crash, a stop or a time
 * limit may fall before, between and behind. Half of the calls obey their signal, the others do not notice it.
 */
export async function actOutside(
  world: World,
  lane: Lane,
  deed: Omit<Deed, 'args'> & { readonly args: unknown },
  signal: AbortSignal,
): Promise<void> {
  const { chance, ledger, plan, bugs } = world
  const { tool, threadId } = deed
  const obeys = chance.happens(0.5)
  const pause = async (what: string): Promise<void> => {
    world.reach(`${what} its effect`, threadId, lane)
    const ms = plan.hasSlowCalls ? chance.pick(PAUSES_MS) : 0
    if (ms > 0) await nap(world, ms, obeys ? signal : undefined)
    await lane.turn(`${tool} ${what} its effect`)
    if (obeys) signal.throwIfAborted()
  }
  const act = async (): Promise<void> => {
    await pause('before')
    if (chance.happens(0.05)) throw new Error(`${tool} is busy`)
    ledger.note(deed)
    await pause('after')
  }
  const lives = (): boolean => lane.state !== 'dead'
  const acting = ledger.watch(deed, lives, async () => {
    await act()
    if (bugs.has('again after a stop') && signal.aborted) await act()
  })
  if (!bugs.has('done when stopped')) return acting
  acting.catch(() => {}) // nobody waits for it any more
  await Promise.race([acting, aborted(signal)])
}

function nap({ time }: World, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const ring = time.timers.set(time.scaled(ms), resolve)
    const wake = (): void => {
      time.timers.clear(ring)
      resolve()
    }
    if (signal?.aborted) wake()
    else signal?.addEventListener('abort', wake, { once: true })
  })
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
