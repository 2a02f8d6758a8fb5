import type { RuntimeEvent } from '../event.ts'
import type { KernelState } from '../state.ts'

/**
 * The events that bring a copied history to rest: what was running, waiting or planned belongs to the
 * thread it was copied from, and nothing of it happens again.
 */
export function settleCopied(state: KernelState, at: string): RuntimeEvent[] {
  return [
    ...openCalls(state, at),
    ...openSession(state, at),
    ...state.queue.map(({ queueId }) => ({ type: 'message_unqueued', at, queueId }) as const),
    ...[...state.children.values()]
      .filter(({ lifecycle }) => lifecycle !== 'terminated')
      .map(({ created: { reference } }) => {
        return { type: 'subagent_ended', at, reference, outcome: 'terminated' } as const
      }),
    ...[...state.effects.keys()].map(
      (effectId) => ({ type: 'effect_ended', at, effectId, outcome: 'removed' }) as const,
    ),
    ...openRequests(state, at),
  ]
}

const WHY = 'This is a copy; the call belongs to the thread it was copied from.'

/** Calls without a result get one, or no vendor would take the history. */
function* openCalls({ entries }: KernelState, at: string): Generator<RuntimeEvent> {
  for (const { calls, turnId } of entries)
    for (const { call, outcome } of calls) {
      if (outcome) continue
      const { toolCallId, toolName } = call
      yield {
        type: 'tool_execution_end',
        at,
        turnId,
        toolCallId,
        toolName,
        outcome: 'interrupted',
        result: WHY,
      }
    }
}

function* openSession({ session }: KernelState, at: string): Generator<RuntimeEvent> {
  if (!session) return
  const { turn, id: sessionId } = session
  if (turn)
    yield { type: 'turn_end', at, turnId: turn.id, outcome: 'interrupted', reason: 'copied' }
  yield { type: 'session_end', at, sessionId, outcome: 'completed', reason: 'copied' }
}

function* openRequests({ variables }: KernelState, at: string): Generator<RuntimeEvent> {
  for (const [requestId, { reference, error }] of variables)
    if (reference === undefined && error === undefined)
      yield { type: 'variables_settled', at, requestId, error: WHY }
}
