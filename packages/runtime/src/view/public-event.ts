import type { RuntimeEvent } from '../contract/event.ts'
import type { NumberedEvent } from '../contract/subscription.ts'

type AnyEvent = NumberedEvent['event']

const HIDDEN = '[secret]'

/**
 * Returns an event without encrypted values, approval tokens, signed grants and the stacks of tools that threw, which
 * clients must not see.
 */
export function publicEvent<Event extends AnyEvent>(event: Event): Event {
  return withoutSecrets(event) as Event // removing values does not change the type of an event
}

function withoutSecrets(event: AnyEvent): AnyEvent {
  switch (event.type) {
    case 'env_set':
      return event.valueType === 'secret' && event.value !== null
        ? { ...event, value: HIDDEN }
        : event
    case 'variables_provided': {
      const values = Object.entries(event.values).map(
        ([name, value]) =>
          [name, value.valueType === 'secret' ? { ...value, value: HIDDEN } : value] as const,
      )
      return { ...event, values: Object.fromEntries(values) }
    }
    case 'interrupt_answered': {
      if (event.answer.type !== 'approve' || event.answer.token === undefined) return event
      const { token: _, ...answer } = event.answer
      return { ...event, answer }
    }
    case 'grant_made':
      return { ...event, grant: HIDDEN }
    case 'tool_execution_end':
      return withoutCause(event)
    default:
      event satisfies Public
      return event
  }
}

/** Removes what a tool threw, which only operators see. */
export function withoutCause(
  event: Extract<RuntimeEvent, { type: 'tool_execution_end' }>,
): RuntimeEvent {
  if (event.cause === undefined) return event
  const { cause: _, ...shown } = event
  return shown
}

/** Events in which clients may see everything. */
// prettier-ignore
type Public = Extract<AnyEvent, { type:
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' |
  'message_queued' | 'message_unqueued' | 'message_added' | 'message_updated' | 'call_changed' |
  'message_removed' | 'delivery_changed' | 'turn_start' | 'turn_end' | 'step_start' |
  'step_reset' | 'step_failed' | 'text_delta' | 'tool_execution_start' | 'late_result' |
  'call_reset' | 'interrupt_opened' | 'subagent_created' | 'subagent_updated' | 'subagent_ended' |
  'agent_handoff' | 'context_compacted' | 'gate_decided' | 'error_raised' | 'model_requested' |
  'model_answered' | 'inference_recorded' | 'usage_recorded' | 'agent_registered' | 'step_end' |
  'reasoning_delta' | 'tool_call_delta' | 'tool_execution_progress' | 'tool_call_hidden' |
  'file_written' | 'file_removed' | 'source_added' | 'evidence_added' | 'custom_event' |
  'session_stop_requested' | 'immediate_done' | 'stop_requested' | 'turn_cut' |
  'resume_requested' | 'value_set' | 'effect_scheduled' | 'effect_started' | 'effect_ended' |
  'variables_requested' | 'variables_settled' | 'grant_revoked'
}>
