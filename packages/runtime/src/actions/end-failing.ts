import { hasEnded } from '../children/running-below.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { endSession } from '../session/end-session.ts'

/** Ends a session that fails if the subagents that work for it have stopped; returns whether they have. */
export async function endFailing(context: DrainContext): Promise<boolean> {
  const { failing } = context.state.session ?? {}
  if (!failing) return true
  for (const one of failing.below)
    if (!(await hasEnded(context.environment.store, one))) return false
  await endSession(context, failing)
  return true
}
