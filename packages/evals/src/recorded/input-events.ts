import type { RuntimeEvent } from '@skein/runtime'
import type { RecordedInput } from './recorded-thread.ts'

/**
 * The events that can come from outside the loop of a thread: from people, clients, programs, other threads, and from
 * the code of tools, hooks and effects, which does not run when a thread is played back. All other events are made by the
 * loop alone.
 */
const inputs: { readonly [Type in RuntimeEvent['type']]?: RecordedInput['type'] } = {
  thread_created: 'other',
  thread_updated: 'other',
  agent_registered: 'other',
  message_queued: 'message',
  message_unqueued: 'edit',
  message_added: 'message',
  message_updated: 'edit',
  message_removed: 'edit',
  interrupt_answered: 'answer',
  call_changed: 'answer',
  late_result: 'other',
  stop_requested: 'stop',
  resume_requested: 'resume',
  thread_terminated: 'terminate',
  session_stop_requested: 'stop',
  value_set: 'value',
  env_set: 'value',
  effect_scheduled: 'value',
  effect_ended: 'value',
  file_written: 'value',
  file_removed: 'value',
  custom_event: 'value',
  source_added: 'value',
  status_changed: 'value',
  subagent_updated: 'other',
  subagent_ended: 'other',
  subagent_created: 'other',
  grant_made: 'grant',
  grant_revoked: 'grant',
  variables_provided: 'variables',
  tool_call_hidden: 'other',
  error_raised: 'other',
  evidence_added: 'other',
  usage_recorded: 'other',
}

/** What kind of input an event may be; undefined for events that only the loop makes. */
export function mayBeInput(event: RuntimeEvent): RecordedInput['type'] | undefined {
  // PlayedAnswers of models, and notes of the runtime to a model, are made by the loop.
  if (event.type === 'message_added' && event.stepId !== undefined) return undefined
  // A limit of the operator counts what other threads have spent too.
  if (event.type === 'step_failed' && event.code === 'SPENDING_LIMIT') return 'other'
  return inputs[event.type]
}

/** What a person, a client or a program did; undefined for events that the loop or a tool makes. */
export function inputType(event: RuntimeEvent): RecordedInput['type'] | undefined {
  switch (event.type) {
    case 'message_queued':
    case 'message_updated':
    case 'message_removed':
    case 'message_unqueued':
    case 'interrupt_answered':
    case 'stop_requested':
    case 'resume_requested':
    case 'thread_terminated':
    case 'grant_made':
    case 'grant_revoked':
    case 'variables_provided':
    case 'call_changed':
      return inputs[event.type]
    default:
      return undefined
  }
}
