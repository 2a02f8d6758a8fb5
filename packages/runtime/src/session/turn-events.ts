import type { DeliveryChanged } from '@skein/threads'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Side } from '../contract/thread-state.ts'
import type { Step } from '../state/kernel-state.ts'

/** Returns a message from the runtime. Only the model whose turn it is sees the message. */
export function noteMessage(context: DrainContext, text: string, kind: string): RuntimeEvent {
  const { environment, state } = context
  const at = context.at()
  const id = environment.ids()
  const speaking = state.session?.turn?.side ?? 'a'
  return {
    type: 'message_added',
    at,
    turnId: id,
    message: { id, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    side: speaking === 'a' ? 'b' : 'a',
    isSilent: true,
    metadata: { kind, for: speaking },
  }
}

/** Returns the events that start a turn and its first step. */
export function turnStart(context: DrainContext, side: Side): RuntimeEvent[] {
  const agentId = `${context.agent.name}/${side}`
  const turnId = context.environment.ids()
  const at = context.at()
  return [{ type: 'turn_start', at, turnId, agentId, side }, stepStart(context, { turnId, side })]
}

/**
 * Returns the event that starts a step. If the step is tried again, `before` is the earlier attempt,
 * and the id of the step stays the same.
 */
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

/** Returns the event that ends the running step; none if no step is running. */
export function stepEnd(context: DrainContext): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn?.step) return []
  return [{ type: 'step_end', at: context.at(), turnId: turn.id, stepId: turn.step.id }]
}

/** Returns the event that ends the running turn; none if no turn is running. */
export function turnEnd(
  context: DrainContext,
  outcome: 'completed' | 'interrupted' | 'failed',
  reason: string,
): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn) return []
  return [{ type: 'turn_end', at: context.at(), turnId: turn.id, outcome, reason }]
}

/**
 * Returns the event that says what became of answers that the gate had not judged: of those in `ids`, by default of all
 * that this session has, and of the answers among `spoken`, which are added in the same commit. None if there are none.
 */
export function judged(
  context: DrainContext,
  delivery: DeliveryChanged['delivery'],
  {
    reason,
    spoken = [],
    ids = [...(context.state.session?.pending ?? [])],
  }: {
    readonly reason?: string
    readonly spoken?: readonly RuntimeEvent[]
    readonly ids?: readonly string[]
  } = {},
): RuntimeEvent[] {
  const added = spoken.flatMap((event) =>
    event.type === 'message_added' && event.delivery === 'pending' ? event.message.id : [],
  )
  const messageIds = [...ids, ...added]
  if (messageIds.length === 0) return []
  const at = context.at()
  return [{ type: 'delivery_changed', at, messageIds, delivery, reason: reason || undefined }]
}
