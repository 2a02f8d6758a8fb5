import { reportToParent } from '../children/report.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { endSession } from '../session/end-session.ts'

/**
 * Ends the session, because a user pressed stop or because the thread was terminated. In a terminated thread without
 * a session, the messages that wait in the queue are withdrawn, and the parent gets an answer to those it waits for;
 * the questions about calls with an unknown outcome, which nothing waits for, are asked again.
 */
export async function close(
  context: DrainContext,
  outcome: 'stopped' | 'terminated',
): Promise<void> {
  const message = outcome === 'stopped' ? '' : 'The thread was terminated.'
  const ending = { outcome, reason: outcome, message, attachments: [] }
  if (context.state.session) return endSession(context, ending)
  const at = context.at()
  const { queue, interrupts } = context.state
  const events: RuntimeEvent[] = queue.map(({ queueId }) => ({
    type: 'message_unqueued',
    at,
    queueId,
  }))
  for (const { interrupt, turnId, isDropped, write } of interrupts.values())
    if (isDropped) events.push({ type: 'interrupt_opened', at, turnId, interrupt, write })
  const { changes: others, blobs } = await reportToParent(context, ending)
  await context.commit('session_end', { kind: 'outcome', events, others, blobs })
}
