import type { LateOutcome, ToolCall } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import { callIdOf } from '../state/calls.ts'
import type { FacadeChanges } from '../thread/facade.ts'

/** Has the result of a call recorded whose outcome was not waited for, or could not be stored. */
export function reportLateCall(
  drain: DrainContext,
  {
    call: { toolCallId, toolName },
    turnId,
    outcome,
    changes,
    isGoverned,
  }: {
    readonly call: ToolCall
    readonly turnId: string
    readonly outcome: LateOutcome
    /** What the tool changed in its thread. */
    readonly changes: FacadeChanges | undefined
    readonly isGoverned: boolean
  },
): void {
  const report = changes && isChange(changes) ? withoutChanges(outcome) : outcome
  drain.environment.late({
    threadId: drain.head.id,
    turnId,
    toolCallId,
    toolName,
    outcome: drain.redactor()?.json(report) ?? report,
    callId: callIdOf(drain.state, toolCallId),
    isGoverned,
  })
}

/** Whether a tool has changed anything in its thread, or in a value of its user. */
function isChange({ events, values, toParent, stopSession, terminates }: FacadeChanges): boolean {
  const changes = events.length + toParent.length
  return changes > 0 || values.user !== undefined || stopSession !== undefined || terminates
}

/** Adds to a late result that what the tool changed in its thread is lost: changes are stored with results in time only. */
function withoutChanges(outcome: LateOutcome): LateOutcome {
  if (outcome.type !== 'done') return outcome // the changes of a tool that failed are never stored
  const { result } = outcome
  const words = typeof result === 'string' ? result : JSON.stringify(result ?? null)
  return {
    type: 'done',
    result: `${words}\n\n[What the tool changed in the thread was not stored.]`,
  }
}
