import type { AgentTurn, FinishReason, SystemMessage, ThreadMessage } from '../../types.ts'
import type { StreamNotes } from './from-ui-assistant.ts'
import type { UIFinishReason } from './types.ts'

/** What a stream says about its own end, as events of the turn. */
export function endEvents(notes: StreamNotes, timestamp: string): SystemMessage[] {
  const failed = notes.errors.map((message) => streamEvent('stream.error', { message }, timestamp))
  if (!notes.isAborted) return failed
  const why = notes.abortReason === undefined ? {} : { reason: notes.abortReason }
  return [...failed, streamEvent('stream.aborted', why, timestamp)]
}

function streamEvent(event_type: string, event_data: unknown, timestamp: string): SystemMessage {
  return { message_type: 'system', timestamp, event_type, event_data }
}

const FINISH: Readonly<Partial<Record<UIFinishReason, FinishReason>>> = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_call',
  error: 'error',
}

/** The protocol knows five reasons; the client's others are kept beside. */
export function finishFields(reason: UIFinishReason | undefined): Partial<ThreadMessage> {
  if (reason === undefined || reason === 'interrupted') return {}
  const known = FINISH[reason]
  return known ? { finish_reason: known } : ({ ui_finish_reason: reason } as Partial<ThreadMessage>)
}

/** A stream that did not reach `finish` was cut, whatever its last chunk looks like. */
export function interruption(notes: StreamNotes, at: string): Partial<AgentTurn> {
  const { isFinished, isAborted, errors, finishReason, abortReason } = notes
  if (isFinished && !isAborted && finishReason !== 'interrupted') return {}
  const reason = isAborted
    ? (abortReason ?? 'user_cancelled')
    : isFinished
      ? 'user_cancelled'
      : errors.length > 0
        ? 'error'
        : 'network_failure'
  return { completion_status: 'interrupted', interruption: { reason, interrupted_at: at } }
}
