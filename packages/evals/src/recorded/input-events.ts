import type { RuntimeEvent } from '@skein/runtime'
import type { RecordedInput } from './recorded-thread.ts'

/**
 * The events that can come from outside the loop of a thread: from people, clients, programs, other threads, and from
 * the code of tools, hooks and effects, which does not run when a thread is played back. All other events are made by the
 * loop alone.
 */
const inputs: Readonly<Record<RuntimeEvent['type'], RecordedInput['type'] | undefined>> = {
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
  // Made by the loop alone:
  agent_handoff: undefined,
  call_reset: undefined,
  context_compacted: undefined,
  delivery_changed: undefined,
  effect_started: undefined,
  gate_decided: undefined,
  immediate_done: undefined,
  inference_recorded: undefined,
  interrupt_opened: undefined,
  model_answered: undefined,
  model_requested: undefined,
  reasoning_delta: undefined,
  session_end: undefined,
  session_failing: undefined,
  session_start: undefined,
  step_end: undefined,
  step_failed: undefined,
  step_reset: undefined,
  step_start: undefined,
  text_delta: undefined,
  thread_erased: undefined,
  tool_call_delta: undefined,
  tool_execution_end: undefined,
  tool_execution_progress: undefined,
  tool_execution_start: undefined,
  turn_cut: undefined,
  turn_end: undefined,
  turn_start: undefined,
  undo_decided: undefined,
  variables_requested: undefined,
  variables_settled: undefined,
  write_undone: undefined,
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
