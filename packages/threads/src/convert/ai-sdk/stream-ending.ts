import type {
  AgentTurn,
  FinishReason,
  SystemMessage,
  ThreadMessage,
} from '../../document/thread.ts'
import { systemMessage } from '../../events/system-message.ts'
import type { UIFinishReason, UIMessagePart } from './types.ts'

/** Data of a stream that the message built from it does not contain. */
export interface StreamNotes {
  readonly rawInputs: ReadonlyMap<UIMessagePart, string>
  readonly outcomes: ReadonlySet<UIMessagePart>
  readonly refusals: ReadonlySet<UIMessagePart>
  readonly finishReason: UIFinishReason | undefined
  readonly isFinished: boolean
  readonly isAborted: boolean
  readonly abortReason: string | undefined
  readonly errors: readonly string[]
}

/** Returns the events that record how the stream ended: errors and an abort. */
export function endEvents(notes: StreamNotes, timestamp: string): SystemMessage[] {
  const errors = notes.errors.map((message) =>
    systemMessage('stream.error', { message }, timestamp),
  )
  if (!notes.isAborted) return errors
  const why = notes.abortReason === undefined ? {} : { reason: notes.abortReason }
  return [...errors, systemMessage('stream.aborted', why, timestamp)]
}

const FINISH: Readonly<Partial<Record<UIFinishReason, FinishReason>>> = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_call',
  error: 'error',
}

/**
 * Converts a finish reason. ThreadProtocol has five finish reasons; other reasons of the client are stored in
 * `ui_finish_reason`.
 */
export function finishFields(reason: UIFinishReason | undefined): Partial<ThreadMessage> {
  if (reason === undefined || reason === 'interrupted') return {}
  const finishReason = FINISH[reason]
  return finishReason
    ? { finish_reason: finishReason }
    : ({ ui_finish_reason: reason } as Partial<ThreadMessage>)
}

/**
 * Returns the fields that mark a turn as interrupted, or none. A stream without `finish` was cut off,
 * whatever its last chunk was.
 */
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
