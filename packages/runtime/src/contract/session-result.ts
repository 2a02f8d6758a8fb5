import type { JsonValue } from '@skein/base'
import type { SessionOutcome } from './event.ts'
import type { ThreadInfo } from './thread-info.ts'
import type { WaitingItem } from './waiting-item.ts'

/** How a session ended, for callers that wait for its end. */
export interface SessionResult<Data = JsonValue> {
  readonly outcome: SessionOutcome | 'waiting'
  readonly reason: string
  readonly text: string
  /** What to do about a failure. */
  readonly hint?: string
  /** The answer, checked by the `output` of the agent that gave it; absent if there is none. */
  readonly data?: Data
  readonly attachments: readonly string[]
  readonly waiting: readonly WaitingItem[]
  readonly thread: ThreadInfo
}
