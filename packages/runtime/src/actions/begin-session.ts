import type { Write } from '../context/write.ts'
import { unlessLogMoved } from '../commit/log-moved.ts'
import { turnStart } from '../session/turn-events.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Side } from '../contract/thread-state.ts'
import { afterStored } from '../hooks/hooks.ts'
import { takeQueue } from '../session/take-queue.ts'
import { sideOf } from '../state/kernel-state.ts'
import { listedAs } from '../thread/parent-list.ts'

/** Starts a session with the queued messages. `side` is the side of the conversation that answers them. */
export async function beginSession(context: DrainContext, side: Side): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const events: RuntimeEvent[] = []
  if (!state.session) {
    const { name, hash: definitions } = agent
    const sessionId = environment.ids()
    events.push({ type: 'session_start', at, sessionId, agent: name, definitions })
  }
  if (state.status !== 'running') events.push({ type: 'status_changed', at, status: 'running' })
  const answering = sideOf(agent, { side })
  const messages = await takeQueue(context, answering)
  events.push(...messages, ...turnStart(context, side))
  const head = { lifecycle: 'running', agent: agent.name } as const
  // If the parent sent the message, its list of children already says that this child is running.
  const isAsked = state.queue.some(({ metadata }) => metadata?.['from'] === 'parent')
  const others = isAsked || state.session ? [] : listedAs(context, { status: 'running' })
  const write: Write = {
    kind: 'begin',
    events,
    others,
    head,
    requiresUnchangedLog: messages.length > 0,
  }
  if (await unlessLogMoved(context, () => context.commit('session_start', write)))
    await afterStored(context, answering, messages)
}
