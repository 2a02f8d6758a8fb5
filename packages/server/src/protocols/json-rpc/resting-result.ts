import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { Runtime, SessionResult } from '@skein/runtime'
import { isAnsweringChat } from '../chat/until-settled.ts'
import { isGovernedAgent } from '../chat/shown-events.ts'

/**
 * Returns what became of a thread that is at rest or waits for a person; undefined while it or a child that
 * it waits for works.
 */
export async function restingResult(
  runtime: Runtime,
  thread: ThreadIdentity,
  now: number,
): Promise<SessionResult | undefined> {
  if (await isAnsweringChat(runtime, thread, now)) return undefined
  const late = AbortSignal.timeout(LOOK_MS) // the thread may have begun to work since it was read
  try {
    return await runtime.threads.settled(thread.id, { signal: late })
  } catch (error) {
    if (late.aborted) return undefined
    throw error
  }
}

const LOOK_MS = 1000

/**
 * Returns the text of a result that others may read. While a session waits, the text of an agent whose answers
 * are checked (a governed agent) is left out, because it is delivered only at the end of the session.
 */
export function sharedText(
  { registry }: Runtime,
  { outcome, text, thread }: SessionResult,
): string {
  return outcome === 'waiting' && isGovernedAgent(registry, thread.agent) ? '' : text
}
