import { UPPError } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { stepStart } from '../session/turn-events.ts'
import { logLoss } from './log.ts'
import type { Asking } from './asking.ts'

/**
 * Starts the step again, because a message of its request was edited or removed while the model
 * answered. The answer so far is dropped, but its cost is recorded.
 */
export async function askAgain(
  context: DrainContext,
  asking: Asking,
  cause: UPPError,
  commit: DrainContext['commit'] = (point, write) => context.commit(point, write),
): Promise<void> {
  const { turn, step, side } = asking
  const at = context.at()
  const log = logLoss(context, asking, cause)
  const reset: RuntimeEvent = {
    type: 'step_reset',
    at,
    turnId: turn.id,
    stepId: step.id,
    reason: 'edited',
  }
  const again = stepStart(context, { turnId: turn.id, side: side.side, before: step })
  const events = [...log.events, reset, again]
  await commit('step_start', { kind: 'outcome', events, blobs: log.blobs })
}
