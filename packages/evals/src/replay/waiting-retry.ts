import type { RuntimeEvent, StoredEvent } from '@skein/runtime'

/** A failed request that is due to be sent again. */
export interface WaitingRetry {
  readonly retryAtMs: number
  readonly message: string
}

/** Returns the failed request with which a log waits; undefined if it waits for none. */
export function waitingRetry(events: readonly StoredEvent[]): WaitingRetry | undefined {
  const last = events.findLast(({ event }) => MOVES.has(event.type))?.event
  if (last?.type !== 'step_failed' || last.retryAt === undefined) return undefined
  return { retryAtMs: Date.parse(last.retryAt), message: last.message }
}

/** What happens to a thread after it has waited. */
const MOVES: ReadonlySet<RuntimeEvent['type']> = new Set([
  'step_failed',
  'model_answered',
  'message_added',
  'session_end',
  'thread_terminated',
])
