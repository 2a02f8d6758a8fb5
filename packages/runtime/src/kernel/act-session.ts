import type { RuntimeEvent } from '../event.ts'
import type { Side } from '../thread-state.ts'
import type { DrainContext } from './drain-context.ts'
import { sideOf } from './next.ts'
import { takeQueue, tellCreated } from './queue.ts'
import { turnStart } from './turn-events.ts'

/** Starts a session with what waits in the inbox; the last message says which side answers. */
export async function beginSession(context: DrainContext, side: Side): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const events: RuntimeEvent[] = []
  if (!state.session)
    events.push({ type: 'session_start', at, sessionId: environment.ids(), agent: agent.name })
  if (state.status !== 'running') events.push({ type: 'status_changed', at, status: 'running' })
  const answering = sideOf(agent, { side })
  const taken = await takeQueue(context, answering)
  events.push(...taken)
  events.push(...turnStart(context, side))
  await context.commit('session_start', {
    events,
    head: { lifecycle: 'running', agent: agent.name },
  })
  await tellCreated(context, answering, taken)
}
