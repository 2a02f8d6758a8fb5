import type { DrainContext } from '../contract/context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import { afterStored, beforeCreate } from '../hooks/hooks.ts'
import { sideOf, type Step } from '../contract/state.ts'
import type { Side } from '../contract/thread-state.ts'

/** Starts a session with the queued messages. `side` is the side that answers. */
export async function beginSession(context: DrainContext, side: Side): Promise<void> {
  const { environment, agent, state } = context
  const at = context.at()
  const events: RuntimeEvent[] = []
  if (!state.session)
    events.push({ type: 'session_start', at, sessionId: environment.ids(), agent: agent.name })
  if (state.status !== 'running') events.push({ type: 'status_changed', at, status: 'running' })
  const answering = sideOf(agent, { side })
  const taken = await takeQueue(context, answering)
  events.push(...taken, ...turnStart(context, side))
  const head = { lifecycle: 'running', agent: agent.name } as const
  await context.commit('session_start', { events, head })
  await afterStored(context, answering, taken)
}

/**
 * The events that move every queued message into the history, in order. `side` is the side that will
 * answer; its hooks see the messages. Messages that these hooks queue are taken the next time.
 */
export async function takeQueue(
  context: DrainContext,
  side: ResolvedSide,
): Promise<RuntimeMessageAdded[]> {
  const taken: RuntimeMessageAdded[] = []
  const waiting = [...context.state.queue]
  for (const queued of waiting) {
    const { queueId, role, message, attachments, subagentId, metadata, userId } = queued
    const added: RuntimeMessageAdded = {
      type: 'message_added',
      at: context.at(),
      turnId: queueId,
      message,
      side: role === 'user' ? 'b' : 'a',
      queueId,
      isSilent: queued.isSilent || undefined,
      attachments,
      subagentId,
      metadata,
      userId,
    }
    taken.push(await beforeCreate(context, side, added))
  }
  return taken
}

/** A silent message of the runtime to the side whose turn it is. */
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

/** Starts a turn and its first step. */
export function turnStart(context: DrainContext, side: Side): RuntimeEvent[] {
  const agentId = `${context.agent.name}/${side}`
  const turnId = context.environment.ids()
  const at = context.at()
  return [{ type: 'turn_start', at, turnId, agentId, side }, stepStart(context, { turnId, side })]
}

/** Starts a step, or starts it again: `before` is the earlier attempt, whose id the step keeps. */
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

/** Ends the running step, if there is one. */
export function stepEnd(context: DrainContext): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn?.step) return []
  return [{ type: 'step_end', at: context.at(), turnId: turn.id, stepId: turn.step.id }]
}

/** Ends the running turn, if there is one. */
export function turnEnd(
  context: DrainContext,
  outcome: 'completed' | 'interrupted' | 'failed',
  reason: string,
): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn) return []
  return [{ type: 'turn_end', at: context.at(), turnId: turn.id, outcome, reason }]
}
