import type { StoredEvent, Runtime } from '@skein/runtime'
import { isShownUserMessage, isVisible } from './visible-events.ts'

/** The place in the log where the last answer of a thread begins. */
export interface AnswerPlace {
  /** Number of the event before the answer. */
  readonly after: number
  /** The message id of the answer, which is the id of its first turn. Absent until a turn begins. */
  readonly messageId?: string
  /** Number of the last event in the log. */
  readonly seq: number
}

const FIRST_WINDOW = 256

const PAGE = 1000

/**
 * Finds where the current or last answer begins. Consecutive turns are one answer; a message of a person
 * begins the next answer. The log is read backwards in growing windows, so that a long thread is not read
 * whole.
 */
export async function findAnswer(
  runtime: Runtime,
  threadId: string,
  seq: number,
): Promise<AnswerPlace> {
  for (let width = FIRST_WINDOW; ; width *= 4) {
    const after = Math.max(seq - width, 0)
    const events: StoredEvent[] = []
    for (let last = after; ;) {
      const page = await runtime.threads.events(threadId, { after: last, limit: PAGE })
      events.push(...page)
      if (page.length < PAGE) break
      last = page.at(-1)!.seq
    }
    const start = after === 0 ? 0 : events.findLastIndex((_, index) => isOpening(events, index))
    if (start >= 0)
      return foldAnswer(events.slice(start), start === 0 ? after : events[start]!.seq - 1)
  }
}

/** Whether a session begins at this event and reads a message of a person before its first turn. */
function isOpening(events: readonly StoredEvent[], index: number): boolean {
  if (events[index]!.event.type !== 'session_start') return false
  for (let next = index + 1; next < events.length; next++) {
    const { event } = events[next]!
    if (isShownUserMessage(event)) return true
    if (event.type === 'turn_start') return false
  }
  return false
}

function foldAnswer(events: readonly StoredEvent[], before: number): AnswerPlace {
  let place: { after: number; messageId?: string } = { after: before }
  let isNew = true
  let openTurn: string | undefined
  const queueIds = new Set<string>()
  for (const { seq, event } of events) {
    if (event.type === 'message_queued' && isVisible(event)) queueIds.add(event.queueId)
    if (event.type === 'message_unqueued') queueIds.delete(event.queueId)
    if (event.type === 'message_added' && event.queueId !== undefined)
      queueIds.delete(event.queueId)
    if (isShownUserMessage(event)) isNew = true
    if (event.type === 'turn_end') openTurn = undefined
    if (event.type !== 'turn_start') continue
    openTurn = event.turnId
    if (isNew) place = { after: seq - 1, messageId: event.turnId }
    isNew = false
  }
  const seq = events.at(-1)?.seq ?? before
  // No turn has begun to answer the last message yet.
  const isUnanswered = openTurn === undefined && (isNew || queueIds.size > 0)
  return isUnanswered ? { after: seq, seq } : { ...place, seq }
}
