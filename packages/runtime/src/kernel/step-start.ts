import type { RuntimeEvent } from '../event.ts'
import type { Side } from '../thread-state.ts'
import type { DrainContext } from './drain-context.ts'
import type { Step } from './state.ts'

/** A step begins, or is tried again: then it keeps its id. */
export function stepStart(
  context: DrainContext,
  step: { readonly turnId: string; readonly side: Side; readonly before?: Step | undefined },
): RuntimeEvent {
  const { turnId, side, before } = step
  return {
    type: 'step_start',
    at: context.at(),
    turnId,
    stepId: before?.id ?? context.environment.ids(),
    side,
    attempt: (before?.attempt ?? 0) + 1,
    epoch: context.epoch,
  }
}
